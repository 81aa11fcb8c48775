//! A memory that lives as long as the program.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

use super::{
    Fact, FactChange, FactId, MAX_FACTS, Memory, MemoryError, MemoryErrorKind, NewFact, OwnerId,
    ScoredFact, Vector,
};
use crate::search;

/// A memory that lives as long as the program; clones share it.
#[derive(Debug, Clone, Default)]
pub struct InMemory {
    owners: Arc<Mutex<HashMap<OwnerId, Owned>>>,
}

/// The facts and marks of one owner.
#[derive(Debug, Default)]
struct Owned {
    facts: HashMap<FactId, StoredFact>,
    /// The facts by their age.
    ages: BTreeMap<(u64, FactId), ()>,
    marks: HashMap<Arc<str>, u64>,
}

#[derive(Debug)]
struct StoredFact {
    fact: Fact,
    vector: Option<Vector>,
}

impl InMemory {
    fn owners(&self) -> MutexGuard<'_, HashMap<OwnerId, Owned>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Owned {
    fn facts_by_age(&self) -> impl Iterator<Item = &StoredFact> {
        self.ages.keys().filter_map(|(_, id)| self.facts.get(id))
    }

    /// Checks that all these facts may be added.
    fn check(&self, owner: &OwnerId, facts: &[NewFact]) -> Result<(), MemoryError> {
        let mut names = std::collections::HashSet::new();
        for NewFact { id, .. } in facts {
            if self.facts.contains_key(id) || !names.insert(id) {
                let message = format!("owner {:?} has a fact called {:?} already", owner.0, id.0);
                return Err(MemoryError::new(MemoryErrorKind::Exists, message));
            }
        }
        if self.facts.len() + facts.len() > MAX_FACTS {
            let message = format!("owner {:?} would have more than {MAX_FACTS} facts", owner.0);
            return Err(MemoryError::new(MemoryErrorKind::Full, message));
        }
        Ok(())
    }
}

#[async_trait]
impl Memory for InMemory {
    async fn add(&self, owner: &OwnerId, facts: Vec<NewFact>) -> Result<(), MemoryError> {
        owner.check()?;
        facts.iter().try_for_each(NewFact::check)?;
        let mut owners = self.owners();
        let owned = owners.entry(owner.clone()).or_default();
        owned.check(owner, &facts)?;
        for NewFact {
            id,
            text,
            metadata,
            vector,
            now_ms,
        } in facts
        {
            owned.ages.insert((now_ms, id.clone()), ());
            owned.facts.insert(
                id.clone(),
                StoredFact {
                    fact: Fact::new(id, text, metadata, now_ms),
                    vector,
                },
            );
        }
        Ok(())
    }

    async fn get(&self, owner: &OwnerId, id: &FactId) -> Result<Option<Fact>, MemoryError> {
        let owners = self.owners();
        Ok(owners
            .get(owner)
            .and_then(|owned| owned.facts.get(id))
            .map(|kept| kept.fact.clone()))
    }

    async fn update(
        &self,
        owner: &OwnerId,
        id: &FactId,
        change: FactChange,
    ) -> Result<Fact, MemoryError> {
        change.check()?;
        let mut owners = self.owners();
        let kept = owners
            .get_mut(owner)
            .and_then(|owned| owned.facts.get_mut(id));
        let kept = kept.ok_or_else(|| missing(owner, id))?;
        kept.fact.metadata = change.merge_into(kept.fact.metadata.clone())?;
        kept.fact.updated_ms = change.now_ms;
        if let Some((text, vector)) = change.text {
            (kept.fact.text, kept.vector) = (text, vector);
        }
        Ok(kept.fact.clone())
    }

    async fn delete(&self, owner: &OwnerId, id: &FactId) -> Result<(), MemoryError> {
        let mut owners = self.owners();
        let owned = owners.get_mut(owner).ok_or_else(|| missing(owner, id))?;
        let kept = owned.facts.remove(id).ok_or_else(|| missing(owner, id))?;
        owned.ages.remove(&(kept.fact.created_ms, kept.fact.id));
        Ok(())
    }

    async fn list(
        &self,
        owner: &OwnerId,
        after: Option<&FactId>,
        limit: usize,
    ) -> Result<Vec<Fact>, MemoryError> {
        let owners = self.owners();
        let Some(owned) = owners.get(owner) else {
            return Ok(Vec::new());
        };
        let from = match after {
            None => Bound::Unbounded,
            Some(id) => match owned.facts.get(id) {
                Some(kept) => Bound::Excluded((kept.fact.created_ms, id.clone())),
                // Its previous place is unknown.
                None => return Ok(Vec::new()),
            },
        };
        let ages = owned.ages.range((from, Bound::Unbounded)).take(limit);
        Ok(ages
            .filter_map(|((_, id), ())| owned.facts.get(id))
            .map(|kept| kept.fact.clone())
            .collect())
    }

    async fn by_words(
        &self,
        owner: &OwnerId,
        query: &str,
        limit: usize,
    ) -> Result<Vec<ScoredFact>, MemoryError> {
        let owners = self.owners();
        let Some(owned) = owners.get(owner) else {
            return Ok(Vec::new());
        };
        let best = search::best(
            query,
            owned
                .facts_by_age()
                .map(|kept| (&kept.fact, &kept.fact.text)),
            limit,
        );
        Ok(best
            .into_iter()
            .map(|(fact, score)| ScoredFact {
                fact: fact.clone(),
                score,
            })
            .collect())
    }

    async fn by_vector(
        &self,
        owner: &OwnerId,
        vector: &Vector,
        limit: usize,
    ) -> Result<Vec<ScoredFact>, MemoryError> {
        let owners = self.owners();
        let Some(owned) = owners.get(owner) else {
            return Ok(Vec::new());
        };
        let scored = owned
            .facts_by_age()
            .filter_map(|kept| Some((&kept.fact, kept.vector.as_ref()?.cosine(vector)?)));
        let mut scored: Vec<(&Fact, f64)> = scored.collect();
        scored.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        Ok(scored
            .into_iter()
            .take(limit)
            .map(|(fact, score)| ScoredFact {
                fact: fact.clone(),
                score,
            })
            .collect())
    }

    async fn read_mark(&self, owner: &OwnerId, source: &str) -> Result<u64, MemoryError> {
        let owners = self.owners();
        Ok(owners
            .get(owner)
            .and_then(|owned| owned.marks.get(source))
            .copied()
            .unwrap_or_default())
    }

    async fn mark(
        &self,
        owner: &OwnerId,
        source: &str,
        from: u64,
        to: u64,
    ) -> Result<bool, MemoryError> {
        owner.check()?;
        let mut owners = self.owners();
        let marks = &mut owners.entry(owner.clone()).or_default().marks;
        let is_so = marks.get(source).copied().unwrap_or_default() == from;
        if is_so {
            marks.insert(source.into(), to);
        }
        Ok(is_so)
    }
}

impl Vector {
    /// The cosine between two vectors; `None` if they cannot be compared, or one has no direction.
    pub(crate) fn cosine(&self, other: &Vector) -> Option<f64> {
        if self.model != other.model || self.numbers.len() != other.numbers.len() {
            return None;
        }
        let pairs = self
            .numbers
            .iter()
            .zip(&other.numbers)
            .map(|(one, other)| (f64::from(*one), f64::from(*other)));
        let (dot, one, other) = pairs.fold((0.0, 0.0, 0.0), |(dot, one, other), (left, right)| {
            (dot + left * right, one + left * left, other + right * right)
        });
        let cosine = dot / (f64::sqrt(one) * f64::sqrt(other));
        cosine.is_finite().then(|| cosine.clamp(-1.0, 1.0))
    }
}

fn missing(owner: &OwnerId, id: &FactId) -> MemoryError {
    let message = format!("owner {:?} has no fact called {:?}", owner.0, id.0);
    MemoryError::new(MemoryErrorKind::Missing, message)
}

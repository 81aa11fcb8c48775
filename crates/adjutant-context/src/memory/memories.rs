//! The memories of one owner over any store: embedding, search by words and vectors, and what both spend.

use std::{fmt, sync::Arc};

use adjutant_agent::memory::{
    Fact, FactChange, FactId, MAX_FACT_BYTES, Memory, MemoryError, MemoryErrorKind, Metadata,
    NewFact, OwnerId, Vector,
};
use adjutant_llm::{Embedder, Model, Purpose, SystemWorld, World, embed_all};
use tokio::sync::Mutex as AsyncMutex;
use uuid::Uuid;

use super::{
    background::Background,
    fuse::{Remembered, fuse},
    meter::{Meter, Spent},
    words,
};

/// The largest number of facts that a search returns.
pub const MAX_REMEMBERED: usize = 100;
/// The largest number of bytes of a query that are used.
const MAX_QUERY_BYTES: usize = 8 * 1024;
/// The largest number of facts that a search gives, unless it is set.
const LIMIT: usize = 5;
/// The lowest score of a fact that is given, unless it is set.
const MIN_SCORE: f64 = 0.2;
/// The number of candidates of each kind of search per returned fact.
const CANDIDATES: usize = 4;

/// The memories of one owner. Cheap to clone; clones share their usage and the background queue.
///
/// Every operation is one of the owner's: the facts of others are neither seen nor touched, whatever id is given.
#[derive(Clone)]
pub struct Memories {
    pub(super) store: Arc<dyn Memory>,
    pub(super) owner: OwnerId,
    pub(super) embedder: Option<Arc<dyn Embedder>>,
    pub(super) model: Option<Arc<dyn Model>>,
    pub(super) world: Arc<dyn World>,
    /// The number of facts that a search gives: 5 by default, [`MAX_REMEMBERED`] at most.
    pub limit: usize,
    /// The lowest [`Remembered::score`] of a fact that a search gives, 0 to 1; 0.2 by default.
    pub min_score: f64,
    pub(super) meter: Arc<Meter>,
    pub(super) background: Arc<Background>,
    /// Only one part of a conversation is read at a time.
    pub(super) reading: Arc<AsyncMutex<()>>,
}

impl Memories {
    /// The memories of this owner in this store: found by words, at most 5 at a time that score 0.2 at least.
    pub fn new(store: impl Memory + 'static, owner: impl Into<OwnerId>) -> Self {
        Self {
            store: Arc::new(store),
            owner: owner.into(),
            embedder: None,
            model: None,
            world: Arc::new(SystemWorld),
            limit: LIMIT,
            min_score: MIN_SCORE,
            meter: Arc::default(),
            background: Arc::default(),
            reading: Arc::default(),
        }
    }

    /// Sets what makes vectors of facts and queries, so that facts are found by their meaning too.
    ///
    /// Facts that were added without it, or with another one, are found by words alone.
    #[must_use]
    pub fn embedder(mut self, embedder: impl Embedder + 'static) -> Self {
        self.embedder = Some(Arc::new(embedder));
        self
    }

    /// Sets the model that finds facts in conversations and compares them; without it, the agent's.
    #[must_use]
    pub fn model(mut self, model: impl Model + 'static) -> Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// Sets clock and ids.
    #[must_use]
    pub fn world(mut self, world: impl World + 'static) -> Self {
        self.world = Arc::new(world);
        self
    }

    /// Returns what all clones have spent on models and embedders so far, charged to any run or to none.
    pub fn spent(&self) -> Spent {
        self.meter.spent()
    }

    /// Adds a fact, under a new id that is a UUID.
    ///
    /// # Errors
    /// `Invalid` if something is too large or empty, `Full`, `Model` if the embedder failed, `Io`.
    pub async fn add(
        &self,
        text: impl Into<Arc<str>>,
        metadata: Metadata,
    ) -> Result<Fact, MemoryError> {
        let id = FactId(Uuid::from_u128(self.world.id()).to_string().into());
        self.add_as(id, text.into(), metadata, &self.meter).await
    }

    /// The best facts for a query, best first.
    ///
    /// With an embedder, facts with similar vectors and facts with the same words, merged by reciprocal rank; only
    /// words without one, and if it fails.
    ///
    /// # Errors
    /// `Io`.
    pub async fn search(&self, query: &str) -> Result<Vec<Remembered>, MemoryError> {
        self.search_on(query, &self.meter).await
    }

    /// Changes the text and metadata of a fact. A metadata value of `Null` removes its key; other keys stay.
    ///
    /// # Errors
    /// `Missing` if the owner has no such fact, `Invalid`, `Model` if the embedder failed, `Io`.
    pub async fn update(
        &self,
        id: &FactId,
        text: impl Into<Arc<str>>,
        metadata: Metadata,
    ) -> Result<Fact, MemoryError> {
        self.update_on(id, text.into(), metadata, &self.meter).await
    }

    /// Deletes a fact.
    ///
    /// # Errors
    /// `Missing` if the owner has no such fact, `Io`.
    pub async fn delete(&self, id: &FactId) -> Result<(), MemoryError> {
        self.store.delete(&self.owner, id).await
    }

    /// A fact.
    ///
    /// # Errors
    /// `Io`.
    pub async fn get(&self, id: &FactId) -> Result<Option<Fact>, MemoryError> {
        self.store.get(&self.owner, id).await
    }

    /// The facts behind a place, oldest first.
    ///
    /// # Errors
    /// `Io`.
    pub async fn list(
        &self,
        after: Option<&FactId>,
        limit: usize,
    ) -> Result<Vec<Fact>, MemoryError> {
        self.store.list(&self.owner, after, limit).await
    }
}

/// The operations, with the meter that counts their usage.
impl Memories {
    pub(super) async fn add_as(
        &self,
        id: FactId,
        text: Arc<str>,
        metadata: Metadata,
        meter: &Meter,
    ) -> Result<Fact, MemoryError> {
        check(&text)?;
        let vector = self
            .embed(&[Arc::clone(&text)], Purpose::Document, meter)
            .await?
            .pop();
        self.add_embedded(id, text, metadata, vector).await
    }

    pub(super) async fn add_embedded(
        &self,
        id: FactId,
        text: Arc<str>,
        metadata: Metadata,
        vector: Option<Vector>,
    ) -> Result<Fact, MemoryError> {
        let now_ms = self.world.now_ms();
        let fact = Fact::new(id.clone(), Arc::clone(&text), metadata.clone(), now_ms);
        let new = NewFact {
            vector,
            ..NewFact {
                metadata,
                ..NewFact::new(id, text, now_ms)
            }
        };
        self.store.add(&self.owner, vec![new]).await?;
        Ok(fact)
    }

    pub(super) async fn update_on(
        &self,
        id: &FactId,
        text: Arc<str>,
        metadata: Metadata,
        meter: &Meter,
    ) -> Result<Fact, MemoryError> {
        check(&text)?;
        let vector = self
            .embed(&[Arc::clone(&text)], Purpose::Document, meter)
            .await?
            .pop();
        let change = FactChange {
            metadata,
            ..FactChange::new(self.world.now_ms()).text(text, vector)
        };
        self.store.update(&self.owner, id, change).await
    }

    pub(super) async fn search_on(
        &self,
        query: &str,
        meter: &Meter,
    ) -> Result<Vec<Remembered>, MemoryError> {
        let query = words::cut(query.trim(), MAX_QUERY_BYTES);
        if query.is_empty() || self.limit == 0 {
            return Ok(Vec::new());
        }
        let vector = match self.embed(&[query.into()], Purpose::Query, meter).await {
            Ok(mut vectors) => vectors.pop(),
            Err(error) => {
                tracing::warn!(
                    "memories are searched by words alone: {}",
                    adjutant_agent::chain(&error)
                );
                None
            }
        };
        self.search_near(query, vector.as_ref(), (self.limit, self.min_score))
            .await
    }

    /// The best facts for a query with a known vector.
    pub(super) async fn search_near(
        &self,
        query: &str,
        vector: Option<&Vector>,
        (limit, min_score): (usize, f64),
    ) -> Result<Vec<Remembered>, MemoryError> {
        let limit = limit.min(MAX_REMEMBERED);
        let candidates = limit.saturating_mul(CANDIDATES);
        let by_words = self
            .store
            .by_words(&self.owner, &words::query(query), candidates)
            .await?;
        let by_vector = match vector {
            Some(vector) => {
                self.store
                    .by_vector(&self.owner, vector, candidates)
                    .await?
            }
            None => Vec::new(),
        };
        Ok(fuse(query, by_words, by_vector, limit, min_score))
    }

    /// One vector of each text, in order; none at all without an embedder.
    pub(super) async fn embed(
        &self,
        texts: &[Arc<str>],
        purpose: Purpose,
        meter: &Meter,
    ) -> Result<Vec<Vector>, MemoryError> {
        let Some(embedder) = &self.embedder else {
            return Ok(Vec::new());
        };
        let info = embedder.info();
        let made = embed_all(embedder, texts, purpose).await.map_err(|error| {
            let message = format!("{} could not embed {} texts", info.id, texts.len());
            MemoryError::new(MemoryErrorKind::Model, message).with_source(error)
        })?;
        meter.add(made.usage, info.price.map(|price| price.cost(&made.usage)));
        Ok(made
            .vectors
            .into_iter()
            .map(|numbers| Vector {
                model: info.id.clone(),
                numbers,
            })
            .collect())
    }
}

/// Checks a text before it is embedded at a cost.
fn check(text: &str) -> Result<(), MemoryError> {
    let wrong = match text.trim() {
        "" => "a fact is empty".to_owned(),
        _ if text.len() > MAX_FACT_BYTES => {
            format!(
                "a fact has more than {MAX_FACT_BYTES} bytes: {}",
                text.len()
            )
        }
        _ => return Ok(()),
    };
    Err(MemoryError::new(MemoryErrorKind::Invalid, wrong))
}

impl fmt::Debug for Memories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memories")
            .field("store", &self.store)
            .field("owner", &self.owner)
            .field("embedder", &self.embedder)
            .finish_non_exhaustive()
    }
}

//! The means with which the checks of a memory are played: owners of their own, and short ways to do the usual.

use std::sync::Arc;

use adjutant_agent::{
    Memory,
    memory::{
        Fact, FactId, MemoryError, MemoryErrorKind, Metadata, NewFact, OwnerId, ScoredFact, Vector,
    },
};
use adjutant_llm::{SystemWorld, World};
use serde_json::Value;

use super::Lab;
use crate::suite::{Verdict, equal, fails, holds, ok};

/// A play of one check.
pub(super) struct MemoryStage<'a> {
    lab: &'a dyn Lab,
    prefix: String,
}

impl<'a> MemoryStage<'a> {
    pub(super) fn new(lab: &'a (dyn Lab + 'static)) -> Self {
        Self {
            lab,
            prefix: format!("{:x}-", SystemWorld.id()),
        }
    }

    /// An owner of this play.
    pub(super) fn owner(&self, name: &str) -> OwnerId {
        OwnerId(format!("{}{name}", self.prefix).into())
    }

    pub(super) async fn open(&self) -> Arc<dyn Memory> {
        self.lab.open().await
    }
}

/// A fact whose time is 1,000.
pub(super) fn fact(id: &str, text: &str) -> NewFact {
    NewFact::new(id.into(), text, 1_000)
}

/// A fact with a vector of the usual embedder.
pub(super) fn pointing(id: &str, text: &str, numbers: &[f32]) -> NewFact {
    NewFact {
        vector: Some(vector("usual", numbers)),
        ..fact(id, text)
    }
}

pub(super) fn vector(model: &str, numbers: &[f32]) -> Vector {
    Vector {
        model: model.into(),
        numbers: numbers.to_vec(),
    }
}

pub(super) fn metadata(fields: &[(&str, Value)]) -> Metadata {
    fields
        .iter()
        .map(|(name, value)| (Arc::from(*name), value.clone()))
        .collect()
}

pub(super) async fn add(
    memory: &dyn Memory,
    owner: &OwnerId,
    facts: impl IntoIterator<Item = NewFact>,
) -> Verdict {
    ok(
        "adding",
        memory.add(owner, facts.into_iter().collect()).await,
    )
}

pub(super) async fn get(
    memory: &dyn Memory,
    owner: &OwnerId,
    id: &str,
) -> Result<Option<Fact>, String> {
    ok("reading", memory.get(owner, &FactId::from(id)).await)
}

/// The fact that was made of a new one.
pub(super) fn build_fact(fact: &NewFact) -> Fact {
    Fact::new(
        fact.id.clone(),
        fact.text.clone(),
        fact.metadata.clone(),
        fact.now_ms,
    )
}

/// Checks which facts an owner has, oldest first.
pub(super) async fn has(memory: &dyn Memory, owner: &OwnerId, want: &[Fact]) -> Verdict {
    equal(
        "the facts of the owner",
        &ok("listing", memory.list(owner, None, 1_000).await)?.as_slice(),
        &want,
    )?;
    for fact in want {
        equal(
            "the fact",
            &get(memory, owner, &fact.id.0).await?.as_ref(),
            &Some(fact),
        )?;
    }
    Ok(())
}

/// The names of the facts that a search found, in order.
pub(super) fn names(found: &[ScoredFact]) -> Result<Vec<String>, String> {
    let scores: Vec<f64> = found.iter().map(|found| found.score).collect();
    holds(
        &format!("scores go down: {scores:?}"),
        scores.is_sorted_by(|one, next| one >= next),
    )?;
    Ok(found
        .iter()
        .map(|found| found.fact.id.to_string())
        .collect())
}

pub(super) fn to_strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Checks which facts are found by words, in any order.
pub(super) async fn finds(
    memory: &dyn Memory,
    owner: &OwnerId,
    query: &str,
    want: &[&str],
) -> Verdict {
    let found = ok(
        &format!("searching for {query:?}"),
        memory.by_words(owner, query, 100).await,
    )?;
    holds(
        "scores are above 0",
        found
            .iter()
            .all(|found| found.score > 0.0 && found.score.is_finite()),
    )?;
    let mut got = names(&found)?;
    got.sort();
    equal(
        &format!("what is found by {query:?}"),
        &got,
        &to_strings(want),
    )
}

/// Checks that something fails in this way.
pub(super) fn check_error<T>(
    what: &str,
    result: Result<T, MemoryError>,
    kind: MemoryErrorKind,
) -> Verdict {
    let error = fails(what, result)?;
    equal(
        &format!("the kind of error of {what} ({error})"),
        &error.kind,
        &kind,
    )
}

//! The learned facts that are kept beyond a session: they belong to owners, and only their owner's agents see them.

mod check;
mod error;
mod in_memory;

use std::{collections::BTreeMap, fmt, sync::Arc};

use adjutant_llm::ModelId;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use check::check_metadata;
pub use error::{MemoryError, MemoryErrorKind};
pub use in_memory::InMemory;

/// The most bytes that the text of a fact may have.
pub const MAX_FACT_BYTES: usize = 16 * 1024;
/// The most bytes that the metadata of a fact may have, as JSON.
pub const MAX_METADATA_BYTES: usize = 16 * 1024;
/// The most facts that one owner may have.
pub const MAX_FACTS: usize = 100_000;

/// The owner of facts: a person, a tenant, an agent. Any text of 1 to 512 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OwnerId(pub Arc<str>);

/// Names a fact of an owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FactId(pub Arc<str>);

/// The data that is kept with a fact besides its text.
pub type Metadata = BTreeMap<Arc<str>, Value>;

/// A fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// Its name.
    pub id: FactId,
    /// The fact, in words.
    pub text: Arc<str>,
    /// The data that is kept with it.
    pub metadata: Metadata,
    /// The time when it was added, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// The time of its last change.
    pub updated_ms: u64,
}

/// A vector, and what made it: only vectors of one embedder can be compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Vector {
    /// The embedder.
    pub model: ModelId,
    /// The numbers.
    pub numbers: Vec<f32>,
}

/// A fact that is about to be added.
#[derive(Debug, Clone, PartialEq)]
pub struct NewFact {
    /// Its name, which its owner must not have given before.
    pub id: FactId,
    /// The fact, in words.
    pub text: Arc<str>,
    /// The data that is kept with it.
    pub metadata: Metadata,
    /// Its vector, if there is an embedder.
    pub vector: Option<Vector>,
    /// The time when it is added, in milliseconds since 1970-01-01 UTC.
    pub now_ms: u64,
}

/// A change of a fact; a part that is `None` stays.
#[derive(Debug, Clone, PartialEq)]
pub struct FactChange {
    /// The new text, with its vector if there is an embedder: without one the fact has none then.
    pub text: Option<(Arc<str>, Option<Vector>)>,
    /// Metadata that is set or, if it is `Null`, removed; the rest stays.
    pub metadata: Metadata,
    /// The time when it is changed.
    pub now_ms: u64,
}

/// A fact that a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoredFact {
    /// The fact.
    pub fact: Fact,
    /// The quality of the match: for vectors their cosine, from -1 to 1; for words above 0, and higher is better.
    pub score: f64,
}

/// A storage of facts. Every operation names the owner, and cannot access facts of other owners, whatever id it
/// receives.
#[async_trait]
pub trait Memory: Send + Sync + fmt::Debug {
    /// Adds facts, all of them or none.
    ///
    /// # Errors
    /// `Exists` if the owner has a fact of that name, `Invalid` if something is too large or empty, `Full` if the owner
    /// would have more than [`MAX_FACTS`], `Io`.
    async fn add(&self, owner: &OwnerId, facts: Vec<NewFact>) -> Result<(), MemoryError>;

    /// A fact of the owner.
    ///
    /// # Errors
    /// `Io`.
    async fn get(&self, owner: &OwnerId, id: &FactId) -> Result<Option<Fact>, MemoryError>;

    /// Changes a fact of the owner; returns its new state.
    ///
    /// # Errors
    /// `Missing` if the owner has no such fact, `Invalid`, `Io`.
    async fn update(
        &self,
        owner: &OwnerId,
        id: &FactId,
        change: FactChange,
    ) -> Result<Fact, MemoryError>;

    /// Deletes a fact of the owner.
    ///
    /// # Errors
    /// `Missing` if the owner has no such fact, `Io`.
    async fn delete(&self, owner: &OwnerId, id: &FactId) -> Result<(), MemoryError>;

    /// The owner's facts behind a place, oldest first, and of one age in the order of their names.
    ///
    /// # Errors
    /// `Io`.
    async fn list(
        &self,
        owner: &OwnerId,
        after: Option<&FactId>,
        limit: usize,
    ) -> Result<Vec<Fact>, MemoryError>;

    /// The owner's facts that have one of the words, best first; case does not matter, nothing in the query is syntax.
    ///
    /// # Errors
    /// `Io`.
    async fn by_words(
        &self,
        owner: &OwnerId,
        query: &str,
        limit: usize,
    ) -> Result<Vec<ScoredFact>, MemoryError>;

    /// The owner's facts with the most similar vectors by cosine, best first. Facts without a vector, or with one of
    /// another embedder or length, are omitted.
    ///
    /// # Errors
    /// `Io`.
    async fn by_vector(
        &self,
        owner: &OwnerId,
        vector: &Vector,
        limit: usize,
    ) -> Result<Vec<ScoredFact>, MemoryError>;

    /// Returns the point up to which a source was read for the owner: the last one stored by [`mark`](Memory::mark),
    /// 0 by default.
    ///
    /// # Errors
    /// `Io`.
    async fn read_mark(&self, owner: &OwnerId, source: &str) -> Result<u64, MemoryError>;

    /// Stores the point up to which a source was read for the owner, if it still has the expected value: `false` if
    /// another writer was faster.
    ///
    /// # Errors
    /// `Io`.
    async fn mark(
        &self,
        owner: &OwnerId,
        source: &str,
        from: u64,
        to: u64,
    ) -> Result<bool, MemoryError>;
}

#[async_trait]
impl<M: Memory + ?Sized> Memory for Arc<M> {
    async fn add(&self, owner: &OwnerId, facts: Vec<NewFact>) -> Result<(), MemoryError> {
        (**self).add(owner, facts).await
    }

    async fn get(&self, owner: &OwnerId, id: &FactId) -> Result<Option<Fact>, MemoryError> {
        (**self).get(owner, id).await
    }

    async fn update(
        &self,
        owner: &OwnerId,
        id: &FactId,
        change: FactChange,
    ) -> Result<Fact, MemoryError> {
        (**self).update(owner, id, change).await
    }

    async fn delete(&self, owner: &OwnerId, id: &FactId) -> Result<(), MemoryError> {
        (**self).delete(owner, id).await
    }

    async fn list(
        &self,
        owner: &OwnerId,
        after: Option<&FactId>,
        limit: usize,
    ) -> Result<Vec<Fact>, MemoryError> {
        (**self).list(owner, after, limit).await
    }

    async fn by_words(
        &self,
        owner: &OwnerId,
        query: &str,
        limit: usize,
    ) -> Result<Vec<ScoredFact>, MemoryError> {
        (**self).by_words(owner, query, limit).await
    }

    async fn by_vector(
        &self,
        owner: &OwnerId,
        vector: &Vector,
        limit: usize,
    ) -> Result<Vec<ScoredFact>, MemoryError> {
        (**self).by_vector(owner, vector, limit).await
    }

    async fn read_mark(&self, owner: &OwnerId, source: &str) -> Result<u64, MemoryError> {
        (**self).read_mark(owner, source).await
    }

    async fn mark(
        &self,
        owner: &OwnerId,
        source: &str,
        from: u64,
        to: u64,
    ) -> Result<bool, MemoryError> {
        (**self).mark(owner, source, from, to).await
    }
}

impl Fact {
    /// A new fact.
    pub fn new(id: FactId, text: impl Into<Arc<str>>, metadata: Metadata, now_ms: u64) -> Self {
        Self {
            id,
            text: text.into(),
            metadata,
            created_ms: now_ms,
            updated_ms: now_ms,
        }
    }
}

impl NewFact {
    /// A fact without metadata and vector.
    pub fn new(id: FactId, text: impl Into<Arc<str>>, now_ms: u64) -> Self {
        Self {
            id,
            text: text.into(),
            metadata: Metadata::new(),
            vector: None,
            now_ms,
        }
    }
}

impl FactChange {
    /// Changes nothing but the time.
    pub fn new(now_ms: u64) -> Self {
        Self {
            text: None,
            metadata: Metadata::new(),
            now_ms,
        }
    }

    /// Sets the new text.
    #[must_use]
    pub fn text(self, text: impl Into<Arc<str>>, vector: Option<Vector>) -> Self {
        Self {
            text: Some((text.into(), vector)),
            ..self
        }
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for FactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for OwnerId {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl From<&str> for FactId {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

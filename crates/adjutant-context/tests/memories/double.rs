//! The memory of the program, which fails, waits for ever, or finds nothing by words when a test wants it to.

use std::sync::atomic::{AtomicBool, Ordering};

use adjutant_agent::memory::{
    Fact, FactChange, FactId, InMemory, Memory, MemoryError, MemoryErrorKind, NewFact, OwnerId,
    ScoredFact, Vector,
};
use async_trait::async_trait;

#[derive(Debug, Default)]
pub(crate) struct Double {
    inner: InMemory,
    failing: AtomicBool,
    hanging: AtomicBool,
    deaf: AtomicBool,
}

impl Double {
    /// Makes everything fail, or work again.
    pub(crate) fn fail(&self, fails: bool) {
        self.failing.store(fails, Ordering::Relaxed);
    }

    /// Makes every search wait for ever.
    pub(crate) fn hang(&self) {
        self.hanging.store(true, Ordering::Relaxed);
    }

    /// Makes searches by words find nothing.
    pub(crate) fn deafen(&self) {
        self.deaf.store(true, Ordering::Relaxed);
    }

    fn inner(&self) -> Result<&InMemory, MemoryError> {
        if self.failing.load(Ordering::Relaxed) {
            return Err(MemoryError::new(MemoryErrorKind::Io, "the disk is gone"));
        }
        Ok(&self.inner)
    }
}

#[async_trait]
impl Memory for Double {
    async fn add(&self, owner: &OwnerId, facts: Vec<NewFact>) -> Result<(), MemoryError> {
        self.inner()?.add(owner, facts).await
    }

    async fn get(&self, owner: &OwnerId, id: &FactId) -> Result<Option<Fact>, MemoryError> {
        self.inner()?.get(owner, id).await
    }

    async fn update(
        &self,
        owner: &OwnerId,
        id: &FactId,
        change: FactChange,
    ) -> Result<Fact, MemoryError> {
        self.inner()?.update(owner, id, change).await
    }

    async fn delete(&self, owner: &OwnerId, id: &FactId) -> Result<(), MemoryError> {
        self.inner()?.delete(owner, id).await
    }

    async fn list(
        &self,
        owner: &OwnerId,
        after: Option<&FactId>,
        limit: usize,
    ) -> Result<Vec<Fact>, MemoryError> {
        self.inner()?.list(owner, after, limit).await
    }

    async fn by_words(
        &self,
        owner: &OwnerId,
        query: &str,
        limit: usize,
    ) -> Result<Vec<ScoredFact>, MemoryError> {
        if self.hanging.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        let limit = if self.deaf.load(Ordering::Relaxed) {
            0
        } else {
            limit
        };
        self.inner()?.by_words(owner, query, limit).await
    }

    async fn by_vector(
        &self,
        owner: &OwnerId,
        vector: &Vector,
        limit: usize,
    ) -> Result<Vec<ScoredFact>, MemoryError> {
        self.inner()?.by_vector(owner, vector, limit).await
    }

    async fn read_mark(&self, owner: &OwnerId, source: &str) -> Result<u64, MemoryError> {
        self.inner()?.read_mark(owner, source).await
    }

    async fn mark(
        &self,
        owner: &OwnerId,
        source: &str,
        from: u64,
        to: u64,
    ) -> Result<bool, MemoryError> {
        self.inner()?.mark(owner, source, from, to).await
    }
}

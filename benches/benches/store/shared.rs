//! Any journal, as one type.

use std::sync::Arc;

use adjutant_agent::{Folded, Journal, JournalError, Log, LogId, Owner, Post, PostNo, PostStream, RecordStream, Seq};
use async_trait::async_trait;

/// Any journal; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Shared(Arc<dyn Journal>);

impl Shared {
    pub(crate) fn new(journal: impl Journal + 'static) -> Self {
        Self(Arc::new(journal))
    }
}

#[async_trait]
impl Journal for Shared {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        self.0.own(log, owner).await
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        self.0.read(log, after)
    }

    async fn post(&self, log: &LogId, post: Post) -> Result<PostNo, JournalError> {
        self.0.post(log, post).await
    }

    fn posts(&self, log: &LogId, after: PostNo) -> Option<PostStream> {
        self.0.posts(log, after)
    }

    async fn folded(&self, log: &LogId) -> Result<Option<Folded>, JournalError> {
        self.0.folded(log).await
    }
}

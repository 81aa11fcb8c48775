//! A journal whose folds nobody is told of: its logs are read whole.

use std::sync::Arc;

use adjutant_agent::{Folded, Journal, JournalError, Log, LogId, Owner, RecordStream, Seq};
use async_trait::async_trait;

/// A journal without its folds.
#[derive(Debug, Clone)]
pub(crate) struct Unfolded(pub(crate) Arc<dyn Journal>);

#[async_trait]
impl Journal for Unfolded {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        self.0.own(log, owner).await
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        self.0.read(log, after)
    }

    async fn load_fold(&self, _: &LogId) -> Result<Option<Folded>, JournalError> {
        Ok(None)
    }
}

//! A journal that breaks off after some records: whoever writes the batch with the next one waits for ever.

use std::sync::Arc;

use adjutant_agent::{
    Flush, Head, Journal, JournalError, Log, LogId, Owner, RecordStream, Seq, Stamped,
};
use async_trait::async_trait;
use tokio::sync::Notify;

#[derive(Debug)]
pub(crate) struct Torn {
    inner: Arc<dyn Journal>,
    /// How many records a log may have.
    most: u64,
    broken: Arc<Notify>,
}

#[derive(Debug)]
struct TornLog {
    inner: Box<dyn Log>,
    most: u64,
    broken: Arc<Notify>,
}

impl Torn {
    pub(crate) fn new(inner: &(impl Journal + Clone + 'static), most: u64) -> Self {
        Self {
            inner: Arc::new(inner.clone()),
            most,
            broken: Arc::default(),
        }
    }

    /// Told when it broke off.
    pub(crate) fn broken(&self) -> Arc<Notify> {
        Arc::clone(&self.broken)
    }
}

#[async_trait]
impl Journal for Torn {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        let inner = self.inner.own(log, owner).await?;
        Ok(Box::new(TornLog {
            inner,
            most: self.most,
            broken: Arc::clone(&self.broken),
        }))
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        self.inner.read(log, after)
    }
}

#[async_trait]
impl Log for TornLog {
    fn head(&self) -> Head {
        self.inner.head()
    }

    async fn append(&mut self, batch: &[Arc<Stamped>], flush: Flush) -> Result<Head, JournalError> {
        // A batch is in the log whole or not at all.
        if batch.iter().any(|stamped| stamped.seq.0 > self.most) {
            self.broken.notify_one();
            std::future::pending::<()>().await;
        }
        self.inner.append(batch, flush).await
    }
}

//! A journal that keeps folds beside its logs, as stores do, and tells whether they were of use.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use adjutant_agent::{
    Flush, Folded, Head, Journal, JournalError, Log, LogId, MemoryJournal, Owner, Post, PostNo,
    PostStream, RecordStream, Seq, Stamped,
};
use async_trait::async_trait;

/// A journal in memory; `every` says how many records are worth a fold, if any are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keeping {
    inner: MemoryJournal,
    every: Option<u64>,
    /// Where a log was read from the last time.
    read: Arc<AtomicU64>,
}

#[derive(Debug)]
struct KeepingLog {
    inner: Box<dyn Log>,
    every: Option<u64>,
}

impl Keeping {
    pub(crate) fn every(every: u64) -> Self {
        Self {
            every: Some(every),
            ..Self::default()
        }
    }

    /// Where a log was read from the last time.
    pub(crate) fn read_after(&self) -> Seq {
        Seq(self.read.load(Ordering::SeqCst))
    }

    /// Appends to a log whoever owns it.
    pub(crate) async fn append(&self, log: &LogId, records: &[Arc<Stamped>]) {
        let mut log = self
            .inner
            .own(
                log,
                &Owner {
                    takes_over: true,
                    ..Owner::default()
                },
            )
            .await
            .expect("memory does not fail");
        log.append(records, Flush::Now)
            .await
            .expect("memory does not fail");
    }
}

#[async_trait]
impl Journal for Keeping {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        // Whoever opens a log here is the program after the one before.
        let inner = self
            .inner
            .own(
                log,
                &Owner {
                    takes_over: true,
                    ..owner.clone()
                },
            )
            .await?;
        Ok(Box::new(KeepingLog {
            inner,
            every: self.every,
        }))
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        self.read.store(after.0, Ordering::SeqCst);
        self.inner.read(log, after)
    }

    async fn post(&self, log: &LogId, post: Post) -> Result<PostNo, JournalError> {
        self.inner.post(log, post).await
    }

    fn posts(&self, log: &LogId, after: PostNo) -> Option<PostStream> {
        self.inner.posts(log, after)
    }

    async fn load_fold(&self, log: &LogId) -> Result<Option<Folded>, JournalError> {
        self.inner.load_fold(log).await
    }
}

#[async_trait]
impl Log for KeepingLog {
    fn head(&self) -> Head {
        self.inner.head()
    }

    async fn append(&mut self, batch: &[Arc<Stamped>], flush: Flush) -> Result<Head, JournalError> {
        self.inner.append(batch, flush).await
    }

    fn keeps(&self) -> Option<u64> {
        self.every
    }

    async fn keep(&mut self, folded: Folded) -> Result<(), JournalError> {
        self.inner.keep(folded).await
    }

    async fn mark_consumed(&mut self, upto: PostNo) -> Result<(), JournalError> {
        self.inner.mark_consumed(upto).await
    }
}

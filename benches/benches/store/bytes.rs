//! A journal that stores bytes as a store does, but in memory: what opening and appending cost without a disk.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use adjutant_agent::{
    Digest, Epoch, Flush, Folded, Head, Journal, JournalError, Log, LogId, Owner, RecordStream,
    Seq, Stamped, StoredRecord,
};
use async_trait::async_trait;
use futures_util::stream;

/// A journal in memory that keeps bytes and checks their chain.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bytes {
    logs: Arc<Mutex<BTreeMap<LogId, Arc<Mutex<Kept>>>>>,
    keeps: Option<u64>,
}

#[derive(Debug, Default)]
struct Kept {
    records: Vec<StoredRecord>,
    folded: Option<Folded>,
}

#[derive(Debug)]
struct BytesLog {
    kept: Arc<Mutex<Kept>>,
    keeps: Option<u64>,
    head: Head,
    link: Digest,
}

impl Bytes {
    /// A journal that keeps folds, with at least so many records between two.
    pub(crate) fn keeping(records: u64) -> Self {
        Self {
            keeps: Some(records),
            ..Self::default()
        }
    }

    fn log(&self, log: &LogId) -> Arc<Mutex<Kept>> {
        let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(logs.entry(log.clone()).or_default())
    }
}

#[async_trait]
impl Journal for Bytes {
    async fn own(&self, log: &LogId, _: &Owner) -> Result<Box<dyn Log>, JournalError> {
        let kept = self.log(log);
        let (seq, link) = {
            let kept = lock(&kept);
            (
                Seq(kept.records.len() as u64),
                kept.records
                    .last()
                    .map_or(Digest::GENESIS, |newest| newest.link),
            )
        };
        Ok(Box::new(BytesLog {
            kept,
            keeps: self.keeps,
            head: Head {
                seq,
                epoch: Epoch(1),
            },
            link,
        }))
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        let kept = self.log(log);
        let kept = lock(&kept);
        let from = usize::try_from(after.0)
            .unwrap_or(usize::MAX)
            .min(kept.records.len());
        let mut link = from
            .checked_sub(1)
            .map_or(Digest::GENESIS, |at| kept.records[at].link);
        let records = kept.records[from..].to_vec();
        Box::pin(stream::iter(records.into_iter().map(move |record| {
            let before = std::mem::replace(&mut link, record.link);
            record.open(&before)
        })))
    }

    async fn load_fold(&self, log: &LogId) -> Result<Option<Folded>, JournalError> {
        Ok(lock(&self.log(log)).folded.clone())
    }
}

#[async_trait]
impl Log for BytesLog {
    fn head(&self) -> Head {
        self.head
    }

    async fn append(&mut self, batch: &[Arc<Stamped>], _: Flush) -> Result<Head, JournalError> {
        for stamped in batch {
            let bytes = stamped.bytes()?.clone();
            self.link = self.link.then(&bytes);
            self.head.seq = stamped.seq;
            let attachments = stamped.attachments()?.to_vec();
            lock(&self.kept).records.push(StoredRecord {
                seq: stamped.seq,
                bytes,
                link: self.link,
                attachments,
            });
        }
        Ok(self.head)
    }

    fn keeps(&self) -> Option<u64> {
        self.keeps
    }

    async fn keep(&mut self, folded: Folded) -> Result<(), JournalError> {
        lock(&self.kept).folded = Some(folded);
        Ok(())
    }
}

fn lock(kept: &Mutex<Kept>) -> std::sync::MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

//! A journal that lives as long as the program.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use futures_util::stream;

use super::{Epoch, Flush, Head, Journal, JournalError, JournalErrorKind, Log, LogId, RecordStream};
use crate::{Seq, Stamped};

/// A journal that lives as long as the program; clones share it.
#[derive(Debug, Clone, Default)]
pub struct MemoryJournal {
    logs: Arc<Mutex<HashMap<LogId, Arc<Mutex<Kept>>>>>,
}

#[derive(Debug, Default)]
struct Kept {
    epoch: Epoch,
    records: Vec<Arc<Stamped>>,
}

#[derive(Debug)]
struct MemoryLog {
    id: LogId,
    epoch: Epoch,
    seq: Seq,
    kept: Arc<Mutex<Kept>>,
}

impl MemoryJournal {
    /// A journal without logs.
    pub fn new() -> Self {
        Self::default()
    }

    fn log(&self, log: &LogId) -> Option<Arc<Mutex<Kept>>> {
        lock(&self.logs).get(log).cloned()
    }
}

#[async_trait]
impl Journal for MemoryJournal {
    async fn own(&self, log: &LogId) -> Result<Box<dyn Log>, JournalError> {
        let kept = Arc::clone(lock(&self.logs).entry(log.clone()).or_default());
        let (epoch, seq) = {
            let mut kept = lock(&kept);
            kept.epoch.0 += 1;
            (kept.epoch, Seq(kept.records.len() as u64))
        };
        Ok(Box::new(MemoryLog { id: log.clone(), epoch, seq, kept }))
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        let Some(kept) = self.log(log) else {
            let error = JournalError::new(JournalErrorKind::Missing, format!("no log is called {:?}", log.0));
            return Box::pin(stream::iter([Err(error)]));
        };
        let from = usize::try_from(after.0).unwrap_or(usize::MAX);
        let records: Vec<_> = lock(&kept).records.iter().skip(from).cloned().map(Ok).collect();
        Box::pin(stream::iter(records))
    }
}

#[async_trait]
impl Log for MemoryLog {
    fn head(&self) -> Head {
        Head { seq: self.seq, epoch: self.epoch }
    }

    async fn append(&mut self, batch: &[Arc<Stamped>], _: Flush) -> Result<Head, JournalError> {
        let mut kept = lock(&self.kept);
        if kept.epoch != self.epoch {
            let message = format!("log {:?} has been taken over by another owner", self.id.0);
            return Err(JournalError::new(JournalErrorKind::Fenced, message));
        }
        let follows = (self.seq.0 + 1..).zip(batch).all(|(seq, stamped)| stamped.seq.0 == seq);
        if !follows {
            let message = format!("a batch does not follow record {} of log {:?}", self.seq, self.id.0);
            return Err(JournalError::new(JournalErrorKind::Corrupt, message));
        }
        kept.records.extend(batch.iter().cloned());
        self.seq.0 += batch.len() as u64;
        Ok(self.head())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

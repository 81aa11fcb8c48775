//! The logs of calls and sessions: where they are, which of them are in use, and when they are let go.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use adjutant_agent::{Journal, LogId, MemoryJournal};

/// The number of logs that are kept in memory.
const MANY_LOGS: usize = 1_000;

/// The logs of a host.
pub(super) struct Kept {
    pub(super) journal: Arc<dyn Journal>,
    /// Only in memory: the logs, oldest first.
    order: Option<Mutex<VecDeque<LogId>>>,
    in_use: Mutex<HashSet<LogId>>,
}

/// The use of a log by one request.
pub(super) struct InUse {
    kept: Arc<Kept>,
    log: LogId,
}

impl Kept {
    pub(super) fn in_memory() -> Self {
        let order = Some(Mutex::default());
        Self {
            journal: Arc::new(MemoryJournal::default()),
            order,
            in_use: Mutex::default(),
        }
    }

    pub(super) fn in_journal(journal: Arc<dyn Journal>) -> Self {
        Self {
            journal,
            order: None,
            in_use: Mutex::default(),
        }
    }

    /// Takes a log for one request; `None` if another one has it.
    pub(super) fn take(self: &Arc<Self>, log: &LogId) -> Option<InUse> {
        lock(&self.in_use).insert(log.clone()).then(|| InUse {
            kept: Arc::clone(self),
            log: log.clone(),
        })
    }

    /// Keeps a log beyond its request; in memory the oldest goes for it.
    pub(super) async fn keep(&self, log: &LogId) {
        let Some(order) = &self.order else { return };
        let oldest = {
            let mut order = lock(order);
            order.retain(|kept| kept != log);
            order.push_back(log.clone());
            (order.len() > MANY_LOGS)
                .then(|| order.pop_front())
                .flatten()
        };
        if let Some(oldest) = oldest {
            self.forget(&oldest).await;
        }
    }

    /// Deletes a log that is no longer needed.
    pub(super) async fn forget(&self, log: &LogId) {
        if let Err(error) = self.journal.delete(log).await {
            tracing::debug!(%error, "the log of a call stays");
        }
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        lock(&self.kept.in_use).remove(&self.log);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

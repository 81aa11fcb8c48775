//! The sessions that are driven in this process, each by one task at a time.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use adjutant_agent::LogId;
use tokio::sync::OwnedMutexGuard;

/// The sessions that are driven here.
///
/// An attempt of the server ends with its connection, but the work that it started continues; the next attempt waits
/// for it.
#[derive(Debug, Clone, Default)]
pub(crate) struct DriveLocks(Arc<Mutex<HashMap<LogId, Arc<tokio::sync::Mutex<()>>>>>);

/// The right to drive a session here.
#[derive(Debug)]
pub(crate) struct DriveLock {
    locks: DriveLocks,
    log: LogId,
    held: Option<OwnedMutexGuard<()>>,
}

impl DriveLocks {
    /// Waits until nothing here drives the session.
    pub(crate) async fn lock(&self, log: &LogId) -> DriveLock {
        let one = Arc::clone(self.all().entry(log.clone()).or_default());
        // From here on, every early exit cleans up the entry.
        let mut lock = DriveLock {
            locks: self.clone(),
            log: log.clone(),
            held: None,
        };
        lock.held = Some(one.lock_owned().await);
        lock
    }

    /// The sessions that are driven here now.
    pub(crate) fn names(&self) -> Vec<LogId> {
        self.all().keys().cloned().collect()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<LogId, Arc<tokio::sync::Mutex<()>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for DriveLock {
    fn drop(&mut self) {
        let mut all = self.locks.all();
        drop(self.held.take());
        // Waiting tasks hold a reference too.
        if all
            .get(&self.log)
            .is_some_and(|one| Arc::strong_count(one) == 1)
        {
            all.remove(&self.log);
        }
    }
}

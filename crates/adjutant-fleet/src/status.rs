//! The activity of a worker, in numbers.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// The activity of a worker since its start, in numbers; clones share the same state.
#[derive(Debug, Clone, Default)]
pub struct FleetStatus {
    counts: Arc<WorkCounts>,
}

#[derive(Debug, Default)]
struct WorkCounts {
    at_work: AtomicU64,
    claimed: AtomicU64,
    finished: AtomicU64,
    parked: AtomicU64,
    failed: AtomicU64,
}

/// The way a stretch of work on a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// Its run came to its end.
    Finished,
    /// Its run waits for answers.
    Parked,
    /// The storage failed, in words; the session is due as before.
    Failed(Arc<str>),
    /// It was set aside, in words.
    Aside(Arc<str>),
    /// There was nothing to do, or another worker does it.
    Nothing,
}

/// A session that is worked on, until this is dropped.
pub(crate) struct WorkGuard(FleetStatus);

impl FleetStatus {
    /// Returns the number of sessions that it works on now.
    pub fn at_work(&self) -> u64 {
        self.counts.at_work.load(Ordering::Relaxed)
    }

    /// Returns the number of times that it took a session.
    pub fn claim_count(&self) -> u64 {
        self.counts.claimed.load(Ordering::Relaxed)
    }

    /// Returns the number of runs that it brought to their ends, whatever these were.
    pub fn finish_count(&self) -> u64 {
        self.counts.finished.load(Ordering::Relaxed)
    }

    /// Returns the number of times that a run parked.
    pub fn park_count(&self) -> u64 {
        self.counts.parked.load(Ordering::Relaxed)
    }

    /// Returns the number of times that a session could not be worked on.
    pub fn failure_count(&self) -> u64 {
        self.counts.failed.load(Ordering::Relaxed)
    }

    pub(crate) fn works(&self) -> WorkGuard {
        self.counts.claimed.fetch_add(1, Ordering::Relaxed);
        self.counts.at_work.fetch_add(1, Ordering::Relaxed);
        WorkGuard(self.clone())
    }

    pub(crate) fn record_end(&self, how: Ended) {
        let count = match how {
            Ended::Finished => &self.counts.finished,
            Ended::Parked => &self.counts.parked,
            Ended::Failed(_) | Ended::Aside(_) => &self.counts.failed,
            Ended::Nothing => return,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for WorkGuard {
    fn drop(&mut self) {
        self.0.counts.at_work.fetch_sub(1, Ordering::Relaxed);
    }
}

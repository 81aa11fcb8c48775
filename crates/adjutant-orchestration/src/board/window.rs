//! The common knowledge of the clones of a board: the ready tasks, so that each is tried by one of them at a time.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use adjutant_agent::kv::Version;

/// The state that the clones of a board share.
#[derive(Debug, Default)]
pub(super) struct BoardShared {
    window: Mutex<Window>,
    /// Held by the task that searches for ready tasks.
    pub(super) refill: tokio::sync::Mutex<()>,
}

/// The next ready tasks, as of a version of the queue. Others may have claimed them, but no new ones came.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// The version of the queue's key before the key-value store was read.
    queue: Option<Version>,
    /// The keys of ready tasks, in order.
    pub(super) ready: VecDeque<Arc<str>>,
    /// True if those were all.
    pub(super) is_whole: bool,
    /// The agents for which nothing is reserved.
    pub(super) unreserved: HashSet<Arc<str>>,
    /// The time of the last check of leases.
    pub(super) tended_ms: Option<u64>,
}

/// A ready task that one worker tries to claim. Without a reported result, everything is read again.
#[derive(Debug)]
pub(super) struct Tried<'a> {
    shared: &'a BoardShared,
    is_told: bool,
}

impl BoardShared {
    pub(super) fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tries(&self) -> Tried<'_> {
        Tried {
            shared: self,
            is_told: false,
        }
    }
}

impl Window {
    /// Clears the cache if the queue is newer; returns whether the window belongs to this queue.
    pub(super) fn is_at(&mut self, queue: Version) -> bool {
        if self.queue.is_none_or(|known| known < queue) {
            *self = Self {
                queue: Some(queue),
                tended_ms: self.tended_ms,
                ..Self::default()
            };
        }
        self.queue == Some(queue)
    }
}

impl Tried<'_> {
    /// It was claimed, by this worker or by another.
    pub(super) fn mark_claimed(mut self) {
        self.is_told = true;
    }
}

impl Drop for Tried<'_> {
    fn drop(&mut self) {
        if !self.is_told {
            self.shared.window().queue = None;
        }
    }
}

//! Slots: the number of instances of an entry that work at a time. An instance that waits for its own agents does not
//! count, so that no instance waits for the slot of one that waits for it.

use std::{
    fmt,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The place of one instance in the concurrency limit of its entry; clones are one place.
#[derive(Clone)]
pub struct Slot {
    inner: Arc<SlotShared>,
}

/// A taken slot, until this is dropped.
#[derive(Debug)]
#[must_use = "the slot is free again when this is dropped"]
pub struct Occupied {
    slot: Slot,
}

/// A slot is free while its instance waits for its own agents.
#[derive(Debug)]
pub(crate) struct Away {
    slot: Slot,
    is_back: bool,
}

struct SlotShared {
    free: Option<Arc<Semaphore>>,
    state: Mutex<State>,
    /// Notifies the waiters for the instance's permit: it has one, or no longer needs one.
    changed: Notify,
}

#[derive(Default)]
struct State {
    is_occupied: bool,
    permit: Option<OwnedSemaphorePermit>,
    /// The number of calls of the instance that wait for its own agents.
    away: usize,
}

impl Slot {
    pub(super) fn new(free: Option<Arc<Semaphore>>) -> Self {
        Self {
            inner: Arc::new(SlotShared {
                free,
                state: Mutex::default(),
                changed: Notify::new(),
            }),
        }
    }

    /// Waits until the instance may work, in the order of the calls.
    ///
    /// Cancel: the place in the queue is lost.
    pub async fn take(&self) -> Occupied {
        let permit = self.permit().await;
        let mut state = self.state();
        (state.is_occupied, state.permit) = (true, permit);
        drop(state);
        Occupied { slot: self.clone() }
    }

    /// The instance waits for its own agents: another one can work in the meantime.
    pub(crate) fn leave(&self) -> Away {
        let permit = {
            let mut state = self.state();
            state.away += 1;
            state.permit.take()
        };
        drop(permit);
        self.inner.changed.notify_waiters();
        Away {
            slot: self.clone(),
            is_back: false,
        }
    }

    async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(self.inner.free.as_ref()?)
            .acquire_owned()
            .await
            .ok()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// True if the instance works and has no permit for it.
    fn wants_permit(&self) -> bool {
        self.is_occupied && self.away == 0 && self.permit.is_none()
    }
}

impl Away {
    /// Waits until the instance may work again.
    pub(crate) async fn back(mut self) {
        if !self.mark_returned() {
            return;
        }
        let inner = &self.slot.inner;
        let mut changed = pin!(inner.changed.notified());
        changed.as_mut().enable();
        if !self.slot.state().wants_permit() {
            return;
        }
        // Several calls of the instance may come back one after the other: one permit is enough for all of them.
        let permit = tokio::select! {
            biased;
            () = changed => return,
            permit = self.slot.permit() => permit,
        };
        let mut state = self.slot.state();
        if state.wants_permit() {
            state.permit = permit;
        }
        drop(state);
        inner.changed.notify_waiters();
    }

    /// True if no other call of the instance is waiting.
    fn mark_returned(&mut self) -> bool {
        if std::mem::replace(&mut self.is_back, true) {
            return false;
        }
        let mut state = self.slot.state();
        state.away = state.away.saturating_sub(1);
        state.away == 0
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        self.mark_returned();
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        let permit = {
            let mut state = self.slot.state();
            state.is_occupied = false;
            state.permit.take()
        };
        drop(permit);
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Slot")
            .field("is_occupied", &state.is_occupied)
            .field("away", &state.away)
            .finish()
    }
}

//! The only activity in flight. It is polled when it is woken, and not whenever its executor is polled.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures_util::{FutureExt, task::AtomicWaker};

use super::{Performed, Performing};

/// At most one activity; usually there is no second one.
pub(super) struct Alone {
    performing: Option<Performing>,
    bell: Arc<Bell>,
    waker: Waker,
}

/// Remembers that the activity was woken, and wakes its executor.
#[derive(Default)]
struct Bell {
    rung: AtomicBool,
    executor: AtomicWaker,
}

impl Default for Alone {
    fn default() -> Self {
        let bell = Arc::<Bell>::default();
        Self {
            performing: None,
            waker: Waker::from(Arc::clone(&bell)),
            bell,
        }
    }
}

impl Alone {
    pub(super) fn is_empty(&self) -> bool {
        self.performing.is_none()
    }

    pub(super) fn put(&mut self, performing: Performing) {
        self.performing = Some(performing);
        self.bell.rung.store(true, Ordering::Release);
    }

    pub(super) fn take(&mut self) -> Option<Performing> {
        self.performing.take()
    }

    /// Polls the activity if it was woken; returns its result.
    pub(super) fn poll(&mut self, cx: &Context<'_>) -> Option<Performed> {
        let performing = self.performing.as_mut()?;
        self.bell.executor.register(cx.waker());
        if !self.bell.rung.swap(false, Ordering::AcqRel) {
            return None;
        }
        let Poll::Ready(performed) = performing.poll_unpin(&mut Context::from_waker(&self.waker))
        else {
            return None;
        };
        self.performing = None;
        Some(performed)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        self.executor.wake();
    }
}

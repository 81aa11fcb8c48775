//! Waits until everything emitted is saved.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
};

use adjutant_core::Error;

/// The save requests of one executor: each has a number, and is completed together with all earlier ones.
#[derive(Default)]
pub(super) struct Saves {
    asked: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last completed request.
    saved: u64,
    /// The end of the executor: an error if not all that it showed is saved.
    ended: Option<Result<(), Error>>,
    waiting: Vec<Waker>,
}

impl Saves {
    /// Requests a save of everything emitted so far; returns the number of the request.
    pub(super) fn ask(&self) -> u64 {
        self.asked.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The last request.
    pub(super) fn last_request(&self) -> u64 {
        self.asked.load(Ordering::Acquire)
    }

    /// Waits for the completion of a request, or for the end of the executor.
    pub(super) fn poll(&self, wish: u64, cx: &Context<'_>) -> Poll<Result<(), Error>> {
        let mut state = self.state();
        if state.saved >= wish {
            return Poll::Ready(Ok(()));
        }
        if let Some(ended) = &state.ended {
            return Poll::Ready(ended.clone());
        }
        if !state
            .waiting
            .iter()
            .any(|known| known.will_wake(cx.waker()))
        {
            state.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Completes the requests up to this one.
    pub(super) fn complete(&self, upto: u64) {
        self.change(|state| state.saved = state.saved.max(upto));
    }

    /// The executor has ended; the first word counts.
    pub(super) fn end(&self, ended: Result<(), Error>) {
        self.change(|state| {
            state.ended.get_or_insert(ended);
        });
    }

    /// True if the executor has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.state().ended.is_some()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

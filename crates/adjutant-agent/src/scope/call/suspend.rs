//! Suspension: a call is suspended for the pauses of its body and its children when none of them can continue without
//! answers.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

use adjutant_core::Pause;

/// The pauses that a call waits for, and the number of its running children.
#[derive(Debug, Default)]
pub(crate) struct Suspension {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    pauses: Vec<Arc<Pause>>,
    at_work: usize,
    waker: Option<Waker>,
}

impl Suspension {
    /// Suspends the call for these pauses; its body is dropped as soon as none of its children is running.
    pub(crate) fn suspend(&self, pauses: impl IntoIterator<Item = Arc<Pause>>) {
        let mut state = self.state();
        for pause in pauses {
            if !state.pauses.iter().any(|known| known.id == pause.id) {
                state.pauses.push(pause);
            }
        }
        state.tell();
    }

    /// A child begins to work.
    pub(super) fn enter(&self) {
        self.state().at_work += 1;
    }

    /// A child has ended, or waits.
    pub(super) fn leave(&self) {
        let mut state = self.state();
        state.at_work = state.at_work.saturating_sub(1);
        state.tell();
    }

    /// Takes the pauses of the call, if only external input can continue it.
    pub(super) fn take(&self) -> Option<Vec<Arc<Pause>>> {
        let mut state = self.state();
        state.is_ready().then(|| std::mem::take(&mut state.pauses))
    }

    /// Waits until only the outside can continue the call.
    pub(super) async fn ready(&self) {
        std::future::poll_fn(|cx| {
            let mut state = self.state();
            if state.is_ready() {
                return Poll::Ready(());
            }
            state.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_ready(&self) -> bool {
        self.at_work == 0 && !self.pauses.is_empty()
    }

    fn tell(&mut self) {
        if self.is_ready() {
            self.waker.take().into_iter().for_each(Waker::wake);
        }
    }
}

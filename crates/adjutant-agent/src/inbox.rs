//! What reaches a run from outside its own loop: wishes to stop, and the notes of its calls.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    task::Context,
};

use adjutant_llm::CallId;
use futures_util::task::AtomicWaker;
use tokio::sync::oneshot;

use crate::{CancelBy, Record};

/// Something from outside the loop.
#[expect(clippy::large_enum_variant, reason = "few wait at a time, and most of them are notes")]
pub(crate) enum Input {
    /// Someone wishes to stop.
    Cancel(CancelBy),
    /// Someone wishes to stop one call.
    StopCall(CallId),
    /// A call notes something; `done` hears when it is durable.
    Note { call: CallId, record: Record, done: Option<oneshot::Sender<()>> },
}

/// The queue of inputs of one port.
#[derive(Default)]
pub(crate) struct Inbox {
    queue: Mutex<Vec<Input>>,
    port: AtomicWaker,
}

/// Stops a run from anywhere; cheap to clone. Stopping a run that has ended does nothing.
#[derive(Clone)]
pub struct Stopper {
    pub(crate) inbox: Arc<Inbox>,
}

impl Inbox {
    pub(crate) fn push(&self, input: Input) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).push(input);
        self.port.wake();
    }

    /// Takes what is there; the port is woken when more comes.
    pub(crate) fn take(&self, cx: &Context<'_>) -> Vec<Input> {
        self.port.register(cx.waker());
        std::mem::take(&mut *self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Stopper {
    /// Wishes to stop the run: the reply is interrupted, calls are cancelled, and the turn is closed.
    pub fn stop(&self, by: CancelBy) {
        self.inbox.push(Input::Cancel(by));
    }

    /// Wishes to stop one call of the turn at hand: its result says so, and the run goes on.
    pub fn stop_call(&self, call: CallId) {
        self.inbox.push(Input::StopCall(call));
    }
}

impl fmt::Debug for Stopper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stopper").finish_non_exhaustive()
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").finish_non_exhaustive()
    }
}

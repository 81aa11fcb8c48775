//! Input that reaches a run from outside its own loop: cancellation requests, and the notes of its calls.

mod saves;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Context,
};

use adjutant_core::{CancelBy, Error, Record};
use adjutant_llm::{CallId, ThreadId};
use adjutant_tool::{Cancel, Identity};
use futures_util::task::AtomicWaker;
use tokio::sync::oneshot;

use crate::queue::Queues;
use saves::Saves;

/// Something from outside the loop.
pub(crate) enum Input {
    /// A request to cancel the run.
    Cancel(CancelBy),
    /// A request to cancel one call.
    StopCall(CallId),
    /// A call records a note; `done` is notified when it is durable.
    Note {
        call: CallId,
        record: Box<Record>,
        done: Option<oneshot::Sender<()>>,
    },
    /// A note of the run; `done` is notified when it is durable.
    Kept {
        record: Box<Record>,
        done: Option<oneshot::Sender<()>>,
    },
}

/// The queue of inputs of one executor.
#[derive(Default)]
pub(crate) struct Inbox {
    queue: Mutex<Queue>,
    executor: AtomicWaker,
    /// Of the first agent: its running sub-agents.
    threads: Mutex<BTreeMap<ThreadId, AtWork>>,
    saves: Saves,
}

/// A running sub-agent.
#[derive(Debug, Clone)]
pub(crate) struct AtWork {
    pub(crate) who: Arc<Identity>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) queues: Arc<Queues>,
}

#[derive(Default)]
struct Queue {
    inputs: Vec<Input>,
    /// The first cancellation request; it stays after the executor has taken it.
    wish: Option<CancelBy>,
    /// Cancelled with the first request; created on first use.
    stop: Option<Cancel>,
}

/// Stops a run from anywhere; cheap to clone. Stopping a run that has ended does nothing.
#[derive(Clone)]
pub struct Stopper {
    pub(crate) inbox: Arc<Inbox>,
}

impl Inbox {
    pub(crate) fn push(&self, input: Input) {
        let mut queue = self.queue();
        let wish = match &input {
            Input::Cancel(by) => Some(*queue.wish.get_or_insert(*by)),
            Input::Note { .. } | Input::Kept { .. } | Input::StopCall(_) => None,
        };
        let stop = wish.and(queue.stop.clone());
        queue.inputs.push(input);
        drop(queue);
        stop.iter().for_each(Cancel::cancel);
        self.executor.wake();
    }

    /// Takes the pending input; the executor is woken when more arrives.
    pub(crate) fn take(&self, cx: &Context<'_>) -> Vec<Input> {
        self.executor.register(cx.waker());
        std::mem::take(&mut self.queue().inputs)
    }

    /// True if nothing is there.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue().inputs.is_empty()
    }

    /// Records a cancellation request that the executor already knows.
    pub(crate) fn record_cancel(&self, by: CancelBy) {
        let mut queue = self.queue();
        queue.wish.get_or_insert(by);
        let stop = queue.stop.clone();
        drop(queue);
        stop.iter().for_each(Cancel::cancel);
    }

    /// Returns the source of the first cancellation request, if there was one.
    pub(crate) fn wish(&self) -> Option<CancelBy> {
        self.queue().wish
    }

    /// A token that is cancelled with the first request.
    pub(crate) fn stop(&self) -> Cancel {
        let mut queue = self.queue();
        let stop = queue.stop.get_or_insert_with(Cancel::new).clone();
        if queue.wish.is_some() {
            stop.cancel();
        }
        stop
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a running agent of this thread.
    pub(crate) fn admit(&self, at_work: AtWork) {
        self.threads().insert(at_work.who.thread.clone(), at_work);
    }

    /// Returns the running sub-agents, by thread.
    pub(crate) fn at_work(&self) -> Vec<AtWork> {
        self.threads().values().cloned().collect()
    }

    /// Returns the agent of this thread, if it is running.
    pub(crate) fn find(&self, thread: &ThreadId) -> Option<AtWork> {
        self.threads().get(thread).cloned()
    }

    fn threads(&self) -> MutexGuard<'_, BTreeMap<ThreadId, AtWork>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the agent of this thread, which has stopped.
    pub(crate) fn dismiss(&self, thread: &ThreadId) {
        let gone = self.threads().remove(thread);
        // The records of that agent are saved with those of the first agent.
        gone.iter().for_each(|gone| gone.inbox.end(Ok(())));
    }

    /// Returns the inboxes of the selected running sub-agents.
    pub(crate) fn under(&self, is_asked: impl Fn(&ThreadId) -> bool) -> Vec<Arc<Inbox>> {
        let threads = self.threads();
        threads
            .iter()
            .filter(|(thread, _)| is_asked(thread))
            .map(|(_, it)| Arc::clone(&it.inbox))
            .collect()
    }

    /// Requests that the executor save everything emitted so far; returns the number of the request.
    pub(crate) fn ask_to_save(&self) -> u64 {
        let wish = self.saves.ask();
        self.executor.wake();
        wish
    }

    /// Completes when everything is saved that the executor has emitted so far.
    ///
    /// # Errors
    /// The error that prevented the save.
    pub(crate) async fn save(&self) -> Result<(), Error> {
        let wish = self.ask_to_save();
        std::future::poll_fn(|cx| self.saves.poll(wish, cx)).await
    }

    /// The last save request.
    pub(crate) fn last_save_request(&self) -> u64 {
        self.saves.last_request()
    }

    /// Completes the save requests up to this one.
    pub(crate) fn complete_saves(&self, upto: u64) {
        self.saves.complete(upto);
    }

    /// True if the executor is gone.
    pub(crate) fn has_ended(&self) -> bool {
        self.saves.has_ended()
    }

    /// Waits until the executor is gone.
    pub(crate) async fn wait_for_end(&self) {
        // A request that never completes.
        let _ = std::future::poll_fn(|cx| self.saves.poll(u64::MAX, cx)).await;
    }

    /// The executor is gone: whether all its emitted records are saved.
    pub(crate) fn end(&self, ended: Result<(), Error>) {
        self.saves.end(ended);
    }
}

impl Stopper {
    /// Cancels the run: the reply is interrupted, calls are cancelled, and the turn is closed.
    pub fn stop(&self, by: CancelBy) {
        self.inbox.push(Input::Cancel(by));
    }

    /// Cancels one call of the current turn: its result records it, and the run continues.
    pub fn stop_call(&self, call: CallId) {
        self.inbox.push(Input::StopCall(call));
    }

    /// Cancels the run of one sub-agent, by its thread, and of all agents under it; others continue.
    ///
    /// Returns whether such an agent is running.
    pub fn stop_thread(&self, thread: &ThreadId, by: CancelBy) -> bool {
        let found = self.inbox.find(thread);
        found.is_some_and(|found| {
            found.inbox.push(Input::Cancel(by));
            true
        })
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

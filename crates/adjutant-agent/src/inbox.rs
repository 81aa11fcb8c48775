//! Input that reaches a run from outside its own loop: wishes to stop, and the notes of its calls.

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
    /// Someone wishes to stop.
    Cancel(CancelBy),
    /// Someone wishes to stop one call.
    StopCall(CallId),
    /// A call notes something; `done` hears when it is durable.
    Note {
        call: CallId,
        record: Box<Record>,
        done: Option<oneshot::Sender<()>>,
    },
    /// Something that belongs to the run is noted; `done` hears when it is durable.
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
    /// Of the first agent: the agents under it that are at work.
    threads: Mutex<BTreeMap<ThreadId, AtWork>>,
    saves: Saves,
}

/// An agent under the first one that is at work.
#[derive(Debug, Clone)]
pub(crate) struct AtWork {
    pub(crate) who: Arc<Identity>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) queues: Arc<Queues>,
}

#[derive(Default)]
struct Queue {
    inputs: Vec<Input>,
    /// The first wish to stop; it stays when the executor has taken it.
    wish: Option<CancelBy>,
    /// Cancelled with the first wish; made when someone wants to hear of it.
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

    /// Takes what is there; the executor is woken when more comes.
    pub(crate) fn take(&self, cx: &Context<'_>) -> Vec<Input> {
        self.executor.register(cx.waker());
        std::mem::take(&mut self.queue().inputs)
    }

    /// True if nothing is there.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue().inputs.is_empty()
    }

    /// Someone wishes to stop, which the executor has heard of.
    pub(crate) fn wished(&self, by: CancelBy) {
        let mut queue = self.queue();
        queue.wish.get_or_insert(by);
        let stop = queue.stop.clone();
        drop(queue);
        stop.iter().for_each(Cancel::cancel);
    }

    /// Returns the source of the first wish to stop, if there was one.
    pub(crate) fn wish(&self) -> Option<CancelBy> {
        self.queue().wish
    }

    /// Cancelled as soon as someone wishes to stop.
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

    /// An agent of this thread is at work.
    pub(crate) fn admit(&self, at_work: AtWork) {
        self.threads().insert(at_work.who.thread.clone(), at_work);
    }

    /// The agents under the first one that are at work, by thread.
    pub(crate) fn at_work(&self) -> Vec<AtWork> {
        self.threads().values().cloned().collect()
    }

    /// The agent of this thread, if it is at work.
    pub(crate) fn find(&self, thread: &ThreadId) -> Option<AtWork> {
        self.threads().get(thread).cloned()
    }

    fn threads(&self) -> MutexGuard<'_, BTreeMap<ThreadId, AtWork>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The agent of this thread is not at work any more.
    pub(crate) fn dismiss(&self, thread: &ThreadId) {
        let gone = self.threads().remove(thread);
        // The records of that agent are saved with those of the first agent.
        gone.iter().for_each(|gone| gone.inbox.end(Ok(())));
    }

    /// The inboxes of the agents under the first one that are at work, as far as they are asked for.
    pub(crate) fn under(&self, is_asked: impl Fn(&ThreadId) -> bool) -> Vec<Arc<Inbox>> {
        let threads = self.threads();
        threads
            .iter()
            .filter(|(thread, _)| is_asked(thread))
            .map(|(_, it)| Arc::clone(&it.inbox))
            .collect()
    }

    /// Wishes that the executor save everything that it has shown up to now; gives the number of the wish.
    pub(crate) fn ask_to_save(&self) -> u64 {
        let wish = self.saves.ask();
        self.executor.wake();
        wish
    }

    /// Ends when everything is saved that the executor has shown up to now.
    ///
    /// # Errors
    /// What kept it from being saved.
    pub(crate) async fn save(&self) -> Result<(), Error> {
        let wish = self.ask_to_save();
        std::future::poll_fn(|cx| self.saves.poll(wish, cx)).await
    }

    /// The newest wish to save.
    pub(crate) fn asked_to_save(&self) -> u64 {
        self.saves.asked()
    }

    /// The wishes to save up to this one are fulfilled.
    pub(crate) fn saved(&self, upto: u64) {
        self.saves.saved(upto);
    }

    /// True if the executor is no more.
    pub(crate) fn has_ended(&self) -> bool {
        self.saves.has_ended()
    }

    /// Waits until the executor is no more.
    pub(crate) async fn ended(&self) {
        // A wish that is never fulfilled.
        let _ = std::future::poll_fn(|cx| self.saves.poll(u64::MAX, cx)).await;
    }

    /// The executor is no more: whether all that it showed is saved.
    pub(crate) fn end(&self, ended: Result<(), Error>) {
        self.saves.end(ended);
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

    /// Wishes to stop the run of one agent under this one, by its thread, and of all under it; others go on.
    ///
    /// Says whether such an agent is at work.
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

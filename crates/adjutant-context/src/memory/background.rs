//! Conversations that wait to be read in the background: one after the other, a bounded number, none lost in silence.

use std::{
    collections::VecDeque,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use adjutant_llm::{Model, Transcript};
use futures_util::FutureExt;
use tokio::sync::watch;

use super::{extract::Learned, memories::Memories, meter::Meter};

/// The largest number of conversations that wait; a further one is read after its next run.
const MAX_WAITING: usize = 64;

/// A conversation that is to be read.
#[derive(Debug, Clone)]
pub(super) struct ConversationJob {
    pub(super) source: Arc<str>,
    pub(super) history: Transcript,
    pub(super) model: Arc<dyn Model>,
}

/// The waiting jobs, and whether a worker is running.
#[derive(Debug)]
pub(super) struct Background {
    state: Mutex<State>,
    busy: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<ConversationJob>,
    /// The current job.
    reading: Option<ConversationJob>,
    at_work: bool,
}

impl Default for Background {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            busy: watch::Sender::new(false),
        }
    }
}

impl Memories {
    /// Waits until everything that waits in the background is read; a program calls it before it ends.
    ///
    /// A job that failed is reported as a warning, and repeated after the next run of its session.
    ///
    /// Cancel: the jobs continue.
    pub async fn flush(&self) {
        self.work();
        let mut busy = self.background.busy.subscribe();
        // The sender lives as long as this.
        let _ = busy.wait_for(|busy| !busy).await;
    }

    /// Queues a conversation for reading in the background; returns false if the queue is full.
    pub(super) fn read_later(&self, job: ConversationJob) -> bool {
        let mut state = self.background.state();
        let waits = state.waiting.len();
        match state
            .waiting
            .iter_mut()
            .find(|waiting| waiting.source == job.source)
        {
            // The later history includes the earlier one.
            Some(waiting) => *waiting = job,
            None if waits >= MAX_WAITING => return false,
            None => state.waiting.push_back(job),
        }
        drop(state);
        self.work();
        true
    }

    /// Starts a worker if jobs wait and none is running.
    fn work(&self) {
        let mut state = self.background.state();
        if state.at_work || state.waiting.is_empty() {
            return;
        }
        state.at_work = true;
        self.background.busy.send_replace(true);
        drop(state);
        let worker = Worker {
            memories: self.clone(),
            done: false,
        };
        tokio::spawn(async move { worker.read_all().await });
    }
}

/// Runs the waiting jobs. If it is dropped early, because its runtime ends, its current job waits again.
struct Worker {
    memories: Memories,
    done: bool,
}

impl Worker {
    async fn read_all(mut self) {
        while let Some(job) = self.memories.background.next() {
            let (meter, mut learned) = (Meter::under(&self.memories.meter), Learned::default());
            let read =
                self.memories
                    .learn_on(&job.source, &job.history, &job.model, &meter, &mut learned);
            let source = &*job.source;
            match AssertUnwindSafe(read).catch_unwind().await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(
                    source,
                    "a session was not read: {}",
                    adjutant_agent::chain(&error)
                ),
                Err(panic) => tracing::warn!(
                    source,
                    "reading panicked: {}",
                    adjutant_agent::panic_text(&*panic)
                ),
            }
            learned
                .warnings
                .iter()
                .for_each(|warning| tracing::warn!(source, "{warning}"));
        }
        self.done = true;
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let background = &self.memories.background;
        let mut state = background.state();
        if let Some(job) = state.reading.take() {
            state.waiting.push_front(job);
        }
        let left = state.waiting.len();
        tracing::warn!(
            left,
            "sessions were not read before the program ended, and are after their next run"
        );
        background.rest(&mut state);
    }
}

impl Background {
    /// The next job; `None` if no job waits. The next job starts a new worker.
    fn next(&self) -> Option<ConversationJob> {
        let mut state = self.state();
        state.reading = state.waiting.pop_front();
        if state.reading.is_none() {
            self.rest(&mut state);
        }
        state.reading.clone()
    }

    /// Marks the worker as stopped while the state is locked, so that no second worker starts in between.
    fn rest(&self, state: &mut State) {
        state.at_work = false;
        self.busy.send_replace(false);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The waiting events of a reader: bounded, taken whole, never awaited by the writer of a record.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
};

use adjutant_core::{Event, EventKind, Seq};

use crate::listener::Listeners;

/// The number of events that wait before a stream of deltas has to.
///
/// Few enough to stay in the processor's cache. Records are never delayed, so a box can exceed it: they are bounded
/// by the activities of a turn.
const CAPACITY: usize = 64;

/// A box of events between one driver, the agents under it, and one reader.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    state: Mutex<State>,
    /// True once the reader is gone.
    closed: AtomicBool,
    /// The listeners, which receive everything besides the reader; no one waits for them.
    listeners: Arc<Listeners>,
    /// The newest record that the log is known to hold.
    saved: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Event>,
    reader: Option<Waker>,
    /// The writers that wait for room, by their tickets.
    writers: BTreeMap<u64, Waker>,
    tickets: u64,
    newest: Seq,
    closed: bool,
}

impl Mailbox {
    /// A mailbox without a reader.
    pub(crate) fn closed() -> Self {
        let mailbox = Self::default();
        mailbox.close();
        mailbox
    }

    /// A box with a reader, and listeners besides.
    pub(crate) fn with_listeners(listeners: Arc<Listeners>) -> Self {
        Self {
            listeners,
            ..Self::default()
        }
    }

    /// Returns the listeners, which receive everything besides the reader.
    pub(crate) fn listeners(&self) -> &Arc<Listeners> {
        &self.listeners
    }

    /// The log holds the records up to this one.
    pub(crate) fn mark_saved(&self, upto: Seq) {
        self.saved.fetch_max(upto.0, Ordering::AcqRel);
    }

    /// True if the log is known to hold the records up to this one.
    pub(crate) fn is_saved(&self, seq: Seq) -> bool {
        seq.0 <= self.saved.load(Ordering::Acquire)
    }

    /// True if the mailbox has a reader or listeners.
    pub(crate) fn is_open(&self) -> bool {
        !self.listeners.is_empty() || !self.closed.load(Ordering::Acquire)
    }

    /// Adds an event; the reader checks when the driver waits. Returns whether the mailbox is full now.
    #[inline]
    pub(crate) fn push(&self, event: Event) -> bool {
        self.put(&mut self.state(), event)
    }

    /// Adds an event of a sub-agent, and wakes the reader. Returns whether the mailbox is full now.
    pub(crate) fn push_from_afar(&self, event: Event) -> bool {
        let mut state = self.state();
        let full = self.put(&mut state, event);
        let reader = state.reader.take();
        drop(state);
        reader.into_iter().for_each(Waker::wake);
        full
    }

    #[inline]
    fn put(&self, state: &mut State, mut event: Event) -> bool {
        if state.closed && self.listeners.is_empty() {
            return false;
        }
        // A record of another thread may have come in since a delta was made; places never go back.
        event.seq = event.seq.max(state.newest);
        state.newest = event.seq;
        self.listeners.hear(&event);
        if state.closed {
            return false;
        }
        state.events.push_back(event);
        state.events.len() >= CAPACITY
    }

    /// Returns a place in the queue for room; 0 is the driver's own.
    pub(crate) fn ticket(&self) -> u64 {
        let mut state = self.state();
        state.tickets += 1;
        state.tickets
    }

    /// Puts progress in and wakes the reader. A full box keeps only the newest progress of a call.
    pub(crate) fn push_progress(&self, mut event: Event) {
        let mut state = self.state();
        // A record may have come in since the event was made on another thread; places never go back.
        event.seq = event.seq.max(state.newest);
        state.newest = event.seq;
        self.listeners.hear(&event);
        if state.closed {
            return;
        }
        let full = state.events.len() >= CAPACITY;
        let same = |old: &Event| match (&old.kind, &event.kind) {
            (EventKind::ToolProgress { call, .. }, EventKind::ToolProgress { call: new, .. }) => {
                call == new && old.who.thread == event.who.thread
            }
            _ => false,
        };
        if full && let Some(at) = state.events.iter().rposition(same) {
            // Not in its place: later events would then follow something newer.
            state.events.remove(at);
        }
        state.events.push_back(event);
        let reader = state.reader.take();
        drop(state);
        reader.into_iter().for_each(Waker::wake);
    }

    /// Waits until there is room for another delta.
    pub(crate) fn poll_room(&self, ticket: u64, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.closed || state.events.len() < CAPACITY {
            state.writers.remove(&ticket);
            return Poll::Ready(());
        }
        state.writers.insert(ticket, cx.waker().clone());
        Poll::Pending
    }

    /// Takes all events, and lets waiting writers continue.
    pub(crate) fn take(&self, into: &mut VecDeque<Event>) {
        let mut state = self.state();
        std::mem::swap(&mut state.events, into);
        let writers = std::mem::take(&mut state.writers);
        drop(state);
        writers.into_values().for_each(Waker::wake);
    }

    /// Wakes this reader when progress arrives; returns whether there already is some.
    pub(crate) fn watch(&self, cx: &Context<'_>) -> bool {
        let mut state = self.state();
        let waiting = state.events.is_empty();
        if waiting {
            state.reader = Some(cx.waker().clone());
        }
        !waiting
    }

    /// The reader is gone: pending and new events are dropped.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        self.closed.store(true, Ordering::Release);
        state.events = VecDeque::new();
        let writers = std::mem::take(&mut state.writers);
        drop(state);
        writers.into_values().for_each(Waker::wake);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

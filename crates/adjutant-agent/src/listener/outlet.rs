//! The waiting events of one listener: bounded, never waited for; events that do not fit are read from the log later.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use adjutant_core::{Event, EventKind, Seq};

/// The number of waiting events from which deltas of a block are joined, and newer progress of a call replaces older.
const SLOW: usize = 64;
/// The largest number of events that wait for a listener.
const MAX_PENDING: usize = 1_024;
/// The largest number of bytes of deltas that wait for a listener.
const MAX_PENDING_BYTES: usize = 1_048_576;

/// The waiting events of one listener.
#[derive(Default)]
pub(super) struct Outlet {
    pending: Mutex<PendingEvents>,
}

#[derive(Default)]
struct PendingEvents {
    events: VecDeque<Event>,
    /// The text of the deltas among them.
    bytes: usize,
    lag: Option<Lag>,
    reader: Option<Waker>,
    closed: bool,
}

/// The gap that a listener had no room for.
pub(super) struct Lag {
    /// The last record whose events were all received.
    pub(super) after: Seq,
    /// The newest record that was missed.
    pub(super) newest: Seq,
    /// The first event that was missed.
    pub(super) first: Event,
    /// The newest end of a drive that was missed.
    pub(super) end: Option<Event>,
}

/// The next item for a listener.
pub(super) enum Taken {
    Event(Event),
    Lag(Lag),
    End,
}

impl Outlet {
    pub(super) fn hear(&self, event: &Event) {
        let mut pending = self.pending();
        pending.put(event);
        let reader = pending.reader.take();
        drop(pending);
        reader.into_iter().for_each(Waker::wake);
    }

    /// Wakes the reader.
    pub(super) fn wake(&self) {
        let reader = self.pending().reader.take();
        reader.into_iter().for_each(Waker::wake);
    }

    pub(super) fn close(&self) {
        let mut pending = self.pending();
        pending.closed = true;
        let reader = pending.reader.take();
        drop(pending);
        reader.into_iter().for_each(Waker::wake);
    }

    /// Takes the next item. Taking a lag makes room for the events after it.
    pub(super) fn poll_take(&self, cx: &Context<'_>) -> Poll<Taken> {
        let mut pending = self.pending();
        if let Some(event) = pending.events.pop_front() {
            pending.bytes -= text(&event.kind).map_or(0, str::len);
            return Poll::Ready(Taken::Event(event));
        }
        if let Some(lag) = pending.lag.take() {
            return Poll::Ready(Taken::Lag(lag));
        }
        if pending.closed {
            return Poll::Ready(Taken::End);
        }
        pending.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Wakes this reader when something comes.
    pub(super) fn watch(&self, cx: &Context<'_>) {
        self.pending().reader = Some(cx.waker().clone());
    }

    /// True if nothing has come since a reader watched.
    pub(super) fn is_watched(&self) -> bool {
        self.pending().reader.is_some()
    }

    /// True if a drive has ended, or the session: everything that will be in the log by then is there.
    pub(super) fn has_ended(&self) -> bool {
        let pending = self.pending();
        pending.closed
            || pending.lag.as_ref().is_some_and(|lag| lag.end.is_some())
            || pending.events.iter().any(is_end)
    }

    fn pending(&self) -> MutexGuard<'_, PendingEvents> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingEvents {
    fn put(&mut self, event: &Event) {
        if let Some(lag) = &mut self.lag {
            lag.miss(event);
            return;
        }
        let added = text(&event.kind).map_or(0, str::len);
        if self.events.len() >= SLOW {
            if added > 0 && self.join(event) {
                self.bytes += added;
                self.enforce_limit();
                return;
            }
            self.forget(event);
        }
        self.bytes += added;
        self.events.push_back(event.clone());
        self.enforce_limit();
    }

    /// Adds a delta to a waiting one of the same block, without other parts of its reply in between.
    fn join(&mut self, event: &Event) -> bool {
        let Some((block, kind)) = delta(&event.kind) else {
            return false;
        };
        let mine = self
            .events
            .iter_mut()
            .rev()
            .filter(|old| old.who.thread == event.who.thread);
        for old in mine {
            match delta(&old.kind) {
                Some(known) if known == (block, kind) => {
                    if let (Some(old), Some(more)) = (text_mut(&mut old.kind), text(&event.kind)) {
                        old.push_str(more);
                    }
                    return true;
                }
                Some(_) => {}
                None => return false,
            }
        }
        false
    }

    /// Drops older progress of the same call.
    fn forget(&mut self, event: &Event) {
        let EventKind::ToolProgress { call, .. } = &event.kind else {
            return;
        };
        let same = |old: &Event| {
            old.who.thread == event.who.thread
                && matches!(&old.kind, EventKind::ToolProgress { call: old, .. } if old == call)
        };
        if let Some(at) = self.events.iter().rposition(same) {
            self.events.remove(at);
        }
    }

    /// Stops keeping events if there are too many; from the last whole record on they are read from the log.
    fn enforce_limit(&mut self) {
        if self.events.len() <= MAX_PENDING && self.bytes <= MAX_PENDING_BYTES {
            return;
        }
        let Some(last) = self.events.pop_back() else {
            return;
        };
        let seq = last.seq;
        let mut lag = Lag {
            after: Seq(seq.0.saturating_sub(1)),
            newest: seq,
            first: last.clone(),
            end: None,
        };
        let mut missed = vec![last];
        while let Some(event) = self.events.pop_back_if(|event| event.seq == seq) {
            missed.push(event);
        }
        missed.iter().rev().for_each(|event| lag.miss(event));
        self.bytes = self
            .events
            .iter()
            .filter_map(|event| text(&event.kind))
            .map(str::len)
            .sum();
        self.lag = Some(lag);
    }
}

impl Lag {
    fn miss(&mut self, event: &Event) {
        self.newest = self.newest.max(event.seq);
        if is_end(event) {
            self.end = Some(event.clone());
        }
    }
}

/// True if a drive of the session itself has ended.
fn is_end(event: &Event) -> bool {
    let ends = matches!(
        event.kind,
        EventKind::RunFinished { .. } | EventKind::RunPaused { .. }
    );
    ends && event.who.parent.is_none()
}

/// The block of a delta, and which kind of delta it is.
fn delta(kind: &EventKind) -> Option<(u32, u8)> {
    match kind {
        EventKind::TextDelta { block, .. } => Some((*block, 0)),
        EventKind::ThinkingDelta { block, .. } => Some((*block, 1)),
        EventKind::ArgsDelta { block, .. } => Some((*block, 2)),
        _ => None,
    }
}

fn text(kind: &EventKind) -> Option<&str> {
    match kind {
        EventKind::TextDelta { text, .. }
        | EventKind::ThinkingDelta { text, .. }
        | EventKind::ArgsDelta { text, .. } => Some(text),
        _ => None,
    }
}

fn text_mut(kind: &mut EventKind) -> Option<&mut String> {
    match kind {
        EventKind::TextDelta { text, .. }
        | EventKind::ThinkingDelta { text, .. }
        | EventKind::ArgsDelta { text, .. } => Some(text),
        _ => None,
    }
}

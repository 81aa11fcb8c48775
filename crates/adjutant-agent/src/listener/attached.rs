//! Attached: the log from a cursor on, and then what happens, without a gap and without doubles.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use adjutant_core::{Error, Event, EventKind, Journal, RunNo, Seq};
use adjutant_llm::{ThreadId, Usage};
use futures_core::Stream;
use tokio::time::Sleep;

use super::{Listeners, PastEvents, Subscription};
use crate::inbox::{Inbox, Stopper};

/// The time between two reads of a log that another program writes.
const FOLLOW_EVERY: Duration = Duration::from_millis(200);

/// Everything that happens in a session after a record, until its run has ended or waits for the outside.
///
/// See [`AgentLog::attach`](crate::AgentLog::attach). Nothing waits for it, and it does not drive the run.
///
/// # Panics
/// Outside a tokio runtime, when it must wait for a log.
#[must_use = "a stream does nothing until it is read"]
pub struct Attached {
    past: PastEvents,
    live: Option<LiveRun>,
    /// The events that are emitted before the log is read further.
    void: VecDeque<Event>,
    /// The timer that starts the next read of the log.
    alarm: Option<Pin<Box<Sleep>>>,
    cursor: Seq,
    /// True if the log was waited for, and may have been read in the middle of the records that end a run.
    has_waited: bool,
    over: bool,
}

/// A run that this program performs.
struct LiveRun {
    events: Subscription,
    inbox: Arc<Inbox>,
    /// The partial replies at the time of joining, as events.
    said: VecDeque<Event>,
    /// The event that is emitted once the log was emitted up to it.
    next: Option<Event>,
    /// True once the first record has been emitted; later records are emitted as they arrive.
    is_joined: bool,
    /// True if the log was read on since the run ended.
    is_reread: bool,
    /// The sub-runs whose ends were emitted from the log.
    ends: Vec<(ThreadId, RunNo)>,
    /// The start events of the unfinished live replies, by thread.
    open: BTreeMap<ThreadId, Event>,
}

impl Attached {
    /// Follows a log that another process may write.
    pub(crate) fn following(past: PastEvents) -> Self {
        Self {
            past,
            live: None,
            void: VecDeque::new(),
            alarm: None,
            cursor: Seq(0),
            has_waited: false,
            over: false,
        }
    }

    /// Reads the log up to the current point of the run, and continues with its live events.
    pub(crate) fn attach(
        past: PastEvents,
        run: &Stopper,
        listeners: Arc<Listeners>,
        journal: Arc<dyn Journal>,
    ) -> Self {
        let (log, who) = past.whose();
        let (events, newest, said) = Subscription::subscribe(listeners, journal, log, who);
        let inbox = Arc::clone(&run.inbox);
        // An event has to be in the log to be read from there.
        inbox.ask_to_save();
        let said = said.into();
        let (ends, open) = (Vec::new(), BTreeMap::new());
        let live = LiveRun {
            events,
            inbox,
            said,
            next: None,
            is_joined: false,
            is_reread: false,
            ends,
            open,
        };
        Self {
            live: Some(live),
            ..Self::following(past.until(newest))
        }
    }

    /// The last emitted record: the place to attach again.
    pub fn cursor(&self) -> Seq {
        self.cursor
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event, Error>>> {
        while !self.over {
            let told = match self.live {
                Some(_) => ready!(self.poll_live(cx)),
                None => ready!(self.poll_log(cx)),
            };
            match told {
                Some(Ok(event)) => {
                    self.cursor = self.cursor.max(event.seq);
                    self.live.iter_mut().for_each(|live| live.follow(&event));
                    return Poll::Ready(Some(Ok(event)));
                }
                Some(Err(error)) => {
                    self.over = true;
                    return Poll::Ready(Some(Err(error)));
                }
                None => {}
            }
        }
        Poll::Ready(None)
    }

    /// Returns the next live event; `None` if another source comes first.
    fn poll_live(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event, Error>>> {
        if self.alarm.is_some() {
            // The stream has ended, and is not polled again before the log is read again.
            ready!(self.poll_alarm(cx));
        }
        let Some(live) = &mut self.live else {
            return Poll::Ready(None);
        };
        if !self.past.fold.is_done() || !self.past.fold.ready.is_empty() {
            let told = match ready!(self.past.poll_event(cx)) {
                None if self.past.fold.is_done() => None,
                None if live.inbox.has_ended() && live.is_reread => {
                    self.leave();
                    None
                }
                None if live.inbox.has_ended() => {
                    // All live events are in the log by now.
                    live.is_reread = true;
                    self.past.again();
                    None
                }
                None => {
                    ready!(self.poll_alarm(cx));
                    None
                }
                told => told,
            };
            if let (Some(Ok(event)), Some(live)) = (&told, &mut self.live) {
                live.note(event);
            }
            return Poll::Ready(told);
        }
        self.past.fold.silent = true;
        if let Some(event) = live.said.pop_front() {
            return Poll::Ready(Some(Ok(event)));
        }
        if let Some(event) = live.next.take() {
            return Poll::Ready(self.pass(event).map(Ok));
        }
        let mut heard = live.events.poll_event(cx);
        let has_ended = live.inbox.has_ended();
        if has_ended && heard.is_pending() {
            // Events emitted just before the end come first.
            heard = live.events.poll_event(cx);
        }
        match heard {
            Poll::Ready(Some(event)) if live.is_joined => Poll::Ready(self.pass(event).map(Ok)),
            Poll::Ready(Some(event)) => {
                self.past.go_on_until(event.seq);
                live.is_joined = !is_passing(&event.kind);
                live.next = Some(event);
                Poll::Ready(None)
            }
            Poll::Pending if !has_ended => Poll::Pending,
            Poll::Ready(None) | Poll::Pending => {
                self.leave();
                Poll::Ready(None)
            }
        }
    }

    /// Returns a live event, unless it was emitted from the log.
    fn pass(&mut self, event: Event) -> Option<Event> {
        let live = self.live.as_mut()?;
        let is_end = matches!(
            event.kind,
            EventKind::RunFinished { .. } | EventKind::RunPaused { .. }
        );
        let held = self.past.fold.ended.take();
        if let Some(held) = held
            .filter(|held| !is_end || held.run != event.run || held.who.thread != event.who.thread)
        {
            // The end of an earlier run, or of a sub-agent: no other source emits it.
            if held.who.parent.is_some() || held.run != event.run {
                live.note(&held);
                live.next = Some(event);
                return Some(held);
            }
        }
        if is_end && event.who.parent.is_none() {
            self.over = true;
            return Some(event);
        }
        let is_known = match is_end {
            true => live.ends.contains(&(event.who.thread.clone(), event.run)),
            false => {
                !is_passing(&event.kind) && event.seq <= self.past.fold.at.max(self.past.fold.after)
            }
        };
        (!is_known).then_some(event)
    }

    /// Stops following the live run: from now on only the log counts. Partly received replies are void.
    fn leave(&mut self) {
        let open = self.live.take().map(|live| live.open).unwrap_or_default();
        for event in open.into_values() {
            let EventKind::ReplyStarted { attempt, .. } = event.kind else {
                continue;
            };
            self.past
                .fold
                .forget(&event.who.thread, event.turn, attempt);
            let kind = EventKind::cut_off(attempt, Usage::default());
            self.void.push_back(Event {
                seq: self.cursor,
                kind,
                ..event
            });
        }
        self.past.go_on_after(self.cursor);
    }

    /// The next event of a log that is followed; `None` if something else comes first.
    fn poll_log(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event, Error>>> {
        if let Some(event) = self.void.pop_front() {
            return Poll::Ready(Some(Ok(event)));
        }
        if self.alarm.is_some() {
            ready!(self.poll_alarm(cx));
        }
        let told = ready!(self.past.poll_event(cx));
        if told.is_some() {
            return Poll::Ready(told);
        }
        if self.past.fold.tell_said() {
            return Poll::Ready(None);
        }
        // The code around a run may change its outcome just after it ends.
        let is_fresh = self.has_waited && self.past.fold.ended.is_some();
        if self.past.fold.is_at_work() || is_fresh {
            self.has_waited = !is_fresh;
            ready!(self.poll_alarm(cx));
            return Poll::Ready(None);
        }
        self.over = true;
        Poll::Ready(self.past.fold.take_last().map(Ok))
    }

    /// Waits a little, and reads the log on.
    fn poll_alarm(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let alarm = self
            .alarm
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(FOLLOW_EVERY)));
        ready!(alarm.as_mut().poll(cx));
        self.alarm = None;
        self.past.again();
        Poll::Ready(())
    }
}

impl LiveRun {
    /// Tracks the replies that have started and not ended.
    fn follow(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ReplyStarted { .. } => {
                self.open.insert(event.who.thread.clone(), event.clone());
            }
            EventKind::ReplyFinished { .. } | EventKind::ReplyRetracted { .. } => {
                self.open.remove(&event.who.thread);
            }
            _ => {}
        }
    }

    /// Records an event that was emitted from the log.
    fn note(&mut self, event: &Event) {
        if matches!(event.kind, EventKind::RunFinished { .. }) && event.who.parent.is_some() {
            self.ends.push((event.who.thread.clone(), event.run));
        }
    }
}

/// True if an event belongs to no record, so that no log repeats it.
fn is_passing(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Warning { .. }
            | EventKind::ReplyStarted { .. }
            | EventKind::ReplyPending { .. }
            | EventKind::BlockStarted { .. }
            | EventKind::TextDelta { .. }
            | EventKind::ThinkingDelta { .. }
            | EventKind::ArgsDelta { .. }
            | EventKind::BlockFinished { .. }
            | EventKind::ReplyRetracted { .. }
            | EventKind::ToolProgress { .. }
            | EventKind::Lagged { .. }
            | EventKind::RunPaused { .. }
            | EventKind::RunFinished { .. }
    )
}

impl Stream for Attached {
    type Item = Result<Event, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_event(cx)
    }
}

impl fmt::Debug for Attached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attached")
            .field("cursor", &self.cursor)
            .field("live", &self.live.is_some())
            .finish()
    }
}

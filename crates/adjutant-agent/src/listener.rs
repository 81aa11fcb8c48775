//! Listeners: receive all events of a session, in all its runs. Runs never wait for them.

mod attached;
mod outlet;
mod past;

use std::{
    collections::BTreeMap,
    fmt,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use adjutant_llm::ThreadId;
use adjutant_tool::Identity;
pub use attached::Attached;
use futures_core::Stream;
use outlet::{Lag, Outlet, Taken};
pub use past::PastEvents;

use crate::partial_reply::{PartialReply, lock};
use adjutant_core::{Event, EventKind, Journal, LogId, Seq};

/// The listeners of a session, in the order in which they came.
#[derive(Default)]
pub(crate) struct Listeners {
    list: Mutex<Arc<[Arc<Outlet>]>>,
    any: AtomicBool,
    /// The last emitted record, with or without a listener.
    newest: AtomicU64,
    /// The replies that are on their way.
    replies: Mutex<BTreeMap<ThreadId, Arc<Mutex<PartialReply>>>>,
}

/// A reply is on its way as long as this is held.
#[derive(Debug)]
pub(crate) struct Aloud {
    listeners: Arc<Listeners>,
    thread: ThreadId,
}

/// All events of a session from the subscription on; ends when the session has no more handles.
///
/// A slow listener loses nothing that is in the log: see [`AgentLog::subscribe`](crate::AgentLog::subscribe).
#[must_use = "a subscription hears only while it is held"]
pub struct Subscription {
    outlet: Arc<Outlet>,
    listeners: Arc<Listeners>,
    journal: Arc<dyn Journal>,
    log: LogId,
    who: Arc<Identity>,
    refill: Option<Refill>,
}

/// The events that a listener had no room for, read again from the log.
struct Refill {
    past: PastEvents,
    lag: Lag,
}

impl Listeners {
    pub(crate) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    /// Sends an event to every listener.
    pub(crate) fn hear(&self, event: &Event) {
        if !self.is_empty() {
            let list = Arc::clone(&self.list());
            list.iter().for_each(|outlet| outlet.hear(event));
        }
    }

    /// Registers the partial reply of a thread, until the returned guard is dropped.
    pub(crate) fn hear_reply(
        self: &Arc<Self>,
        thread: &ThreadId,
        reply: &Arc<Mutex<PartialReply>>,
    ) -> Aloud {
        self.replies().insert(thread.clone(), Arc::clone(reply));
        Aloud {
            listeners: Arc::clone(self),
            thread: thread.clone(),
        }
    }

    /// True if a reply of a thread is on its way.
    pub(crate) fn is_saying(&self, thread: &ThreadId) -> bool {
        self.replies().contains_key(thread)
    }

    /// Records that a record was emitted.
    pub(crate) fn mark_emitted(&self, seq: Seq) {
        self.newest.fetch_max(seq.0, Ordering::AcqRel);
    }

    /// A drive has ended: readers that wait for its events check again.
    pub(crate) fn nudge(&self) {
        self.list().iter().for_each(|outlet| outlet.wake());
    }

    /// Returns an outlet for everything from now on: new events follow the last record, and these events, which
    /// contain the text of incomplete replies so far.
    fn join(&self) -> (Arc<Outlet>, Seq, Vec<Event>) {
        let replies = self.replies();
        // While these are held, no new text is emitted.
        let mut said: Vec<_> = replies.values().map(|reply| lock(reply)).collect();
        let (outlet, newest) = (self.add(), Seq(self.newest.load(Ordering::Acquire)));
        let partial = said.iter_mut().flat_map(|reply| {
            reply.is_shown = true;
            reply.events(newest)
        });
        let partial = partial.collect();
        (outlet, newest, partial)
    }

    fn replies(&self) -> MutexGuard<'_, BTreeMap<ThreadId, Arc<Mutex<PartialReply>>>> {
        self.replies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There are no more events.
    pub(crate) fn close(&self) {
        self.list().iter().for_each(|outlet| outlet.close());
    }

    fn add(&self) -> Arc<Outlet> {
        let outlet = Arc::new(Outlet::default());
        let mut list = self.list();
        *list = list.iter().chain([&outlet]).cloned().collect();
        self.any.store(true, Ordering::Release);
        outlet
    }

    fn remove(&self, outlet: &Arc<Outlet>) {
        let mut list = self.list();
        *list = list
            .iter()
            .filter(|known| !Arc::ptr_eq(known, outlet))
            .cloned()
            .collect();
        self.any.store(!list.is_empty(), Ordering::Release);
    }

    fn list(&self) -> MutexGuard<'_, Arc<[Arc<Outlet>]>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscription {
    pub(crate) fn new(
        listeners: Arc<Listeners>,
        journal: Arc<dyn Journal>,
        log: LogId,
        who: Arc<Identity>,
    ) -> Self {
        let outlet = listeners.add();
        Self {
            outlet,
            listeners,
            journal,
            log,
            who,
            refill: None,
        }
    }

    /// Returns a subscription that continues where the log and these events end.
    fn subscribe(
        listeners: Arc<Listeners>,
        journal: Arc<dyn Journal>,
        log: LogId,
        who: Arc<Identity>,
    ) -> (Self, Seq, Vec<Event>) {
        let (outlet, newest, partial) = listeners.join();
        (
            Self {
                outlet,
                listeners,
                journal,
                log,
                who,
                refill: None,
            },
            newest,
            partial,
        )
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        loop {
            if let Some(refill) = &mut self.refill {
                if let Some(event) = ready!(refill.poll_event(&self.outlet, cx)) {
                    return Poll::Ready(Some(event));
                }
                self.refill = None;
            }
            match ready!(self.outlet.poll_take(cx)) {
                Taken::Event(event) => return Poll::Ready(Some(event)),
                Taken::Lag(lag) => {
                    let (journal, log) = (Arc::clone(&self.journal), self.log.clone());
                    let past = PastEvents::new(journal, log, Arc::clone(&self.who), lag.after)
                        .silent()
                        .until(lag.newest);
                    self.refill = Some(Refill { past, lag });
                }
                Taken::End => return Poll::Ready(None),
            }
        }
    }
}

impl Refill {
    /// Returns the next missed event; `None` if all are emitted. Waits for events that are not in the log yet.
    fn poll_event(&mut self, outlet: &Outlet, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        loop {
            outlet.watch(cx);
            match ready!(self.past.poll_event(cx)) {
                Some(Ok(event)) => return Poll::Ready(Some(event)),
                Some(Err(_)) => return Poll::Ready(self.report_lag()),
                None if self.past.fold.is_done()
                    || self.lag.end.is_some()
                    || outlet.has_ended() =>
                {
                    return Poll::Ready(self.past.fold.last(self.lag.end.take()));
                }
                // A record is emitted before it is saved; the save emits another event after it.
                None if outlet.is_watched() => return Poll::Pending,
                None => self.past.again(),
            }
        }
    }

    /// The log cannot be read: reports it once, and then the runs that ended in the meantime.
    fn report_lag(&mut self) -> Option<Event> {
        let after = self.lag.after;
        self.past.give_up();
        Some(Event {
            kind: EventKind::Lagged { after },
            ..self.lag.first.clone()
        })
    }
}

impl Stream for Subscription {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.poll_event(cx)
    }
}

impl Drop for Aloud {
    fn drop(&mut self) {
        self.listeners.replies().remove(&self.thread);
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.listeners.remove(&self.outlet);
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("log", &self.log)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listeners")
            .field("listeners", &self.list().len())
            .finish()
    }
}

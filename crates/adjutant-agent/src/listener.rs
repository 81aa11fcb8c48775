//! Listeners: hear everything that happens in a session, in all its runs. Nobody ever waits for them.

mod outlet;
mod past;

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use adjutant_tool::Identity;
use futures_core::Stream;
use outlet::{Lag, Outlet, Taken};
pub use past::PastEvents;

use crate::{Event, EventKind, Journal, LogId};

/// Who listens to a session, in the order in which they came.
#[derive(Default)]
pub(crate) struct Listeners {
    list: Mutex<Arc<[Arc<Outlet>]>>,
    any: AtomicBool,
}

/// Everything that happens in a session, from the moment of subscription on; ends when nobody holds the session.
///
/// A listener that is slow loses nothing of what is in the log: see [`Agent::subscribe`](crate::Agent::subscribe).
#[must_use = "a subscription hears only while it is held"]
pub struct Subscription {
    outlet: Arc<Outlet>,
    listeners: Arc<Listeners>,
    journal: Arc<dyn Journal>,
    log: LogId,
    who: Arc<Identity>,
    refill: Option<Refill>,
}

/// What a listener had no room for, read again.
struct Refill {
    past: PastEvents,
    lag: Lag,
}

impl Listeners {
    pub(crate) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    /// Lets everyone hear an event.
    pub(crate) fn hear(&self, event: &Event) {
        if !self.is_empty() {
            let list = Arc::clone(&self.list());
            list.iter().for_each(|outlet| outlet.hear(event));
        }
    }

    /// Nothing happens any more.
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
        *list = list.iter().filter(|known| !Arc::ptr_eq(known, outlet)).cloned().collect();
        self.any.store(!list.is_empty(), Ordering::Release);
    }

    fn list(&self) -> MutexGuard<'_, Arc<[Arc<Outlet>]>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscription {
    pub(crate) fn new(listeners: Arc<Listeners>, journal: Arc<dyn Journal>, log: LogId, who: Arc<Identity>) -> Self {
        let outlet = listeners.add();
        Self { outlet, listeners, journal, log, who, refill: None }
    }

    /// The next event; `None` when nobody holds the session any more.
    ///
    /// Cancel: nothing is lost.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|cx| self.poll_event(cx)).await
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
                    let past = PastEvents::new(journal, log, Arc::clone(&self.who), lag.after).until(lag.newest);
                    self.refill = Some(Refill { past, lag });
                }
                Taken::End => return Poll::Ready(None),
            }
        }
    }
}

impl Refill {
    /// The next event that was missed; `None` if all are told. What is not in the log yet is waited for.
    fn poll_event(&mut self, outlet: &Outlet, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        loop {
            outlet.watch(cx);
            match ready!(self.past.poll_event(cx)) {
                Some(Ok(event)) => return Poll::Ready(Some(event)),
                Some(Err(_)) => return Poll::Ready(self.lost()),
                None if self.past.is_done() || self.lag.end.is_some() || outlet.has_ended() => {
                    return Poll::Ready(self.past.last(self.lag.end.take()));
                }
                // A record is shown before it is saved; what saves it shows something else after it.
                None if outlet.is_watched() => return Poll::Pending,
                None => self.past.again(),
            }
        }
    }

    /// The log cannot be read: says so, once, and then what ended meanwhile.
    fn lost(&mut self) -> Option<Event> {
        let after = self.lag.after;
        self.past.give_up();
        Some(Event { kind: EventKind::Lagged { after }, ..self.lag.first.clone() })
    }
}

impl Stream for Subscription {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.poll_event(cx)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.listeners.remove(&self.outlet);
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("log", &self.log).finish_non_exhaustive()
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listeners").field("listeners", &self.list().len()).finish()
    }
}

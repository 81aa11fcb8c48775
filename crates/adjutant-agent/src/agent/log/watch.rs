//! The listeners of an agent's session, apart from its driver.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use adjutant_core::{Error, Event, Seq};
use futures_util::StreamExt;
use tokio::task::JoinHandle;

use super::AgentLog;
use crate::listener::{Attached, PastEvents, Subscription};

impl AgentLog<'_> {
    /// Subscribes to all events of the session from now on, in all its runs.
    ///
    /// Runs do not wait for a subscription, and a slow one loses nothing: deltas of a block are joined, and
    /// overflowing events are read again from the log, without deltas, progress and warnings.
    pub fn subscribe(self) -> Subscription {
        let session = &self.agent.session;
        let journal = Arc::clone(session.journal());
        Subscription::new(
            Arc::clone(session.listeners()),
            journal,
            session.id().clone(),
            Arc::clone(&self.agent.setup.who),
        )
    }

    /// Makes everything durable that was emitted so far, including the text of an incomplete reply: see
    /// [`Running::acknowledge`](crate::Running::acknowledge). For callers that do not drive the run: it waits until
    /// the driver processes it.
    ///
    /// # Errors
    /// `Journal` if the log could not be written.
    pub async fn acknowledge(self) -> Result<(), Error> {
        match self.agent.session.live() {
            Some(live) => self.agent.session.acknowledge(&live.inbox).await,
            None => self.agent.session.save_error().map_or(Ok(()), Err),
        }
    }

    /// Returns everything that happens in the session after a record: first from the log, then live, until the run
    /// has ended or waits for the outside.
    ///
    /// An incomplete reply is emitted from its start. A run of this session is followed live, and must be driven by
    /// its owner. A run of another program, or of another agent here, is followed by reading its log every 200 ms:
    /// the text of its reply arrives only up to the last acknowledgement. A run without a driver is waited for.
    ///
    /// To attach again, pass the newest [`Seq`] that was read.
    pub fn attach(self, after: Seq) -> Attached {
        let session = &self.agent.session;
        let past = self.events_after(after);
        let Some(live) = session.live() else {
            return Attached::following(past);
        };
        let (listeners, journal) = (
            Arc::clone(session.listeners()),
            Arc::clone(session.journal()),
        );
        Attached::attach(past, &live, listeners, journal)
    }

    /// Calls a function with everything that happens in the session, on a task of the current tokio runtime.
    ///
    /// A panic in it is ignored. The task ends when it is aborted, or when the session has no more handles.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn on_event(self, mut hear: impl FnMut(Event) + Send + 'static) -> JoinHandle<()> {
        let mut events = self.subscribe();
        tokio::spawn(async move {
            while let Some(event) = events.next().await {
                if catch_unwind(AssertUnwindSafe(|| hear(event))).is_err() {
                    tracing::warn!("a listener panicked and is passed over");
                }
            }
        })
    }

    /// Returns the log after a record as events: without deltas, progress and warnings.
    pub fn events_after(self, seq: Seq) -> PastEvents {
        let journal = Arc::clone(self.agent.session.journal());
        PastEvents::new(
            journal,
            self.agent.session.id().clone(),
            Arc::clone(&self.agent.setup.who),
            seq,
        )
    }
}

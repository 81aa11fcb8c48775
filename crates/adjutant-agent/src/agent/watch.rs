//! Who hears what happens in an agent's session, besides the one who drives it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use tokio::task::JoinHandle;

use crate::{Agent, Event, PastEvents, Seq, Subscription};

impl Agent {
    /// Hears everything that happens in the session from now on, in all its runs.
    ///
    /// Nothing waits for a subscription, and nothing is lost to a slow one: deltas of a block are joined, and what it has
    /// no room for is read again from the log, without deltas, progress and warnings.
    pub fn subscribe(&self) -> Subscription {
        let session = &self.session;
        let journal = Arc::clone(session.journal());
        Subscription::new(Arc::clone(session.listeners()), journal, session.id().clone(), Arc::clone(&self.setup.who))
    }

    /// Calls a function with everything that happens in the session, on a task of the current tokio runtime.
    ///
    /// A panic of it is passed over. Aborting the task ends it; it ends by itself when nobody holds the session.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn on_event(&self, mut hear: impl FnMut(Event) + Send + 'static) -> JoinHandle<()> {
        let mut events = self.subscribe();
        tokio::spawn(async move {
            while let Some(event) = events.next().await {
                if catch_unwind(AssertUnwindSafe(|| hear(event))).is_err() {
                    tracing::warn!("a listener panicked and is passed over");
                }
            }
        })
    }

    /// What is in the log after a record, as events: without deltas, progress and warnings.
    pub fn events_after(&self, seq: Seq) -> PastEvents {
        let journal = Arc::clone(self.session.journal());
        PastEvents::new(journal, self.session.id().clone(), Arc::clone(&self.setup.who), seq)
    }
}

//! The shared state of a session while a run is running: its queues, the emitted records, and its end.

use std::sync::{Arc, PoisonError};

use adjutant_core::{Error, ErrorKind, JournalError, JournalErrorKind, RunResult};

use super::Session;
use crate::{
    inbox::{Inbox, Stopper},
    queue::Queues,
};

/// A drive has the session as long as this is held.
pub(crate) struct LiveSession {
    session: Arc<Session>,
    stopper: Arc<Stopper>,
    has_ended: bool,
}

impl Session {
    /// The queues of the session.
    pub(crate) fn queues(&self) -> &Arc<Queues> {
        &self.queues
    }

    /// Marks the session as used by a run until the returned guard is dropped.
    pub(crate) fn go_live(self: &Arc<Self>, stopper: Stopper) -> LiveSession {
        let stopper = Arc::new(stopper);
        *self.live.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&stopper);
        LiveSession {
            session: Arc::clone(self),
            stopper,
            has_ended: false,
        }
    }

    /// The run that has the session, if one has.
    pub(crate) fn live(&self) -> Option<Arc<Stopper>> {
        self.live
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .upgrade()
    }

    /// Makes everything durable that the agents of a run have emitted so far.
    ///
    /// # Errors
    /// `Journal` if the log could not be written.
    pub(crate) async fn acknowledge(&self, inbox: &Inbox) -> Result<(), Error> {
        // Agents without a partial reply have recorded everything already, and it is saved with the first agent's
        // records.
        for under in inbox.under(|thread| self.listeners.is_saying(thread)) {
            under.save().await?;
        }
        inbox.save().await
    }

    /// Returns the error that prevented the last drive from saving its emitted records.
    pub(crate) fn save_error(&self) -> Option<Error> {
        self.lost
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl LiveSession {
    /// The drive has ended.
    pub(crate) fn end(mut self, performed: &Result<RunResult, Error>) {
        let is_lost =
            |error: &&Error| matches!(error.kind(), ErrorKind::Journal | ErrorKind::Defect);
        self.has_ended = true;
        self.tell(performed.as_ref().err().filter(is_lost).cloned());
    }

    fn tell(&self, lost: Option<Error>) {
        *self
            .session
            .lost
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = lost.clone();
        self.stopper.inbox.end(lost.map_or(Ok(()), Err));
    }
}

impl Drop for LiveSession {
    fn drop(&mut self) {
        if !self.has_ended {
            let why = "emitted events are not saved: the run was abandoned";
            self.tell(Some(
                JournalError::new(JournalErrorKind::Fenced, why).into(),
            ));
        }
        let mut live = self
            .session
            .live
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if live.as_ptr() == Arc::as_ptr(&self.stopper) {
            *live = std::sync::Weak::new();
        }
        drop(live);
        self.session.listeners.nudge();
    }
}

//! Things that others may know and do while a run has the session: its queues, the records it has shown, and its end.

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

    /// A run has the session until what is given back is dropped.
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

    /// Makes everything durable that was shown up to now by the agents of a run.
    ///
    /// # Errors
    /// `Journal` if the log could not be written.
    pub(crate) async fn acknowledge(&self, inbox: &Inbox) -> Result<(), Error> {
        // Those who say nothing have recorded everything already, and it is saved with what the first agent saves.
        for under in inbox.under(|thread| self.listeners.is_saying(thread)) {
            under.save().await?;
        }
        inbox.save().await
    }

    /// Returns the error that kept the newest drive from saving what it showed.
    pub(crate) fn lost(&self) -> Option<Error> {
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
            let why = "what was shown is not saved: the run was given up in its middle";
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

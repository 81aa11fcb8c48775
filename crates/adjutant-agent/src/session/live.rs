//! What others may know and do while a run has the session: its queues, and its end.

use std::sync::{Arc, PoisonError};

use super::Session;
use crate::{Stopper, queue::Queues};

impl Session {
    /// The queues of the session.
    pub(crate) fn queues(&self) -> &Arc<Queues> {
        &self.queues
    }

    /// A run has the session until what is given back is dropped.
    pub(crate) fn go_live(&self, stopper: Stopper) -> Arc<Stopper> {
        let live = Arc::new(stopper);
        *self.live.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&live);
        live
    }

    /// The run that has the session, if one has.
    pub(crate) fn live(&self) -> Option<Arc<Stopper>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }
}

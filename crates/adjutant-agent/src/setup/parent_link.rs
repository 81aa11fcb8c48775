//! The place of an agent under another one: its watchers, its budget, and whether it is still wanted.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use adjutant_core::{Record, Tally};

use super::Standstill;
use crate::{budget::Budget, inbox::Inbox, mailbox::Mailbox};

/// The place of an agent under another one.
pub(crate) struct ParentLink {
    /// The boxes of the agents above, the nearest first.
    above: Arc<[Arc<Mailbox>]>,
    /// The inbox of the first agent, which knows the threads of the session.
    first: Arc<Inbox>,
    budget: Option<Budget>,
    /// Of the call that opened the agent.
    standstill: Arc<Standstill>,
    fenced: AtomicBool,
    tally: Mutex<Tally>,
}

impl ParentLink {
    pub(crate) fn new(
        above: Arc<[Arc<Mailbox>]>,
        first: Arc<Inbox>,
        budget: Option<Budget>,
        standstill: Arc<Standstill>,
    ) -> Self {
        Self {
            above,
            first,
            budget,
            standstill,
            fenced: AtomicBool::new(false),
            tally: Mutex::default(),
        }
    }

    pub(crate) fn above(&self) -> &Arc<[Arc<Mailbox>]> {
        &self.above
    }

    pub(crate) fn first(&self) -> &Arc<Inbox> {
        &self.first
    }

    pub(crate) fn budget(&self) -> Option<&Budget> {
        self.budget.as_ref()
    }

    pub(crate) fn standstill(&self) -> &Arc<Standstill> {
        &self.standstill
    }

    pub(crate) fn is_fenced(&self) -> bool {
        self.fenced.load(Ordering::Acquire)
    }

    /// The agent was abandoned: its later records do not count.
    pub(crate) fn fence(&self) {
        self.fenced.store(true, Ordering::Release);
    }

    /// Adds the usage in a record; a run starts at zero.
    pub(crate) fn count(&self, record: &Record) {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.count(record);
    }

    pub(crate) fn tally(&self) -> Tally {
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts on from here.
    pub(crate) fn set_tally(&self, tally: Tally) {
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner) = tally;
    }
}

impl fmt::Debug for ParentLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Within")
            .field("above", &self.above.len())
            .finish_non_exhaustive()
    }
}

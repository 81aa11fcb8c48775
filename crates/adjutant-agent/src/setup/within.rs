//! Where an agent under another one stands: who looks on, what it spends from, and whether it is still wanted.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use adjutant_llm::{NanoUsd, Usage};
use serde::{Deserialize, Serialize};

use super::Standstill;
use crate::{Admission, Budget, Record, inbox::Inbox, mailbox::Mailbox, run::plus};

/// Where an agent under another one stands.
pub(crate) struct Within {
    /// The boxes of the agents above, the nearest first.
    above: Arc<[Arc<Mailbox>]>,
    /// Where the threads of the session are found.
    first: Arc<Inbox>,
    budget: Option<Budget>,
    /// Of the call that opened the agent.
    standstill: Arc<Standstill>,
    fenced: AtomicBool,
    tally: Mutex<Tally>,
}

/// What an agent and everything under it used in one run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) usage: Usage,
    pub(crate) cost: Option<NanoUsd>,
    pub(crate) requests: u64,
    pub(crate) tool_calls: u64,
}

impl Within {
    pub(crate) fn new(
        above: Arc<[Arc<Mailbox>]>,
        first: Arc<Inbox>,
        budget: Option<Budget>,
        standstill: Arc<Standstill>,
    ) -> Self {
        Self { above, first, budget, standstill, fenced: AtomicBool::new(false), tally: Mutex::default() }
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

    /// The agent was given up: nothing that it records counts any more.
    pub(crate) fn fence(&self) {
        self.fenced.store(true, Ordering::Release);
    }

    /// Counts what a record says was used; a run begins at nothing.
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

impl Tally {
    fn count(&mut self, record: &Record) {
        match record {
            Record::Began { .. } => *self = Self::default(),
            Record::Retracted { usage, cost, .. } => self.add(*usage, *cost),
            Record::Replied { reply, cost, original, .. } => {
                self.requests += 1;
                self.add(original.as_ref().unwrap_or(reply).usage, *cost);
            }
            Record::Prepared { spent, cost, .. } => self.add(*spent, *cost),
            Record::Spent { usage, .. } => self.add(*usage, None),
            Record::Admitted { admission: Admission::Allow { .. }, .. } => self.tool_calls += 1,
            Record::ChildEnded { usage, cost, requests, tool_calls, .. } => {
                self.requests = self.requests.saturating_add(*requests);
                self.tool_calls = self.tool_calls.saturating_add(*tool_calls);
                self.add(*usage, *cost);
            }
            _ => {}
        }
    }

    /// Adds what another one counted.
    pub(crate) fn join(&mut self, other: Self) {
        self.add(other.usage, other.cost);
        self.requests = self.requests.saturating_add(other.requests);
        self.tool_calls = self.tool_calls.saturating_add(other.tool_calls);
    }

    fn add(&mut self, usage: Usage, cost: Option<NanoUsd>) {
        self.usage += usage;
        self.cost = plus(self.cost, cost);
    }
}

impl fmt::Debug for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Within").field("above", &self.above.len()).finish_non_exhaustive()
    }
}

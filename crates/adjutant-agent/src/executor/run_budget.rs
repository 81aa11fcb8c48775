//! The run budget of a drive: its node in the tree of budgets, and the alarm of its time.

use std::{
    collections::BTreeMap,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use adjutant_core::{Caps, Limit, LogId, Pause, Record, Run, Spend, Tally};
use adjutant_llm::CallId;
use tokio::time::{Instant, Sleep, sleep_until};

use super::LocalExecutor;
use crate::{budget::Budget, placement::ChildLink};

/// The budget that a drive spends from. Without any caps, here or above, it costs nothing.
#[derive(Default)]
pub(super) struct RunBudget {
    budget: Option<Budget>,
    known: Option<BudgetBasis>,
    /// The amounts held for agents in other sessions, by the waiting call.
    lent: BTreeMap<(CallId, LogId), Spend>,
    /// True if the warning was given that a price is not known.
    told_of_price: bool,
}

/// The values that the run budget was made with.
struct BudgetBasis {
    caps: Caps,
    began: Instant,
    /// The time for which the run had been performed before.
    active_ms: u64,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl LocalExecutor {
    /// Opens the run budget with the first activity of a drive, and updates its caps.
    pub(super) fn enter(&mut self, run: &Run) {
        let (caps, free) = (run.request().caps(), self.above().is_none());
        match &mut self.run_budget.known {
            Some(known) if known.caps == caps => return,
            Some(known) => {
                known.caps = caps;
                known.alarm = known.alarm();
            }
            None if caps == Caps::default() && free => return,
            None => {
                let mut known = BudgetBasis {
                    caps,
                    began: Instant::now(),
                    active_ms: run.request().active_ms(),
                    alarm: None,
                };
                known.alarm = known.alarm();
                self.run_budget.known = Some(known);
            }
        }
        match &self.run_budget.budget {
            Some(budget) => budget.set_caps(caps),
            None => {
                self.run_budget.budget = self.node(run, caps);
                if let Some(budget) = &self.run_budget.budget {
                    // Before anything new starts: agents that were running continue.
                    budget.keep_places(
                        self.writer
                            .threads()
                            .children_to_resume(&self.setup.who.thread),
                    );
                }
                run.pauses().for_each(|pause| self.run_budget.lend(pause));
            }
        }
        if let RunBudget {
            budget: Some(budget),
            known: Some(known),
            ..
        } = &self.run_budget
        {
            budget.set_end(known.end());
        }
    }

    /// Returns the node of this run, with its earlier spending; a request without a recorded reply counts as spent.
    #[cold]
    fn node(&self, run: &Run, caps: Caps) -> Option<Budget> {
        let above = self.above();
        if caps == Caps::default() && above.is_none() {
            return None;
        }
        let mut spent = Spend::from(run.request().tally());
        if run.request().is_asking() {
            spent = spent + self.reservation(run, &self.request_before(run)).fixed;
        }
        Some(match above {
            Some(above) => above.child(caps, spent),
            None => Budget::root(caps, spent),
        })
    }

    fn above(&self) -> Option<&Budget> {
        self.setup.within.as_ref()?.budget()
    }

    /// Releases the places of agents that will not continue: under a call that has its result, or kept by the run.
    pub(super) fn give_up_places(&self, under: &dyn std::fmt::Display) {
        if let Some(budget) = self.budget() {
            budget.give_up_places(&format_args!("{}/{under}", self.setup.who.thread));
        }
    }

    /// Returns the budget that this run and the agents that it opens spend from, if anything is limited.
    pub(super) fn budget(&self) -> Option<&Budget> {
        self.run_budget.budget.as_ref()
    }

    /// Returns the time for which the run has been performed, in milliseconds.
    pub(super) fn active_ms(&self) -> u64 {
        self.run_budget
            .known
            .as_ref()
            .map_or(0, BudgetBasis::active_ms)
    }
}

impl RunBudget {
    /// True if anything is limited.
    pub(super) fn is_open(&self) -> bool {
        self.known.is_some()
    }

    /// True if the warning is due that a price is not known: once.
    pub(super) fn tells_of_price(&mut self) -> bool {
        !std::mem::replace(&mut self.told_of_price, true)
    }

    /// Counts what calls and effects spent; requests and children settle for themselves.
    pub(super) fn follow(&mut self, record: &Record) {
        let Some(budget) = &self.budget else { return };
        let spent = match *record {
            Record::Paused { ref pause } => return self.lend(pause),
            Record::Returned { call, .. } if !self.lent.is_empty() => {
                self.lent
                    .extract_if(.., |(by, _), _| *by == call)
                    .for_each(|(_, held)| budget.give_back(held));
                return;
            }
            Record::Spent {
                usage,
                cost,
                requests,
                tool_calls,
                ..
            } => Tally {
                usage,
                cost,
                requests,
                tool_calls,
            },
            Record::Prepared {
                spent: usage, cost, ..
            } => Tally {
                usage,
                cost,
                ..Tally::default()
            },
            _ => return,
        };
        if spent != Tally::default() {
            budget.spend(spent.into());
        }
    }

    /// Holds the budget of an agent in another session, until the waiting call has its result.
    fn lend(&mut self, pause: &Pause) {
        let (Some(budget), Some(link), Some(call)) =
            (&self.budget, ChildLink::from_pause(pause), pause.call_id())
        else {
            return;
        };
        self.lent
            .entry((call, link.child))
            .or_insert_with(|| budget.hold(link.caps));
    }

    /// The end of the time, once.
    pub(super) fn late(&mut self, cx: &mut Context<'_>) -> Option<Record> {
        let alarm = &mut self.known.as_mut()?.alarm;
        match alarm.as_mut()?.as_mut().poll(cx) {
            Poll::Ready(()) => {
                *alarm = None;
                Some(Record::Exhausted { limit: Limit::Time })
            }
            Poll::Pending => None,
        }
    }
}

impl BudgetBasis {
    fn alarm(&self) -> Option<Pin<Box<Sleep>>> {
        Some(Box::pin(sleep_until(self.end()?)))
    }

    /// Returns the moment at which the time is over.
    fn end(&self) -> Option<Instant> {
        let left = Duration::from_millis(self.caps.wall_ms?.saturating_sub(self.active_ms));
        self.began.checked_add(left)
    }

    fn active_ms(&self) -> u64 {
        let here = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.active_ms.saturating_add(here)
    }
}

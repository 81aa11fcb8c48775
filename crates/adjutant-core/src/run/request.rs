//! The parts of the next request of a run. Nothing here decides anything.

use adjutant_llm::{Effort, ModelId, NanoUsd, ToolName, Transcript};

use super::{EffectInput, Ledger, Measured, Run, Spend, Tally};
use crate::{number::TurnNo, options::Caps, outcome::Limit};

/// A view of the next request to a model and of its possible cost: read by the executor of a run.
#[derive(Debug, Clone, Copy)]
pub struct RequestView<'a>(&'a Run);

impl Run {
    /// Returns a view of the parts of the open turn's request, and of the amounts that the run has used and may use.
    pub fn request(&self) -> RequestView<'_> {
        RequestView(self)
    }
}

impl<'a> RequestView<'a> {
    /// The model that an earlier turn of this run chose.
    pub fn chosen_model(self) -> Option<&'a ModelId> {
        self.0.current.as_ref()?.change.model.as_ref()
    }

    /// Returns the thinking effort that an earlier turn of this run chose.
    pub fn chosen_thinking(self) -> Option<Effort> {
        self.0.current.as_ref()?.change.thinking
    }

    /// The only tools that an earlier turn of this run left.
    pub fn chosen_tools(self) -> Option<&'a [ToolName]> {
        self.0.current.as_ref()?.change.tools.as_deref()
    }

    /// The tools that are neither shown nor run in the open turn.
    pub fn hidden(self) -> &'a [ToolName] {
        self.0.working().map(|working| &working.hidden[..]).unwrap_or_default()
    }

    /// Returns the transcript that the open turn's request shows.
    pub fn shown(self) -> Transcript {
        let once = self.0.working().map(|working| &working.once[..]).unwrap_or_default();
        if once.is_empty() {
            return self.0.view.items().clone();
        }
        let mut view = self.0.view.clone();
        // They were tried on this very view before they were recorded.
        let fits = view.apply_all(once).is_ok();
        if fits { view.items().fork() } else { self.0.view.items().clone() }
    }

    /// True if the open turn is the last and may call no tools.
    pub fn is_last(self) -> bool {
        self.0.working().is_some_and(|working| working.last.is_some())
    }

    /// True if the open turn's request was too large once.
    pub fn has_overflowed(self) -> bool {
        self.0.working().is_some_and(|working| working.overflowed.is_some())
    }

    /// The caps of the newest run, raised by what was allowed since.
    pub fn caps(self) -> Caps {
        self.0.current.as_ref().map(|current| current.limits.caps).unwrap_or_default()
    }

    /// Returns the spending of the newest run and everything under it that has ended.
    pub fn spend(self) -> Spend {
        let Some(current) = &self.0.current else { return Spend::default() };
        let unasked = self.0.working().is_some_and(|it| it.settled.is_none() && it.reply.is_none() && it.attempt == 0);
        Spend {
            tokens: (current.usage + current.spent).total(),
            cost: NanoUsd::sum_known(current.cost, current.spent_cost).unwrap_or_default(),
            requests: u64::from(current.turns - u32::from(unasked && current.turns > 0))
                .saturating_add(current.child_requests),
            tool_calls: current.allowed.saturating_add(current.child_calls),
        }
    }

    /// The same, as it is counted while an agent works.
    pub fn tally(self) -> Tally {
        let Spend { requests, tool_calls, .. } = self.spend();
        let (usage, cost) = self.0.current.as_ref().map_or_else(Default::default, |current| {
            (current.usage + current.spent, NanoUsd::sum_known(current.cost, current.spent_cost))
        });
        Tally { usage, cost, requests, tool_calls }
    }

    /// Returns the time that the newest run has been performed, in milliseconds: the time while it was parked is free.
    pub fn active_ms(self) -> u64 {
        self.0.current.as_ref().map(|current| current.active_ms).unwrap_or_default()
    }

    /// True if a request of the open turn may be on its way.
    pub fn is_asking(self) -> bool {
        self.0.working().is_some_and(|it| it.prepared && it.reply.is_none() && it.settled.is_none())
    }

    /// The limit that was reached, if one was.
    pub fn reached(self) -> Option<Limit> {
        self.0.current.as_ref()?.reached()
    }

    /// Returns the input of effects in the open turn; without one, in the first turn of the next run.
    pub fn sight(self, now_ms: u64) -> EffectInput {
        let overflow = self.0.working().and_then(|working| working.overflowed);
        // The provider counted this very view: nothing is nearer to the truth.
        let counted = overflow.and_then(|overflow| overflow.used);
        let counted = counted.map(|tokens| Measured { tokens, estimate: self.0.view.tokens() });
        let (run, turn) = if self.0.is_open() {
            (self.0.run(), self.0.turn())
        } else {
            (self.0.next_run(), TurnNo(self.0.turns + 1))
        };
        EffectInput {
            run,
            turn,
            view: self.0.view.clone(),
            history: self.0.history.clone(),
            fresh: self.0.seen,
            memos: self.0.memos.clone(),
            ledger: self.ledger(now_ms),
            overflow: overflow.filter(|_| self.0.is_open()),
            last: self.0.is_open() && self.is_last(),
            only: self.chosen_tools().filter(|_| self.0.is_open()).map(<[ToolName]>::to_vec),
            measured: counted.filter(|_| self.0.is_open()).or(self.0.measured),
        }
    }

    /// Returns the amounts that the open run has used so far, and that it may use; nothing if no run is open.
    pub(crate) fn ledger(self, now_ms: u64) -> Ledger {
        let Some(current) = self.0.current.as_ref().filter(|current| current.outcome.is_none()) else {
            return Ledger::default();
        };
        let asking = current.turn.as_ref().is_some_and(|working| working.reply.is_none());
        Ledger {
            usage: current.usage,
            spent: current.spent,
            cost: NanoUsd::sum_known(current.cost, current.spent_cost),
            turns: current.turns.saturating_sub(u32::from(asking)),
            calls: u32::try_from(current.calls.len()).unwrap_or(u32::MAX),
            wall_ms: current.active_ms.saturating_add(now_ms.saturating_sub(current.heard_ms)),
            caps: current.limits.caps,
        }
    }

    /// Returns the number of tokens that the provider counted in the newest request that it counted.
    pub fn counted(self) -> Option<u64> {
        self.0.measured.map(|measured| measured.tokens)
    }
}

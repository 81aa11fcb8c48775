//! The parts of the next request of a run. Nothing here decides anything.

use adjutant_llm::{Effort, ModelId, NanoUsd, ToolName, Transcript};

use super::{EffectInput, Ledger, Measured, Run, Tally};
use crate::{
    number::{RunNo, TurnNo},
    options::Caps,
    outcome::Limit,
};

/// A view of the next request to a model and of its possible cost: read by the executor of a run.
#[derive(Debug, Clone, Copy)]
pub struct RequestView<'a> {
    run: &'a Run,
    /// The model that an earlier turn of this run chose.
    pub chosen_model: Option<&'a ModelId>,
    /// The thinking effort that an earlier turn of this run chose.
    pub chosen_thinking: Option<Effort>,
    /// The only tools that an earlier turn of this run left.
    pub chosen_tools: Option<&'a [ToolName]>,
    /// The tools that are neither declared nor run in the open turn.
    pub hidden: &'a [ToolName],
    /// True if the open turn is the last and may call no tools.
    pub is_last: bool,
    /// True if the open turn's request was too large once.
    pub has_overflowed: bool,
    /// The number of times that the provider refused media in the newest run.
    pub refusals: u32,
    /// True if the open turn's request shows entries that came after it was prepared.
    pub is_stale: bool,
    /// True if the provider may have cut the newest request that it counted: see [`EffectInput::undercount`].
    pub is_suspect: bool,
    /// True if a request of the open turn may be on its way.
    pub is_asking: bool,
    /// The caps of the latest run, raised by later extensions.
    pub caps: Caps,
    /// The time that the newest run has been performed, in milliseconds: the time while it was parked is free.
    pub active_ms: u64,
    /// The number of tokens that the provider counted in the newest request that it counted.
    pub counted: Option<u64>,
}

impl Run {
    /// Returns a view of the parts of the open turn's request, and of the amounts that the run has used and may use.
    #[inline]
    pub fn request(&self) -> RequestView<'_> {
        let current = self.current.as_ref();
        let (change, working) = (current.map(|current| &current.change), self.working());
        RequestView {
            run: self,
            chosen_model: change.and_then(|change| change.model.as_ref()),
            chosen_thinking: change.and_then(|change| change.thinking),
            chosen_tools: change.and_then(|change| change.tools.as_deref()),
            hidden: working
                .map(|working| &working.hidden[..])
                .unwrap_or_default(),
            is_last: working.is_some_and(|working| working.last.is_some()),
            has_overflowed: working.is_some_and(|working| working.overflowed.is_some()),
            refusals: current.map_or(0, |current| current.refusals),
            is_stale: self.history.next_id() > self.seen
                || working.is_some_and(|working| working.moved),
            is_suspect: self.measured.is_some_and(|measured| measured.is_suspect()),
            is_asking: working
                .is_some_and(|it| it.prepared && it.reply.is_none() && it.settled.is_none()),
            caps: current
                .map(|current| current.limits.caps)
                .unwrap_or_default(),
            active_ms: current.map(|current| current.active_ms).unwrap_or_default(),
            counted: self.measured.map(|measured| measured.tokens),
        }
    }
}

impl RequestView<'_> {
    /// Returns the transcript that the open turn's request shows.
    pub fn shown(self) -> Transcript {
        let once = self
            .run
            .working()
            .map(|working| &working.once[..])
            .unwrap_or_default();
        if once.is_empty() {
            return self.run.view.items().clone();
        }
        let mut view = self.run.view.clone();
        // They were tried on this very view before they were recorded.
        let fits = view.apply_all(once).is_ok();
        if fits {
            view.items().fork()
        } else {
            self.run.view.items().clone()
        }
    }

    /// Returns the amounts that the newest run and everything under it that has ended have used.
    pub fn tally(self) -> Tally {
        let Some(current) = &self.run.current else {
            return Tally::default();
        };
        let unasked = self
            .run
            .working()
            .is_some_and(|it| it.settled.is_none() && it.reply.is_none() && it.attempt == 0);
        Tally {
            usage: current.usage + current.spent,
            cost: NanoUsd::sum_known(current.cost, current.spent_cost),
            requests: u64::from(current.turns - u32::from(unasked && current.turns > 0))
                .saturating_add(current.child_requests),
            tool_calls: current.allowed.saturating_add(current.child_calls),
        }
    }

    /// Returns the most tokens that the request may hold, as [`EffectInput::most`] does.
    pub fn most(self, overhead: u64) -> u64 {
        Measured::most(self.run.measured, self.run.view.items().tokens(), overhead)
    }

    /// The limit that was reached, if one was.
    pub fn reached(self) -> Option<Limit> {
        self.run.current.as_ref()?.reached()
    }

    /// Returns the input of effects in the open turn; without one, in the first turn of the next run.
    pub fn sight(self, now_ms: u64) -> EffectInput {
        let overflow = self.run.working().and_then(|working| working.overflowed);
        // The provider counted this very view: nothing is nearer to the truth.
        let counted = overflow.and_then(|overflow| overflow.used);
        let counted = counted.map(|tokens| Measured {
            tokens,
            estimate: self.run.view.items().tokens(),
        });
        let (run, turn) = if self.run.is_open() {
            (self.run.run(), self.run.turn())
        } else {
            (RunNo(self.run.runs + 1), TurnNo(self.run.turns + 1))
        };
        EffectInput {
            run,
            turn,
            view: self.run.view.clone(),
            history: self.run.history.clone(),
            fresh: self.run.seen,
            memos: self.run.memos.clone(),
            prefix: self.run.prefix.clone(),
            ledger: self.ledger(now_ms),
            overflow: overflow.filter(|_| self.run.is_open()),
            last: self.run.is_open() && self.is_last,
            only: self
                .chosen_tools
                .filter(|_| self.run.is_open())
                .map(<[ToolName]>::to_vec),
            measured: counted.filter(|_| self.run.is_open()).or(self.run.measured),
        }
    }

    /// Returns the amounts that the open run has used so far, and that it may use; nothing if no run is open.
    pub(crate) fn ledger(self, now_ms: u64) -> Ledger {
        let Some(current) = self
            .run
            .current
            .as_ref()
            .filter(|current| current.outcome.is_none())
        else {
            return Ledger::default();
        };
        let asking = current
            .turn
            .as_ref()
            .is_some_and(|working| working.reply.is_none());
        Ledger {
            usage: current.usage,
            spent: current.spent,
            cost: NanoUsd::sum_known(current.cost, current.spent_cost),
            turns: current.turns.saturating_sub(u32::from(asking)),
            calls: u32::try_from(current.calls.len()).unwrap_or(u32::MAX),
            wall_ms: current
                .active_ms
                .saturating_add(now_ms.saturating_sub(current.heard_ms)),
            caps: current.limits.caps,
        }
    }
}

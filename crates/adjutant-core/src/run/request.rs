//! The parts of the next request of a run. Nothing here decides anything.

use adjutant_llm::{Effort, ModelId, NanoUsd, ToolName, Transcript};

use super::{EffectInput, Ledger, Measured, Run, Tally};
use crate::{
    number::{RunNo, TurnNo},
    options::Caps,
    outcome::Limit,
    record::RunChange,
};

/// A view of the next request to a model and of its possible cost: read by the executor of a run.
#[derive(Debug, Clone, Copy)]
pub struct RequestView<'a> {
    run: &'a Run,
}

impl Run {
    /// Returns a view of the parts of the open turn's request, and of the amounts that the run has used and may use.
    pub fn request(&self) -> RequestView<'_> {
        RequestView { run: self }
    }
}

impl<'a> RequestView<'a> {
    fn change(self) -> Option<&'a RunChange> {
        Some(&self.run.current.as_ref()?.change)
    }

    /// Returns the model that an earlier turn of this run chose.
    pub fn chosen_model(self) -> Option<&'a ModelId> {
        self.change()?.model.as_ref()
    }

    /// Returns the thinking effort that an earlier turn of this run chose.
    pub fn chosen_thinking(self) -> Option<Effort> {
        self.change()?.thinking
    }

    /// Returns the only tools that an earlier turn of this run left.
    pub fn chosen_tools(self) -> Option<&'a [ToolName]> {
        self.change()?.tools.as_deref()
    }

    /// Returns the tools that are neither declared nor run in the open turn.
    pub fn hidden(self) -> &'a [ToolName] {
        let working = self.run.working();
        working.map(|it| &it.hidden[..]).unwrap_or_default()
    }

    /// True if the open turn is the last and may call no tools.
    pub fn is_last(self) -> bool {
        self.run.working().is_some_and(|it| it.last.is_some())
    }

    /// True if the open turn's request was too large once.
    pub fn has_overflowed(self) -> bool {
        self.run.working().is_some_and(|it| it.overflowed.is_some())
    }

    /// Returns the number of times that the provider refused media in the newest run.
    pub fn refusals(self) -> u32 {
        self.run.current.as_ref().map_or(0, |it| it.refusals)
    }

    /// True if the open turn's request shows entries that came after it was prepared.
    pub fn is_stale(self) -> bool {
        let has_moved = || self.run.working().is_some_and(|it| it.moved);
        self.run.history.next_id() > self.run.seen || has_moved()
    }

    /// True if the provider may have cut the newest request that it counted: see [`EffectInput::undercount`].
    pub fn is_suspect(self) -> bool {
        self.run.measured.is_some_and(|it| it.is_suspect())
    }

    /// True if a request of the open turn may be on its way.
    pub fn is_asking(self) -> bool {
        let working = self.run.working();
        working.is_some_and(|it| it.prepared && it.reply.is_none() && it.settled.is_none())
    }

    /// Returns the caps of the latest run, raised by later extensions.
    pub fn caps(self) -> Caps {
        let current = self.run.current.as_ref();
        current.map(|it| it.limits.caps).unwrap_or_default()
    }

    /// Returns the time that the newest run has been performed, in milliseconds, without the time while it was parked.
    pub fn active_ms(self) -> u64 {
        self.run.current.as_ref().map_or(0, |it| it.active_ms)
    }

    /// Returns the number of tokens that the provider counted in the newest request that it counted.
    pub fn token_count(self) -> Option<u64> {
        self.run.measured.map(|it| it.tokens)
    }

    /// Returns the transcript that the open turn's request shows.
    pub fn transcript(self) -> Transcript {
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
    pub fn limit_reached(self) -> Option<Limit> {
        self.run.current.as_ref()?.limit_reached()
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
            last: self.run.is_open() && self.is_last(),
            only: self
                .chosen_tools()
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

//! What effects see of a run: a copy that costs a few counters, taken when a turn is about to be prepared.

use std::{collections::BTreeMap, sync::Arc};

use adjutant_llm::{Entry, EntryId, NanoUsd, Overflow, ToolName, Transcript, View};
use serde_json::Value;

use super::{Ledger, Measured, Run};
use crate::number::{RunNo, TurnNo};

/// What effects see of a run.
#[derive(Debug, Clone)]
pub struct Sight {
    pub run: RunNo,
    pub turn: TurnNo,
    pub view: View,
    pub history: Transcript,
    /// The entries from this one on are new since the last turn was prepared.
    pub fresh: EntryId,
    pub memos: BTreeMap<Arc<str>, Value>,
    pub ledger: Ledger,
    /// How far the request did not fit, if the provider said that it does not.
    pub overflow: Option<Overflow>,
    /// Whether the turn is the last and may call no tools.
    pub last: bool,
    /// The only tools that an earlier turn of this run left.
    pub only: Option<Vec<ToolName>>,
    measured: Option<Measured>,
}

impl Sight {
    /// How many tokens a request with this view would hold; `overhead` as in [`Run::context_tokens`].
    pub fn tokens(&self, view: &View, overhead: u64) -> u64 {
        Measured::scale(self.measured, view.tokens(), overhead)
    }

    /// The same, of a view of this estimated size.
    pub fn estimate(&self, view: u64, overhead: u64) -> u64 {
        Measured::scale(self.measured, view, overhead)
    }

    /// Whether a provider has counted a request of this conversation.
    pub fn is_measured(&self) -> bool {
        self.measured.is_some()
    }

    /// The same, with these entries at the end.
    pub fn with(mut self, entries: Vec<Entry>) -> Self {
        for entry in entries {
            let stored = self.history.push(entry);
            self.view.append(stored);
        }
        self
    }
}

impl Run {
    /// What effects see in the open turn; without one, in the first turn of the next run.
    pub fn sight(&self, now_ms: u64) -> Sight {
        let overflow = self.working().and_then(|working| working.overflowed);
        // The provider counted this very view: nothing is nearer to the truth.
        let counted = overflow.and_then(|overflow| overflow.used);
        let counted = counted.map(|tokens| Measured { tokens, estimate: self.view.tokens() });
        let (run, turn) =
            if self.is_open() { (self.run(), self.turn()) } else { (self.next_run(), TurnNo(self.turns + 1)) };
        Sight {
            run,
            turn,
            view: self.view.clone(),
            history: self.history.clone(),
            fresh: self.seen,
            memos: self.memos.clone(),
            ledger: self.ledger(now_ms),
            overflow: overflow.filter(|_| self.is_open()),
            last: self.is_open() && self.is_last(),
            only: self.chosen_tools().filter(|_| self.is_open()).map(<[ToolName]>::to_vec),
            measured: counted.filter(|_| self.is_open()).or(self.measured),
        }
    }

    /// What the open run has used so far, and what it may use; nothing if no run is open.
    pub fn ledger(&self, now_ms: u64) -> Ledger {
        let Some(current) = self.current.as_ref().filter(|current| current.outcome.is_none()) else {
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
}

impl Measured {
    /// What an estimate is taken for after what the provider counted last.
    pub(super) fn scale(measured: Option<Self>, now: u64, overhead: u64) -> u64 {
        match measured {
            None => now.saturating_add(overhead),
            Some(last) if now >= last.estimate => last.tokens.saturating_add(now - last.estimate),
            Some(last) => {
                let scaled = u128::from(last.tokens) * u128::from(now) / u128::from(last.estimate.max(1));
                u64::try_from(scaled).unwrap_or(u64::MAX).max(now)
            }
        }
    }
}

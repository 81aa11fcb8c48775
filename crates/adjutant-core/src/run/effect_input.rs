//! The parts of a run that effects see: a copy that costs a few counters, taken when a turn is about to be prepared.

use std::{collections::BTreeMap, sync::Arc};

use adjutant_llm::{Entry, EntryId, Estimate, Overflow, ToolName, Transcript, View};
use serde_json::Value;

use super::{Ledger, Measured};
use crate::{
    number::{RunNo, TurnNo},
    record::Prefix,
};

/// The parts of a run that effects see.
#[derive(Debug, Clone)]
pub struct EffectInput {
    /// The run.
    pub run: RunNo,
    /// The turn that is prepared.
    pub turn: TurnNo,
    /// The view that the request shows.
    pub view: View,
    /// The complete conversation.
    pub history: Transcript,
    /// The entries from this one on are new since the last turn was prepared.
    pub fresh: EntryId,
    /// The memos that effects keep, by kind.
    pub memos: BTreeMap<Arc<str>, Value>,
    /// The beginning of requests to models that refuse another one, if it was recorded.
    pub prefix: Option<Arc<Prefix>>,
    /// The amounts that were used, and that may be.
    pub ledger: Ledger,
    /// The amount by which the request did not fit, if the provider reported an overflow.
    pub overflow: Option<Overflow>,
    /// True if the turn is the last and may call no tools.
    pub last: bool,
    /// The only tools that an earlier turn of this run left.
    pub only: Option<Vec<ToolName>>,
    pub(super) measured: Option<Measured>,
}

impl EffectInput {
    /// Returns the number of tokens that a request with this view would hold; `overhead` as in
    /// [`Run::context_tokens`](super::Run::context_tokens).
    pub fn tokens(&self, view: &View, overhead: u64) -> u64 {
        Measured::scale(self.measured, view.items().tokens(), overhead)
    }

    /// The same, of a view of this estimated size.
    pub fn estimate(&self, view: u64, overhead: u64) -> u64 {
        Measured::scale(self.measured, view, overhead)
    }

    /// Returns the most tokens that a request with a view of this estimated size may hold.
    ///
    /// Unlike an [`estimate`](Self::estimate), it always includes `overhead`, and ignores a count of less than half
    /// of the estimate.
    pub fn most(&self, view: u64, overhead: u64) -> u64 {
        Measured::most(self.measured, view, overhead)
    }

    /// Returns the latest count if it is so far below its estimate that the provider may have cut off the request.
    pub fn undercount(&self) -> Option<u64> {
        self.measured
            .filter(Measured::is_suspect)
            .map(|measured| measured.tokens)
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

impl Measured {
    /// True if the provider may have cut off the request.
    pub(super) fn is_suspect(&self) -> bool {
        Estimate::is_undercounted(self.estimate, self.tokens)
    }

    fn is_short(&self) -> bool {
        self.tokens.saturating_mul(2) < self.estimate
    }

    /// The largest number of tokens of a request whose view is now estimated at this.
    pub(super) fn most(measured: Option<Self>, now: u64, overhead: u64) -> u64 {
        let Some(last) = measured.filter(|last| !last.is_short()) else {
            return now.saturating_add(overhead);
        };
        // A count at or below the estimate of the entries may include nothing else.
        let entries = last
            .tokens
            .saturating_sub(overhead)
            .max(last.tokens.min(last.estimate));
        let entries = match now.checked_sub(last.estimate) {
            Some(more) => entries.saturating_add(more),
            None => {
                let scaled = (u128::from(entries) * u128::from(now))
                    .div_ceil(u128::from(last.estimate.max(1)));
                u64::try_from(scaled).unwrap_or(u64::MAX)
            }
        };
        entries.saturating_add(overhead)
    }

    /// Corrects an estimate by what the provider counted last.
    pub(super) fn scale(measured: Option<Self>, now: u64, overhead: u64) -> u64 {
        match measured {
            None => now.saturating_add(overhead),
            Some(last) if now >= last.estimate => last.tokens.saturating_add(now - last.estimate),
            Some(last) => {
                let scaled =
                    u128::from(last.tokens) * u128::from(now) / u128::from(last.estimate.max(1));
                u64::try_from(scaled).unwrap_or(u64::MAX).max(now)
            }
        }
    }
}

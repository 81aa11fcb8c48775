//! Corrects estimates by what providers report.

use serde::{Deserialize, Serialize};

use super::Transcript;
use crate::{EntryId, Usage, entry::Entry, tokens::result};

/// The weight of older reports against a new one, in percent.
const MEMORY_PERCENT: u64 = 50;
/// The largest correction: an estimate is at least divided and at most multiplied by this.
const MAX_FACTOR: u128 = 4;

/// Learns from reported sizes how far estimates are off. One for each model and conversation.
///
/// A meter that has seen nothing leaves estimates as they are; each report counts twice as much as the one before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meter {
    estimated: u64,
    reported: u64,
}

impl Meter {
    /// Records the estimated and the reported size of the same content, in tokens. A report of zero is ignored.
    pub fn observe(&mut self, estimated: u64, reported: u64) {
        if estimated == 0 || reported == 0 {
            return;
        }
        let kept = |sum: u64| (u128::from(sum) * u128::from(MEMORY_PERCENT) / 100) as u64;
        self.estimated = kept(self.estimated).saturating_add(estimated);
        self.reported = kept(self.reported).saturating_add(reported);
    }

    /// Returns the corrected estimate, in tokens: between a quarter and four times of it.
    pub fn correct_estimate(&self, estimate: u64) -> u64 {
        if self.estimated == 0 {
            return estimate;
        }
        let wide = u128::from(estimate);
        let scaled = (wide * u128::from(self.reported)).div_ceil(u128::from(self.estimated));
        let bounded = scaled.clamp(wide.div_ceil(MAX_FACTOR), wide * MAX_FACTOR);
        u64::try_from(bounded).unwrap_or(u64::MAX)
    }

    /// Returns the used part of the context window, in tokens: the report of the reply in entry `turn`, the results of
    /// its calls, and the corrected estimates of the entries after it.
    ///
    /// Without that entry among `entries`, or with an empty report, all of it is estimated. A report that is older
    /// than the last change of the view speaks of another context: leave it out, by giving `Usage::default()`.
    pub fn context_used(&self, entries: &Transcript, turn: EntryId, reported: &Usage) -> u64 {
        let mut after = 0_u64;
        for stored in entries.iter().rev() {
            if stored.id > turn {
                after = after.saturating_add(stored.tokens);
                continue;
            }
            let Entry::Turn(found) = &stored.entry else {
                break;
            };
            if stored.id < turn || reported.total() == 0 {
                break;
            }
            let results = found.results().iter().map(|it| result(it)).sum();
            return reported
                .total()
                .saturating_add(self.correct_estimate(after.saturating_add(results)));
        }
        self.correct_estimate(entries.tokens())
    }
}

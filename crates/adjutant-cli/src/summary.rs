//! The last line of a run: its usage.

use std::fmt;

use adjutant::{
    Outcome, RunResult,
    llm::{Block, Entry, Estimate, FinishReason, NanoUsd, Reply, Usage},
};

use crate::amount::grouped;

/// The smallest cost that is not displayed as zero.
const SHOWN: u64 = 100_000;

/// The turns, calls, tokens and cost of a run, for example `turns 2, calls 3, tokens 1,234 in / 56 out, cost $0.0012`,
/// or `tokens at least 1,234 in / about 56 out, cost at least $0.0012` if a reply was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Took {
    pub(crate) turns: u64,
    pub(crate) calls: u64,
    pub(crate) usage: Usage,
    /// Unknown if any price is unknown.
    pub(crate) cost: Option<NanoUsd>,
    /// The estimated output tokens of interrupted replies that the model did not count.
    pub(crate) uncounted: u64,
    /// True if a reply was interrupted: models report usage at the end, so all values are minimums.
    pub(crate) is_cut: bool,
}

impl Took {
    /// Returns the turns, calls, tokens and cost of a run.
    pub(crate) fn from_result(result: &RunResult) -> Self {
        let (turns, calls) = (u64::from(result.turns), result.calls.len() as u64);
        // Unknown if the cost of the agent itself is unknown.
        let cost = result.cost.and(result.total_cost);
        let replies = || {
            result.entries.iter().filter_map(|entry| match entry {
                Entry::Turn(turn) => Some(turn.reply()),
                _ => None,
            })
        };
        let cut = || replies().filter(|reply| reply.stop == FinishReason::Interrupted);
        let uncounted = cut()
            .map(|reply| said(reply).saturating_sub(reply.usage.output))
            .sum();
        let is_unheard = matches!(result.outcome, Outcome::Cancelled { .. })
            && (replies().count() as u64) < u64::from(result.turns);
        let is_cut = is_unheard || cut().next().is_some();
        Self {
            turns,
            calls,
            usage: result.total_usage,
            cost,
            uncounted,
            is_cut,
        }
    }

    /// Returns the sum of both.
    pub(crate) fn and(self, other: Self) -> Self {
        let cost = self.cost.zip(other.cost).map(|(one, other)| one + other);
        let (turns, calls) = (self.turns + other.turns, self.calls + other.calls);
        let (uncounted, is_cut) = (
            self.uncounted + other.uncounted,
            self.is_cut || other.is_cut,
        );
        Self {
            turns,
            calls,
            usage: self.usage + other.usage,
            cost,
            uncounted,
            is_cut,
        }
    }
}

impl fmt::Display for Took {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = |text: String, is_nothing: bool, mark: &str| match (self.is_cut, is_nothing) {
            (false, _) => text,
            (true, true) => "unknown".to_owned(),
            (true, false) => format!("{mark} {text}"),
        };
        let (input, output) = (self.usage.input(), self.usage.output + self.uncounted);
        let [turns, calls] = [self.turns, self.calls].map(grouped);
        let (input, output) = (
            mark(grouped(input), input == 0, "at least"),
            mark(grouped(output), output == 0, "about"),
        );
        write!(
            f,
            "turns {turns}, calls {calls}, tokens {input} in / {output} out, "
        )?;
        match self.cost {
            Some(cost) => write!(
                f,
                "cost {}",
                mark(cost.to_string(), cost.0 < SHOWN, "at least")
            ),
            None => f.write_str("cost unknown"),
        }
    }
}

/// Estimates the output tokens of a reply's text.
fn said(reply: &Reply) -> u64 {
    let count = |block: &Block| match block {
        Block::Text(text) => Estimate.count(&text.text),
        Block::Thinking(thinking) => Estimate.count(&thinking.text),
        Block::Call(call) => Estimate.count(&call.args),
        _ => 0,
    };
    reply.blocks.iter().map(|block| count(block)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn took_says_what_it_took_when_a_price_is_known_or_not() {
        let usage = Usage {
            input_uncached: 1_000,
            cache_read: 200,
            cache_write: 34,
            cache_write_1h: 0,
            output: 56,
            reasoning: 7,
        };
        let expect = "turns 2, calls 3, tokens 1,234 in / 56 out, cost";
        let took = Took {
            turns: 2,
            calls: 3,
            usage,
            cost: Some(NanoUsd(1_234_000)),
            uncounted: 0,
            is_cut: false,
        };
        assert_eq!(took.to_string(), format!("{expect} $0.0012"));
        assert_eq!(
            Took { cost: None, ..took }.to_string(),
            format!("{expect} unknown")
        );
        let cut = Took {
            uncounted: 4,
            is_cut: true,
            ..took
        };
        let told =
            "turns 2, calls 3, tokens at least 1,234 in / about 60 out, cost at least $0.0012";
        assert_eq!(cut.to_string(), told);
        let unknown = Took {
            usage: Usage::default(),
            cost: Some(NanoUsd(0)),
            uncounted: 0,
            ..cut
        };
        assert_eq!(
            unknown.to_string(),
            "turns 2, calls 3, tokens unknown in / unknown out, cost unknown"
        );
        assert_eq!(
            unknown.and(cut).to_string(),
            told.replacen("2, calls 3", "4, calls 6", 1)
        );
    }
}

//! The last line of a run: what it took.

use std::fmt;

use adjutant::{
    RunResult,
    llm::{NanoUsd, Usage},
};

use crate::amount::grouped;

/// The turns, calls, tokens and cost of a run; shown for example as `turns 2, calls 3, tokens 1,234 in / 56 out, cost
/// $0.0012`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Took {
    pub(crate) turns: u64,
    pub(crate) calls: u64,
    pub(crate) usage: Usage,
    /// Unknown if the price of anything is.
    pub(crate) cost: Option<NanoUsd>,
}

impl Took {
    /// Returns the turns, calls, tokens and cost of a run.
    pub(crate) fn of(result: &RunResult) -> Self {
        let (turns, calls) = (u64::from(result.turns), result.calls.len() as u64);
        // Unknown, if already what the agent itself cost is.
        let cost = result.cost.and(result.total_cost);
        Self { turns, calls, usage: result.total_usage, cost }
    }

    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        let cost = self.cost.zip(other.cost).map(|(one, other)| one + other);
        let (turns, calls) = (self.turns + other.turns, self.calls + other.calls);
        Self { turns, calls, usage: self.usage + other.usage, cost }
    }
}

impl fmt::Display for Took {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [turns, calls, input, output] =
            [self.turns, self.calls, self.usage.input(), self.usage.output].map(grouped);
        write!(f, "turns {turns}, calls {calls}, tokens {input} in / {output} out, ")?;
        match self.cost {
            Some(cost) => write!(f, "cost {cost}"),
            None => f.write_str("cost unknown"),
        }
    }
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
        let took = Took { turns: 2, calls: 3, usage, cost: Some(NanoUsd(1_234_000)) };
        assert_eq!(took.to_string(), format!("{expect} $0.0012"));
        assert_eq!(Took { cost: None, ..took }.to_string(), format!("{expect} unknown"));
    }
}

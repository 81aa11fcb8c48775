//! The last line of a run: what it took.

use adjutant::{
    RunResult,
    llm::{NanoUsd, Usage},
};

use crate::amount::grouped;

/// What a run took, for example `turns 2, calls 3, tokens 1,234 in / 56 out, cost $0.0012`.
pub(crate) fn summary(result: &RunResult) -> String {
    text(u64::from(result.turns), result.calls.len() as u64, &result.total_usage, result.cost)
}

fn text(turns: u64, calls: u64, usage: &Usage, cost: Option<NanoUsd>) -> String {
    let cost = cost.map_or_else(|| "cost unknown".to_owned(), |cost| format!("cost {cost}"));
    let [turns, calls, input, output] = [turns, calls, usage.input(), usage.output].map(grouped);
    format!("turns {turns}, calls {calls}, tokens {input} in / {output} out, {cost}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_says_what_it_took_when_a_price_is_known_or_not() {
        let usage = Usage {
            input_uncached: 1_000,
            cache_read: 200,
            cache_write: 34,
            cache_write_1h: 0,
            output: 56,
            reasoning: 7,
        };
        let expect = "turns 2, calls 3, tokens 1,234 in / 56 out, cost";
        assert_eq!(text(2, 3, &usage, Some(NanoUsd(1_234_000))), format!("{expect} $0.0012"));
        assert_eq!(text(2, 3, &usage, None), format!("{expect} unknown"));
    }
}

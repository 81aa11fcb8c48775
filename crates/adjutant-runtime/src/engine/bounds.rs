//! Converts the limits and budgets of a manifest.

use std::time::Duration;

use adjutant_agent::{AtLimit, Caps, Limits};
use adjutant_llm::NanoUsd;

use crate::manifest::{AgentSpec, BudgetSpec, LimitEnd};

/// Returns the caps of a budget.
pub(super) fn caps(budget: &BudgetSpec) -> Caps {
    Caps {
        tokens: budget.tokens,
        cost: budget.cost_usd.map(nano),
        requests: budget.requests,
        tool_calls: budget.tool_calls,
        wall_ms: budget.time.map(|time| millis(time.0)),
        depth: budget.depth,
        // The manifest's count includes the first agent; caps do not.
        agents: budget.agents.map(|agents| agents.saturating_sub(1)),
    }
}

/// Returns the limits of one run of an agent.
pub(super) fn limits(agent: &AgentSpec) -> Limits {
    let spec = &agent.limits;
    let usual = Limits::default();
    Limits {
        max_turns: spec.max_turns.or(agent.max_turns).or(usual.max_turns),
        max_parallel_tools: spec.max_parallel_tools.unwrap_or(usual.max_parallel_tools),
        sequential: spec.sequential,
        unattended: spec.unattended,
        at_limit: match spec.at_limit {
            None | Some(LimitEnd::End) => AtLimit::End,
            Some(LimitEnd::LastTurn) => AtLimit::LastTurn,
            Some(LimitEnd::Ask) => AtLimit::Ask,
        },
        caps: caps(&agent.budget),
        ..usual
    }
}

/// Converts dollars to billionths of a dollar; negative amounts become 0.
fn nano(dollars: f64) -> NanoUsd {
    NanoUsd((dollars * 1e9).round() as u64)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_budgets_hold() {
        let (mut one, mut other) = (BudgetSpec::default(), BudgetSpec::default());
        (one.tokens, one.agents, one.cost_usd) = (Some(10), Some(3), Some(0.5));
        (other.tokens, other.depth, other.cost_usd) = (Some(7), Some(2), Some(1.0));
        let expect = Caps {
            tokens: Some(7),
            agents: Some(2),
            depth: Some(2),
            cost: Some(NanoUsd(500_000_000)),
            ..Caps::default()
        };
        assert_eq!(caps(&one).within(caps(&other)), expect);
    }
}

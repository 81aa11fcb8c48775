//! The limits and budgets of a manifest, as an agent takes them.

use std::time::Duration;

use adjutant_agent::{AtLimit, Caps, Limits};
use adjutant_llm::NanoUsd;

use crate::manifest::{AgentSpec, BudgetSpec, LimitEnd};

/// What a budget allows.
pub(super) fn caps(budget: &BudgetSpec) -> Caps {
    let mut caps = Caps::new();
    caps.tokens = budget.tokens;
    caps.cost = budget.cost_usd.map(nano);
    caps.requests = budget.requests;
    caps.tool_calls = budget.tool_calls;
    caps.wall_ms = budget.time.map(|time| millis(time.0));
    caps.depth = budget.depth;
    // A manifest counts the one that is spoken to, and caps do not.
    caps.agents = budget.agents.map(|agents| agents.saturating_sub(1));
    caps
}

/// What both allow.
pub(super) fn tighter(one: Caps, other: Caps) -> Caps {
    let mut caps = Caps::new();
    caps.tokens = least(one.tokens, other.tokens);
    caps.cost = least(one.cost, other.cost);
    caps.requests = least(one.requests, other.requests);
    caps.tool_calls = least(one.tool_calls, other.tool_calls);
    caps.wall_ms = least(one.wall_ms, other.wall_ms);
    caps.depth = least(one.depth, other.depth);
    caps.agents = least(one.agents, other.agents);
    caps
}

/// The limits of one run of an agent.
pub(super) fn limits(agent: &AgentSpec) -> Limits {
    let spec = &agent.limits;
    let mut limits = Limits::new().caps(caps(&agent.budget));
    if let Some(turns) = spec.max_turns.or(agent.max_turns) {
        limits = limits.max_turns(turns);
    }
    if let Some(calls) = spec.max_parallel_tools {
        limits = limits.max_parallel_tools(calls);
    }
    if spec.sequential {
        limits = limits.sequential();
    }
    if spec.unattended {
        limits = limits.unattended();
    }
    limits.at_limit(match spec.at_limit {
        None | Some(LimitEnd::End) => AtLimit::End,
        Some(LimitEnd::LastTurn) => AtLimit::LastTurn,
        Some(LimitEnd::Ask) => AtLimit::Ask,
    })
}

/// The lesser of two, of which either may be missing.
fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Billionths of dollars; what is less than nothing is nothing.
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
        let expect = Caps::new().tokens(7).agents(2).depth(2).cost(NanoUsd(500_000_000));
        assert_eq!(tighter(caps(&one), caps(&other)), expect);
    }
}

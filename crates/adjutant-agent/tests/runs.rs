//! Runs as their callers see them: the loop, tools, approval, queues, budgets, agents under agents.
//!
//! Cargo links each target by itself, which takes longer than what is in most of them: so these files are modules.
//! A new file beside this one is one too: it needs its line in one of the roots.

#![expect(
    clippy::duplicate_mod,
    reason = "files share stages, each has its own copy"
)]

#[path = "agent_api.rs"]
mod agent_api;
#[path = "approval.rs"]
mod approval;
#[path = "basic.rs"]
mod basic;
#[path = "blocking.rs"]
mod blocking;
#[path = "budgets.rs"]
mod budgets;
#[path = "cancel.rs"]
mod cancel;
#[path = "errors.rs"]
mod errors;
#[path = "loop_bounds.rs"]
mod loop_bounds;
#[path = "loop_rules.rs"]
mod loop_rules;
#[path = "loop_runs.rs"]
mod loop_runs;
#[path = "outputs.rs"]
mod outputs;
#[path = "queues.rs"]
mod queues;
#[path = "resumed.rs"]
mod resumed;
#[path = "sampling.rs"]
mod sampling;
#[path = "subagent_events.rs"]
mod subagent_events;
#[path = "subagent_pauses.rs"]
mod subagent_pauses;
#[path = "subagents.rs"]
mod subagents;
#[path = "subagents_more.rs"]
mod subagents_more;
#[path = "tools_loop.rs"]
mod tools_loop;

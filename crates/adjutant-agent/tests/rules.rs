//! What is set around runs: hooks, middleware, effects, instructions, memories, listeners.
//!
//! Cargo links each target by itself, which takes longer than what is in most of them: so these files are modules.
//! A new file beside this one is one too: it needs its line in one of the roots.

#![expect(
    clippy::duplicate_mod,
    reason = "files share stages, each has its own copy"
)]

#[path = "effects_budget.rs"]
mod effects_budget;
#[path = "effects_catalogue.rs"]
mod effects_catalogue;
#[path = "effects_engine.rs"]
mod effects_engine;
#[path = "effects_loops.rs"]
mod effects_loops;
#[path = "effects_mask.rs"]
mod effects_mask;
#[path = "effects_offload.rs"]
mod effects_offload;
#[path = "effects_progress.rs"]
mod effects_progress;
#[path = "effects_reflection.rs"]
mod effects_reflection;
#[path = "effects_scope.rs"]
mod effects_scope;
#[path = "effects_stall.rs"]
mod effects_stall;
#[path = "effects_trim.rs"]
mod effects_trim;
#[path = "floor.rs"]
mod floor;
#[path = "hook_rules.rs"]
mod hook_rules;
#[path = "hook_rules_chains.rs"]
mod hook_rules_chains;
#[path = "hook_rules_failures.rs"]
mod hook_rules_failures;
#[path = "hook_rules_watched.rs"]
mod hook_rules_watched;
#[path = "hooks.rs"]
mod hooks;
#[path = "inside.rs"]
mod inside;
#[path = "instructions.rs"]
mod instructions;
#[path = "instructions_of_runs.rs"]
mod instructions_of_runs;
#[path = "listeners.rs"]
mod listeners;
#[path = "middleware.rs"]
mod middleware;
#[path = "preview.rs"]
mod preview;

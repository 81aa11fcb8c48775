//! What an agent offers around its runs: what is set, what is decided between two turns, how a run is stopped.

#[path = "agent_api/ends.rs"]
mod ends;
#[path = "agent_api/entries.rs"]
mod entries;
#[path = "agent_api/says.rs"]
mod says;
#[path = "agent_api/setters.rs"]
mod setters;
#[path = "loop_rules/stage.rs"]
mod stage;
#[path = "agent_api/turns.rs"]
mod turns;

//! The seams between parts: children that wait, logs that fail, runs that are stopped, dropped, taken over and resumed.

#[path = "subagents/desk.rs"]
#[expect(dead_code, reason = "several targets share it, each uses its part")]
mod desk;
#[path = "hostile_seams/ends.rs"]
mod ends;
#[path = "hostile_seams/faults.rs"]
mod faults;
#[path = "hostile_seams/probes.rs"]
mod probes;
#[path = "hostile_seams/stage.rs"]
mod stage;
#[path = "hostile_seams/waits.rs"]
mod waits;

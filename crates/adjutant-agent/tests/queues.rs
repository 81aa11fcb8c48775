//! Steering and follow-ups: when they are placed, in which order, and that none is lost; runs without a prompt.

#[path = "queues/dropped.rs"]
mod dropped;
#[path = "queues/going_on.rs"]
mod going_on;
#[path = "queues/handles.rs"]
mod handles;
#[path = "queues/hooks.rs"]
mod hooks;
#[path = "queues/interrupts.rs"]
mod interrupts;
#[path = "queues/kept.rs"]
mod kept;
#[path = "queues/polls.rs"]
mod polls;
#[path = "queues/seen.rs"]
mod seen;
#[path = "queues/sessions.rs"]
mod sessions;
#[path = "loop_rules/stage.rs"]
mod stage;

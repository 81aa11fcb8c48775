//! Delegation: who can be given tasks, what they are told, what comes of it, and what holds whatever happens.

#[path = "delegation/boards.rs"]
mod boards;
#[path = "delegation/bounds.rs"]
mod bounds;
#[path = "delegation/briefs.rs"]
mod briefs;
#[path = "delegation/crash.rs"]
mod crash;
#[path = "delegation/desk.rs"]
pub(crate) mod desk;
#[path = "delegation/ends.rs"]
mod ends;
#[path = "delegation/events.rs"]
mod events;
#[path = "delegation/handoffs.rs"]
mod handoffs;
#[path = "delegation/questions.rs"]
mod questions;
#[path = "delegation/tools.rs"]
mod tools;

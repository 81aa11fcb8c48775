//! The drill of workers: sessions whose steps may be done once, many workers, kills at any moment, a database that starts anew.

mod drill;
mod worker;

pub use drill::{Drill, Survived};
pub use worker::worker;

/// How many steps each session has.
const STEPS: usize = 6;
/// The step that is given to an agent in a session of its own.
const GIVEN: usize = 3;
/// What a session says at its end.
const DONE: &str = "All is paid.";
/// The file in which workers write what they do.
const EFFECTS: &str = "effects";

//! The drill of workers: sessions whose steps may be done once, many workers, kills at any moment, a database that starts anew.

mod drill;
mod worker;

pub use drill::{Drill, Survived, now_ms};
pub use worker::{agents, worker};

pub(crate) use drill::{Worker, due_work};
pub(crate) use worker::drive;

/// How many steps each session has.
const STEPS: usize = 6;
/// The step that waits for an approval, of agents that ask.
const ASKED: usize = 2;
/// The step that is given to an agent in a session of its own.
const GIVEN: usize = 3;
/// What a session says at its end.
const DONE: &str = "All is paid.";
/// The file in which workers write what they do.
const EFFECTS: &str = "effects";
/// What stands there in the place of a step, when a worker has taken a session.
const TAKEN: &str = "taken";

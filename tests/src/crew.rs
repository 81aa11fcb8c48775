//! The crew drill: three worker processes share one board of 200 tasks, and are killed at any moment.
//!
//! Each task is a session of an agent: a worker that takes over a dead one's task goes on where its log ends. What the
//! agents did is counted outside the processes, in a file that only grows.

mod check;
mod drill;
mod plan;
mod worker;

pub use drill::{Drill, Survived};
pub use plan::TASKS;
pub use worker::worker;

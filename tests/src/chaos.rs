//! The chaos drill: agents in processes of their own under a real `adjutant up`, all of them killed at any moment while
//! they are prompted and ordered about.
//!
//! Afterwards every agent stands where it should, no process is left, and every prompt that was answered is in its session.

mod drill;
mod field;
mod killer;
mod measure;
mod prompts;
mod trace;

pub use drill::{Drill, Survived};
pub use measure::measure;

//! The chaos drill: agents in processes of their own under a real `adjutant up`, all of them killed at any moment while
//! they are ordered about, prompted, answered, steered, updated, exported and imported.
//!
//! Afterwards every agent stands where it should, with the manifest that was acknowledged last, and nothing else is there; every
//! prompt, answer and message that was acknowledged is in its session, also in what was imported; a call that was approved ran
//! once at most, and one that was denied never.

mod drill;
mod field;
mod killer;
mod measure;
mod movers;
mod people;
mod roll;
mod trace;

pub use drill::Drill;
pub use measure::measure;
pub use roll::Survived;

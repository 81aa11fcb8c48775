//! The kill test: a real process runs a long agent, is killed at any moment and started again, until it is done.
//!
//! What tools did is counted outside the process, in files that only grow. The provider is a loopback server in the
//! process that kills; what it says depends on the conversation alone, so it never matters who asks how often.

mod course;
mod inspect;
mod place;
mod rng;
mod team;
mod trial;
mod victim;

pub use course::{ANSWER, Course, TURNS};
pub use place::Place;
pub use rng::Rng;
pub use team::lead;
pub use trial::{Seen, Trial, Victim};
pub use victim::victim;

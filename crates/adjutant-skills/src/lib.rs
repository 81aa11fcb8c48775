//! Skills for agents: folders with a SKILL.md, always at hand or loaded on demand.

mod error;

pub use error::{Error, ErrorKind};

//! Ready tools for agents. [`Files`] lists, reads and searches a folder that it cannot leave.

#![doc = include_str!("../README.md")]

mod change;
mod digest;
mod edits;
mod error;
mod files;
mod rules;
mod undo;

pub use change::FileChange;
pub use edits::Edits;
pub use error::{Error, ErrorKind};
pub use files::Files;
pub use rules::{AccessMode, Decision, Rule, Rules, Ruling};
pub use undo::Undo;

//! Ready tools for agents. [`Files`] lists, reads and searches a folder that it cannot leave.

#![doc = include_str!("../README.md")]

mod error;
mod files;
mod rules;

pub use error::{Error, ErrorKind};
pub use files::Files;
pub use rules::{AccessMode, Decision, Rule, Rules, Ruling};

//! Ready tools for agents. [`Files`] lists, reads and searches a folder that it cannot leave.

#![doc = include_str!("../README.md")]

mod error;
mod files;

pub use error::{Error, ErrorKind};
pub use files::Files;

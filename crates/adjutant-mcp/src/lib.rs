//! The Model Context Protocol, both sides: the tools of any server in an agent, and any agent as a server.

#![doc = include_str!("../README.md")]

mod config;
mod error;

pub use config::{Access, HttpConfig, Revision, ServerConfig, StdioConfig, Transport};
pub use error::{Error, ErrorKind};

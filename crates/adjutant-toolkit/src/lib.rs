//! Ready tools for agents: files inside a directory that they cannot leave, and commands and git in a sandbox.

#![doc = include_str!("../README.md")]

mod ask;
mod change;
mod digest;
mod edits;
mod error;
mod exchange;
#[cfg(feature = "fetch")]
mod fetch;
mod files;
#[cfg(all(feature = "shell", unix))]
mod git;
mod obeyed;
mod plan;
#[cfg(any(feature = "reach", all(feature = "shell", unix)))]
mod public;
#[cfg(feature = "reach")]
#[doc(hidden)]
pub mod reach;
mod rules;
#[cfg(all(feature = "shell", unix))]
mod sandbox;
#[cfg(all(feature = "shell", unix))]
mod shell;
mod undo;

pub use ask::ask_user;
pub use change::FileChange;
pub use edits::Edits;
pub use error::{Error, ErrorKind};
#[cfg(feature = "fetch")]
pub use fetch::Fetch;
pub use files::{Files, TextFiles, decode_text};
#[cfg(all(feature = "shell", unix))]
pub use git::Git;
pub use plan::Plan;
#[cfg(any(feature = "reach", all(feature = "shell", unix)))]
#[doc(hidden)]
pub use public::is_public;
pub use rules::{AccessMode, Decision, Lasting, Rule, Rules, Ruling};
#[cfg(all(feature = "shell", unix))]
#[doc(hidden)]
pub use sandbox::ReachedLimit;
#[cfg(all(feature = "shell", unix))]
#[doc(hidden)]
pub use sandbox::job::{Access, CommandEnd, CommandInput, CommandJob, CommandPipes, OutputPipe};
#[cfg(all(feature = "shell", unix))]
pub use sandbox::{CommandLimits, Hosts, Network, Report, Sandbox, sandbox_helper};
#[cfg(all(feature = "shell", unix))]
pub use shell::Shell;
pub use undo::{ForkedFiles, Undo};

//! The lifecycle of agents: described in a manifest, created, started, watched, prompted, stopped and removed.

#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod backend;
pub mod bundle;
#[cfg(feature = "http")]
pub mod control;
mod credentials;
mod engine;
mod error;
mod files;
mod home;
#[cfg(feature = "http")]
pub mod host;
#[cfg(feature = "http")]
pub mod http;
mod kept_rules;
pub mod manifest;
#[cfg(feature = "mcp")]
pub mod mcp;
mod peers;
mod process_tool;
mod processes;
pub mod prompt;
pub mod provenance;
mod status;
pub mod supervisor;
mod trust;
mod wants;
mod workspace;

pub use backend::{Backend, Instance, Loaded, Logs};
pub use credentials::Credentials;
pub use engine::{Engine, EngineBuilder, Models, Parts, Store};
pub use error::{Error, ErrorKind};
pub use home::{Desired, Entries, Entry, Goal, Home, Operator};
pub use manifest::{Manifest, Overrides, PartNames, Resolved};
pub use prompt::{Lead, Prompter};
pub use provenance::Provenance;
pub use status::{Reason, Status, StatusTracker, StatusWatch};
pub use supervisor::Supervisor;
pub use trust::{Trust, TrustStore};
pub use wants::{Want, WantKind, Wants};
pub use workspace::{
    AgentFile, Changes, EndFile, Lock, MadeUpdate, Prepared, StartFile, StatusFile, UpdateFile,
    Workspace,
};

//! The life of agents: described in a manifest, made, started, watched, prompted, stopped and removed.

pub mod backend;
mod credentials;
mod engine;
mod error;
#[cfg(feature = "http")]
pub mod host;
#[cfg(feature = "http")]
pub mod http;
pub mod manifest;
mod process_tool;
pub mod prompt;
pub mod provenance;
mod resolved;
mod status;
mod supervisor;
mod workspace;

pub use backend::{Backend, Instance, Loaded};
pub use credentials::Credentials;
pub use engine::Engine;
pub use error::{Error, ErrorKind};
pub use manifest::Manifest;
pub use prompt::Prompter;
pub use resolved::{Overrides, Resolved};
pub use status::{Reason, Status, StatusTracker, StatusWatch};
pub use workspace::Workspace;

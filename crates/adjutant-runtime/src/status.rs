//! Where an agent stands in its life, and who watches it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Where an agent stands in its life.
///
/// Shape: `{"status":"ready"}`, `{"status":"failed","reason":"crashed","message":"…"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// It is written down, and nothing is made yet.
    Created,
    /// Its workspace is being made.
    Preparing,
    /// Its process or its task begins.
    Starting,
    /// It can be prompted.
    Ready,
    /// It runs on a prompt.
    Working,
    /// It was stopped, or ended as it should.
    Stopped,
    /// It could not go on.
    Failed {
        /// What kind of failure it was.
        reason: Reason,
        /// What happened, in one line.
        message: Arc<str>,
    },
    /// What it left is being deleted.
    Removing,
    /// Nothing of it is left.
    Removed,
}

/// Why an agent failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// Its workspace could not be made.
    Init,
    /// An artifact is not what was pinned, or is not there.
    Pull,
    /// Its model, or the key for it, cannot be had.
    Model,
    /// What would run is not what is written down.
    Config,
    /// It did not become ready in time.
    Readiness,
    /// Its process ended, and nobody had asked it to.
    Crashed,
}

/// Holds where an agent stands.
#[derive(Debug)]
pub struct StatusTracker {}

/// Sees where an agent stands.
#[derive(Debug)]
pub struct StatusWatch {}

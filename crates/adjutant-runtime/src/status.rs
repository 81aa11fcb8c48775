//! The status of an agent, the table of its transitions, and its watchers.

mod tracker;

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind};

pub use tracker::{StatusTracker, StatusWatch};

/// The status of an agent in its lifecycle.
///
/// Format: `{"status":"ready"}`, `{"status":"failed","reason":"crashed","message":"…"}`. Another status is an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// It is recorded, and has no workspace yet.
    Created,
    /// Its workspace is being created.
    Preparing,
    /// Its process or task is starting.
    Starting,
    /// It accepts prompts.
    Ready,
    /// It runs a prompt.
    Working,
    /// It is not running: it was not started yet, was stopped, or ended normally.
    Stopped,
    /// It failed.
    Failed {
        /// The kind of the failure.
        reason: Reason,
        /// The error in one line.
        message: Arc<str>,
    },
    /// Its files are being deleted.
    Removing,
    /// It is deleted.
    Removed,
}

/// The reason why an agent failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// Its workspace could not be created.
    Init,
    /// An artifact does not match its recorded digest, or is missing.
    Pull,
    /// Its model or the key for it is not available.
    Model,
    /// The configuration to run differs from the recorded one, or is invalid.
    Config,
    /// It did not become ready in time.
    Readiness,
    /// Its process ended without a request.
    Crashed,
    /// Its process did not answer and was killed.
    Frozen,
}

impl Status {
    /// Creates a failure.
    pub fn failed(reason: Reason, message: impl Into<Arc<str>>) -> Self {
        Self::Failed {
            reason,
            message: message.into(),
        }
    }

    /// Returns whether a transition to another status is permitted.
    ///
    /// | from | to |
    /// |---|---|
    /// | created | preparing, removing |
    /// | preparing | starting, stopped, failed |
    /// | starting | ready, stopped, failed |
    /// | ready | working, stopped, failed |
    /// | working | ready, stopped, failed |
    /// | stopped | preparing, starting, removing |
    /// | failed | preparing, starting, removing |
    /// | removing | removed |
    /// | removed | |
    ///
    /// Cleanup after an end cannot overwrite a failure, and no status follows a removal.
    pub fn may_become(&self, next: &Self) -> bool {
        use Status::{
            Created, Failed, Preparing, Ready, Removed, Removing, Starting, Stopped, Working,
        };
        match self {
            Created => matches!(next, Preparing | Removing),
            Preparing => matches!(next, Starting | Stopped | Failed { .. }),
            Starting => matches!(next, Ready | Stopped | Failed { .. }),
            Ready => matches!(next, Working | Stopped | Failed { .. }),
            Working => matches!(next, Ready | Stopped | Failed { .. }),
            Stopped | Failed { .. } => matches!(next, Preparing | Starting | Removing),
            Removing => matches!(next, Removed),
            Removed => false,
        }
    }

    /// Returns it as one word, for files and tables.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Preparing => "preparing",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Working => "working",
            Self::Stopped => "stopped",
            Self::Failed { .. } => "failed",
            Self::Removing => "removing",
            Self::Removed => "removed",
        }
    }

    /// True if it accepts prompts.
    pub fn is_up(&self) -> bool {
        matches!(self, Self::Ready | Self::Working)
    }

    /// True if it is running or starting: it must be stopped before the next start.
    pub fn is_active(&self) -> bool {
        matches!(
            self,
            Self::Preparing | Self::Starting | Self::Ready | Self::Working
        )
    }

    /// Returns the reason of its failure.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Failed { reason, .. } => Some(*reason),
            Self::Created
            | Self::Preparing
            | Self::Starting
            | Self::Ready
            | Self::Working
            | Self::Stopped
            | Self::Removing
            | Self::Removed => None,
        }
    }
}

impl Reason {
    /// Returns the reason for an error of starting or running.
    pub fn from_error(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::Pull => Self::Pull,
            ErrorKind::Model => Self::Model,
            ErrorKind::Config | ErrorKind::Manifest | ErrorKind::Invalid | ErrorKind::Untrusted => {
                Self::Config
            }
            ErrorKind::Readiness | ErrorKind::TimedOut => Self::Readiness,
            ErrorKind::Crashed | ErrorKind::Killed => Self::Crashed,
            ErrorKind::Frozen => Self::Frozen,
            ErrorKind::Missing
            | ErrorKind::Exists
            | ErrorKind::Conflict
            | ErrorKind::Busy
            | ErrorKind::Init
            | ErrorKind::Denied
            | ErrorKind::Closed
            | ErrorKind::Full
            | ErrorKind::Storage
            | ErrorKind::Connection
            | ErrorKind::Agent => Self::Init,
        }
    }

    /// Returns the kind of error for this failure.
    pub fn kind(self) -> ErrorKind {
        match self {
            Self::Init => ErrorKind::Init,
            Self::Pull => ErrorKind::Pull,
            Self::Model => ErrorKind::Model,
            Self::Config => ErrorKind::Config,
            Self::Readiness => ErrorKind::Readiness,
            Self::Crashed => ErrorKind::Crashed,
            Self::Frozen => ErrorKind::Frozen,
        }
    }

    /// Returns it as one word, for files and tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Pull => "pull",
            Self::Model => "model",
            Self::Config => "config",
            Self::Readiness => "readiness",
            Self::Crashed => "crashed",
            Self::Frozen => "frozen",
        }
    }
}

impl fmt::Display for Status {
    /// `ready`, `failed (crashed): …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { reason, message } => write!(f, "failed ({reason}): {message}"),
            other => f.write_str(other.word()),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

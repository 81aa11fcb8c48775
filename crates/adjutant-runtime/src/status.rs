//! The status of an agent, the table of its transitions, and its watchers.

mod tracker;

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind};

pub use tracker::{StatusTracker, StatusWatch};

/// The stage of its life that an agent is in.
///
/// Shape: `{"status":"ready"}`, `{"status":"failed","reason":"crashed","message":"…"}`. Another word is an error.
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
    /// It does not run: its workspace is made and it was not begun yet, or it was stopped, or ended as it should.
    Stopped,
    /// It failed.
    Failed {
        /// The kind of the failure.
        reason: Reason,
        /// The failure in one line.
        message: Arc<str>,
    },
    /// Everything that it left is being deleted.
    Removing,
    /// Nothing of it is left.
    Removed,
}

/// The reason why an agent failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// Its workspace could not be made.
    Init,
    /// An artifact does not match its recorded digest, or is missing.
    Pull,
    /// Its model, or the key for it, cannot be had.
    Model,
    /// The configuration to run differs from the recorded one.
    Config,
    /// It did not become ready in time.
    Readiness,
    /// Its process ended without a request.
    Crashed,
    /// Its process was there and did not answer: it was killed.
    Frozen,
}

impl Status {
    /// A failure.
    pub fn failed(reason: Reason, message: impl Into<Arc<str>>) -> Self {
        Self::Failed {
            reason,
            message: message.into(),
        }
    }

    /// True if the other may follow this one: the one table of transitions.
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
    /// So what cleans up after an end cannot overwrite a failure, and nothing follows a removal.
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

    /// Its one word, as in files and tables.
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

    /// True if it can be prompted.
    pub fn is_up(&self) -> bool {
        matches!(self, Self::Ready | Self::Working)
    }

    /// True if something runs or is about to: it has to be stopped before it can begin again.
    pub fn is_active(&self) -> bool {
        matches!(
            self,
            Self::Preparing | Self::Starting | Self::Ready | Self::Working
        )
    }

    /// Returns the reason why it failed, if it did.
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
    /// The reason for an error of starting or running.
    pub fn of(error: &Error) -> Self {
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

    /// The kind of the error for this failure.
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

    /// Its one word, as in files and tables.
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

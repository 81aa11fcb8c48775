//! The one error of this crate.

use std::{fmt, sync::Arc};

use adjutant_llm::Cause;

use crate::wants::Wants;

/// The reason why something of an agent's life could not be done.
#[derive(Clone, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: Arc<str>,
    source: Option<Cause>,
    wants: Option<Arc<Wants>>,
}

/// The kind of an error, by the caller's possible reaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A manifest is wrong: its message names file, line and column.
    Manifest,
    /// The request cannot be met: an argument is not as it must be.
    Invalid,
    /// There is no such thing.
    Missing,
    /// There is one of that name already.
    Exists,
    /// The agent is in a state that does not allow it.
    Conflict,
    /// It is in use by another operator or process.
    Busy,
    /// A workspace could not be made.
    Init,
    /// An artifact does not match its recorded digest: a binary or a file was changed, or is missing.
    Pull,
    /// A model, or the key for it, cannot be had.
    Model,
    /// The agent to run differs from the recorded one.
    Config,
    /// It did not become ready in time.
    Readiness,
    /// The process ended without a request.
    Crashed,
    /// The process was killed during its start, so nothing is known about the new version.
    Killed,
    /// The process is there, and does not answer.
    Frozen,
    /// The token is wrong.
    Denied,
    /// It requests permissions that are not trusted: `wants` lists them.
    Untrusted,
    /// It took longer than it may.
    TimedOut,
    /// It was stopped, or has ended.
    Closed,
    /// A limit of number or size is reached.
    Full,
    /// A file or a disk could not be used.
    Storage,
    /// A connection to the agent failed.
    Connection,
    /// The agent's run failed.
    Agent,
}

impl Error {
    /// An error of this kind, for custom launchers and backends. `message` contains the operation and its subject.
    pub fn new(kind: ErrorKind, message: impl Into<Arc<str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
            wants: None,
        }
    }

    /// Sets the error that lies behind it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Cause>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Sets what lies behind an error whose words this one has.
    pub(crate) fn behind(self, error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self {
            source: Cause::behind(error),
            ..self
        }
    }

    pub(crate) fn with_wants(mut self, wants: Wants) -> Self {
        self.wants = Some(Arc::new(wants));
        self
    }

    /// All that was wanted, if that is why it was refused.
    pub fn wants(&self) -> Option<&Wants> {
        self.wants.as_deref()
    }

    /// Returns its kind, by the caller's possible reaction.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the message: the operation and its subject.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// True if the same attempt may succeed later without a change to the request.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.kind,
            ErrorKind::Busy
                | ErrorKind::Init
                | ErrorKind::Pull
                | ErrorKind::Model
                | ErrorKind::Readiness
                | ErrorKind::TimedOut
                | ErrorKind::Full
                | ErrorKind::Connection
        )
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Cause::lines(self, f)
    }
}

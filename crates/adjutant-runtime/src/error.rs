//! The error type of this crate.

use std::{fmt, sync::Arc};

use adjutant_llm::Cause;

use crate::wants::Wants;

/// An error of an agent's lifecycle.
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
    /// The manifest is invalid: the message contains file, line and column.
    Manifest,
    /// An argument of the request is invalid.
    Invalid,
    /// The named object does not exist.
    Missing,
    /// An object with that name exists already.
    Exists,
    /// The state of the agent does not permit the operation.
    Conflict,
    /// Another operator or process uses it.
    Busy,
    /// A workspace could not be created.
    Init,
    /// An artifact does not match its recorded digest: a binary or a file was changed, or is missing.
    Pull,
    /// A model or its key is not available.
    Model,
    /// The agent to run differs from the recorded one, or its configuration is invalid.
    Config,
    /// The agent did not become ready in time.
    Readiness,
    /// The process ended without a request.
    Crashed,
    /// The process was killed during its start, so the new version is neither confirmed nor rejected.
    Killed,
    /// The process exists but does not answer.
    Frozen,
    /// The token is wrong.
    Denied,
    /// The agent requests untrusted permissions; `wants` lists them.
    Untrusted,
    /// The operation timed out.
    TimedOut,
    /// The agent was stopped, or has ended.
    Closed,
    /// A limit of number or size was reached.
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

    /// Sets the error that caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Cause>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Sets the cause of an error whose message is already included.
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

    /// Returns the requested permissions, if they are the reason of the error.
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

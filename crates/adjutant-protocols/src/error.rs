//! The one error of this crate.

use std::sync::Arc;

/// The reason why a request of a page begins no run.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: Arc<str>,
    source: Option<adjutant_core::Error>,
}

/// The kind of an error, by the caller's possible reaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request holds nothing to begin with, or is not as it must be: HTTP status 400.
    Invalid,
    /// The answered pause does not exist, or has changed: 409. Read the open pauses again.
    Stale,
    /// The agent did not start: the source contains the reason, and its kind whether to retry.
    Agent,
}

impl Error {
    /// An error of a service that performs runs for others.
    pub fn new(kind: ErrorKind, message: impl Into<Arc<str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    #[cfg(any(
        feature = "a2a",
        feature = "acp",
        feature = "ag-ui",
        feature = "ai-sdk"
    ))]
    pub(crate) fn invalid(message: impl Into<Arc<str>>) -> Self {
        Self {
            kind: ErrorKind::Invalid,
            message: message.into(),
            source: None,
        }
    }

    #[cfg(any(feature = "a2a", feature = "ag-ui", feature = "ai-sdk"))]
    pub(crate) fn stale(message: impl Into<Arc<str>>) -> Self {
        Self {
            kind: ErrorKind::Stale,
            message: message.into(),
            source: None,
        }
    }

    pub(crate) fn agent(source: adjutant_core::Error) -> Self {
        Self {
            kind: ErrorKind::Agent,
            message: "the agent did not begin".into(),
            source: Some(source),
        }
    }

    /// Returns its kind, by the caller's possible reaction.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// True if the same request may succeed later without a change.
    pub fn is_retryable(&self) -> bool {
        self.source
            .as_ref()
            .is_some_and(adjutant_core::Error::is_retryable)
    }

    /// The HTTP status for it.
    pub fn status(&self) -> u16 {
        match self.kind {
            ErrorKind::Invalid => 400,
            ErrorKind::Stale => 409,
            ErrorKind::Agent if self.is_retryable() => 503,
            ErrorKind::Agent => 409,
        }
    }
}

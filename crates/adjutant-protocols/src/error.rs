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

/// The kind of an error, by what a caller can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request holds nothing to begin with, or is not as it must be: HTTP status 400.
    Invalid,
    /// It answers something that does not wait, or waits otherwise by now: 409. Look again at what waits.
    Stale,
    /// The agent did not begin: the source tells why, and its kind whether to try again.
    Agent,
}

impl Error {
    /// An error of somebody who performs runs for others.
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

    /// Returns its kind, by what a caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// True if the same request may succeed later without a change.
    pub fn is_retryable(&self) -> bool {
        self.source
            .as_ref()
            .is_some_and(adjutant_core::Error::is_retryable)
    }

    /// The HTTP status that tells a page of it.
    pub fn status(&self) -> u16 {
        match self.kind {
            ErrorKind::Invalid => 400,
            ErrorKind::Stale => 409,
            ErrorKind::Agent if self.is_retryable() => 503,
            ErrorKind::Agent => 409,
        }
    }
}

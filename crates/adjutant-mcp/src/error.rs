//! Errors between this crate and a server.

use std::sync::Arc;

use adjutant_llm::Cause;

/// The failure of a connection to a server, or of your own server.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The kind of the failure.
    pub kind: ErrorKind,
    /// The error, with the name of the server and a possible fix.
    pub message: Arc<str>,
    source: Option<Cause>,
}

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A configuration cannot be meant.
    Invalid,
    /// The server cannot be started or reached; it may be later.
    Unavailable,
    /// The server does not speak the protocol, or passed a limit.
    Protocol,
    /// The server wants a token that is not there: `adjutant mcp login` gets one.
    Unauthorised,
    /// It took too long.
    TimedOut,
}

impl Error {
    /// A failure of some kind.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<Arc<str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// The same failure in other words.
    #[must_use]
    pub(crate) fn saying(&self, message: impl Into<Arc<str>>) -> Self {
        Self {
            message: message.into(),
            ..self.clone()
        }
    }

    /// Sets what caused it.
    #[must_use]
    pub(crate) fn with_source(mut self, source: impl Into<Cause>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// True if the same may succeed later, unchanged.
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind, ErrorKind::Unavailable | ErrorKind::TimedOut)
    }
}

/// The hint for a missing token.
pub(crate) fn login_hint(name: &str) -> String {
    format!("adjutant mcp login {name}")
}

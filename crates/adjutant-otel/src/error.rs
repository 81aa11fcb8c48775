//! The error of this crate. A program can continue after each of them: only telemetry is lost.

use std::{sync::Arc, time::Duration};

use adjutant_llm::Cause;

/// The reason why telemetry is not exported, or was not in time.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: Arc<str>,
    source: Option<Cause>,
}

/// The kind of an error, by the caller's possible reaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The endpoint is no HTTP address: name another one.
    Endpoint,
    /// An exporter could not be made: the machine refuses a thread, or TLS is not available.
    Start,
    /// The program has a subscriber already: add the layer to it instead.
    Installed,
    /// The endpoint did not take everything within the limit; worth trying again.
    Export,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<Arc<str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    pub(crate) fn with_source(mut self, source: impl Into<Cause>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns the kind of the error, by the caller's possible reaction.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the message: the operation and its subject.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// True if the same attempt may succeed later without a change.
    pub fn is_retryable(&self) -> bool {
        match self.kind {
            ErrorKind::Export => true,
            ErrorKind::Endpoint | ErrorKind::Start | ErrorKind::Installed => false,
        }
    }

    /// Returns the delay before a retry; always `None`, because no error of this crate has one.
    pub fn retry_after(&self) -> Option<Duration> {
        None
    }
}

//! The one error of this crate: why a toolbox could not be made. What a tool fails with is a `ToolError`.

use std::{sync::Arc, time::Duration};

use adjutant_llm::Cause;

/// The reason why a toolbox could not be made.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: Arc<str>,
    source: Option<Cause>,
}

/// The kinds of errors, by what a caller can do about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The root is no directory, or cannot be opened: name another one.
    Root,
    /// A rule or a mode cannot be read: the message tells which line, and how rules are written.
    Rule,
    /// A host of a list cannot be read: the message tells which, and how hosts are written.
    Host,
    /// Files cannot be put back, or copied: the message tells which, and why.
    Undo,
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

    /// Returns the kind of the error, which tells what a caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the text that tells what was attempted and with what.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// True if the same attempt may succeed later without a change; never for a root.
    pub fn is_retryable(&self) -> bool {
        match self.kind {
            ErrorKind::Root | ErrorKind::Rule | ErrorKind::Host | ErrorKind::Undo => false,
        }
    }

    /// Returns the time to wait before trying again; nothing here ever gives one.
    pub fn retry_after(&self) -> Option<Duration> {
        None
    }
}

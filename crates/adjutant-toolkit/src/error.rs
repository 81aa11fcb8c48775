//! The error of this crate: a toolbox could not be created. A tool's failure is a `ToolError`.

use std::{sync::Arc, time::Duration};

use adjutant_llm::Cause;

/// The reason why a toolbox could not be created.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: Arc<str>,
    source: Option<Cause>,
}

/// The kinds of errors, by the caller's possible reaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The root is not a directory, or cannot be opened: use another one.
    Root,
    /// A rule or a mode is invalid: the message contains the line and the syntax.
    Rule,
    /// A host in a list is invalid: the message contains it and the syntax.
    Host,
    /// A port cannot be published: the message contains it and the reason.
    Port,
    /// Files cannot be restored or copied: the message contains the file and the reason.
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

    /// Returns the kind of the error, by the caller's possible reaction.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the operation and its subject.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// True if the same attempt may succeed later without a change; never for a root.
    pub fn is_retryable(&self) -> bool {
        match self.kind {
            ErrorKind::Root
            | ErrorKind::Rule
            | ErrorKind::Host
            | ErrorKind::Port
            | ErrorKind::Undo => false,
        }
    }

    /// Returns the time to wait before a retry; always `None`.
    pub fn retry_after(&self) -> Option<Duration> {
        None
    }
}

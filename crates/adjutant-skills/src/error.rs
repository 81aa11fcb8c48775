//! The error of this crate. A tool's failure is a `ToolError` that contains it.

use std::{sync::Arc, time::Duration};

use adjutant_llm::Cause;
use adjutant_tool::{ToolError, ToolErrorKind};

/// The reason why a skill could not be read or used.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: Arc<str>,

    retry_after: Option<Duration>,
    source: Option<Cause>,
}

/// The kind of an error, by the caller's possible reaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A skill, or its file, is not as it must be: mend it.
    Invalid,
    /// There is no such skill, file or folder.
    Missing,
    /// A limit of number or size is passed.
    Limit,
    /// A file or a folder could not be read.
    Io,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<Arc<str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after: None,
            source: None,
        }
    }

    pub(crate) fn with_source(mut self, source: impl Into<Cause>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns its kind, by the caller's possible reaction.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the operation and its subject.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// True if the same attempt may succeed later without a change.
    pub fn is_retryable(&self) -> bool {
        match self.kind {
            ErrorKind::Io => true,
            ErrorKind::Invalid | ErrorKind::Missing | ErrorKind::Limit => false,
        }
    }

    /// Returns the time to wait before trying again, if that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        let kind = match error.kind {
            ErrorKind::Invalid | ErrorKind::Missing => ToolErrorKind::InvalidArguments,
            ErrorKind::Limit | ErrorKind::Io => ToolErrorKind::Failed,
        };
        ToolError::new(kind, Arc::clone(&error.message)).with_source(error)
    }
}

//! The failures of tools. For the model a failure is data: it becomes an error result.

use std::sync::Arc;

use adjutant_llm::Cause;

/// The failure of a tool.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// The kind of the failure.
    pub kind: ToolErrorKind,
    /// The text that the model is shown.
    pub message: Arc<str>,
    source: Option<Cause>,
}

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolErrorKind {
    /// The tool tried and failed.
    Failed,
    /// The arguments cannot be meant.
    InvalidArguments,
    /// A rule or a person forbids it.
    Denied,
    /// The tool noticed the wish to stop.
    Cancelled,
    /// It took too long.
    TimedOut,
    /// A step was started before a crash; whether it took effect is not known.
    OutcomeUnknown,
    /// The tool asked for something that only a resumable tool may have.
    NotResumable,
    /// The log does not fit the request of the tool.
    Diverged,
    /// There is nobody who could be asked.
    Unattended,
}

impl ToolError {
    /// A failure; `message` is what the model is shown.
    pub fn failed(message: impl Into<Arc<str>>) -> Self {
        Self::new(ToolErrorKind::Failed, message)
    }

    /// A failure of some kind.
    #[cold]
    pub fn new(kind: ToolErrorKind, message: impl Into<Arc<str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// Sets what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Cause>) -> Self {
        self.source = Some(source.into());
        self
    }
}

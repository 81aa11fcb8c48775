//! The failures of tools. For the model a failure is data: it becomes an error result.

use std::sync::Arc;

use adjutant_llm::Cause;

/// The failure of a tool.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// The kind of the failure.
    pub kind: ToolErrorKind,
    /// The text for the model.
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
    /// The tool observed the cancellation.
    Cancelled,
    /// It took too long.
    TimedOut,
    /// A step was started before a crash; whether it took effect is not known.
    OutcomeUnknown,
    /// The tool used a feature that only resumable tools may use.
    NotResumable,
    /// The log does not fit the request of the tool.
    Diverged,
    /// No one is available to answer.
    Unattended,
}

impl ToolError {
    /// Creates a failure; `message` is the text for the model.
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

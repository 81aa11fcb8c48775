//! The one error of memories.

use std::sync::Arc;

use adjutant_llm::Cause;

/// An error of a memory.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct MemoryError {
    /// The kind of the error: it decides how a caller can react.
    pub kind: MemoryErrorKind,
    message: Arc<str>,
    source: Option<Cause>,
}

/// The kind of a memory's error: it decides how a caller can react.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryErrorKind {
    /// The owner has no such fact.
    Missing,
    /// The owner has a fact of that name.
    Exists,
    /// The owner has as many facts as may be.
    Full,
    /// The request cannot be met: a text that is empty or too large, an owner without a name.
    Invalid,
    /// The model or the embedder failed.
    Model,
    /// The stored data is not the data that was written.
    Corrupt,
    /// The storage failed: full, read-only, or gone.
    Io,
}

impl MemoryError {
    /// Creates an error; `message` names the operation and its subject.
    pub fn new(kind: MemoryErrorKind, message: impl Into<Arc<str>>) -> Self {
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

    /// True if the same attempt may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind, MemoryErrorKind::Io | MemoryErrorKind::Model)
    }
}

//! The one error of key-value stores.

use std::sync::Arc;

use adjutant_llm::Cause;

use super::Version;

/// An error of a key-value store.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct KvStoreError {
    /// The kind of the error: it decides how a caller can react.
    pub kind: KvStoreErrorKind,
    message: Arc<str>,
    source: Option<Cause>,
}

/// The kind of a key-value store's error: it decides how a caller can react.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum KvStoreErrorKind {
    /// A key does not meet its condition; read it, and decide again.
    Conflict {
        /// The key.
        key: Arc<str>,
        /// The version of its value now; `None` if it has none.
        found: Option<Version>,
    },
    /// The request is not valid: a key or a value that is too large, a key that appears twice.
    Invalid,
    /// The stored data is not the data that was written.
    Corrupt,
    /// The storage failed: full, read-only, or gone.
    Io,
}

impl KvStoreError {
    /// Creates an error; `message` names the operation and its subject.
    pub fn new(kind: KvStoreErrorKind, message: impl Into<Arc<str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// Returns the error of a key that does not meet its condition.
    pub fn conflict(key: impl Into<Arc<str>>, found: Option<Version>) -> Self {
        let key = key.into();
        let message = match found {
            Some(version) => {
                format!("key {key:?} has version {version}, which is not what the change expects")
            }
            None => format!("key {key:?} has no value, which is not what the change expects"),
        };
        Self::new(KvStoreErrorKind::Conflict { key, found }, message)
    }

    /// Sets what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Cause>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// True if the same attempt may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.kind == KvStoreErrorKind::Io
    }
}

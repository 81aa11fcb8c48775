//! The one error of key-value stores.

use std::{sync::Arc, time::Duration};

use adjutant_llm::Cause;

use super::Version;

/// What went wrong with a key-value store.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct KvStoreError {
    kind: KvStoreErrorKind,
    message: Arc<str>,
    source: Option<Cause>,
}

/// What a caller can do about a key-value store's error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum KvStoreErrorKind {
    /// What must be true of a key is not; read it, and decide again.
    Conflict {
        /// The key.
        key: Arc<str>,
        /// The version of its value now; `None` if it has none.
        found: Option<Version>,
    },
    /// The request cannot be met: a key or a value that is too large, a key that stands twice.
    Invalid,
    /// What is stored is not what was written.
    Corrupt,
    /// The storage failed: full, read-only, or gone.
    Io,
}

impl KvStoreError {
    /// An error; `message` says what was attempted and with what.
    pub fn new(kind: KvStoreErrorKind, message: impl Into<Arc<str>>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// What must be true of a key is not.
    pub fn conflict(key: impl Into<Arc<str>>, found: Option<Version>) -> Self {
        let key = key.into();
        let message = match found {
            Some(version) => format!("key {key:?} has version {version}, which is not what the change expects"),
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

    /// What a caller can do about it.
    pub fn kind(&self) -> &KvStoreErrorKind {
        &self.kind
    }

    /// Whether the same attempt may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.kind == KvStoreErrorKind::Io
    }

    /// How long to wait before trying again; a key-value store never says.
    pub fn retry_after(&self) -> Option<Duration> {
        None
    }
}

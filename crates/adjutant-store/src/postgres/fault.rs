//! Failures between us and the server, turned into errors of the trait that was called.

use std::fmt;

use adjutant_core::{
    JournalError, JournalErrorKind,
    kv::{KvStoreError, KvStoreErrorKind},
    memory::{MemoryError, MemoryErrorKind},
};
use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

/// A failure in the work with the server.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// There is no connection.
    #[error("no connection to the database is free")]
    Pool(#[source] PoolError),
    /// The connection broke, or the server refused.
    #[error("the database failed")]
    Sql(#[from] tokio_postgres::Error),
    /// The stored data differs from the written data; the text names it.
    #[error("{0} is not what was written")]
    Stored(&'static str),
}

impl Fault {
    /// The error of a journal, which was about to do this.
    pub(super) fn journal(self, doing: impl fmt::Display) -> JournalError {
        let kind = if self.is_corrupt() {
            JournalErrorKind::Corrupt
        } else if self.is_too_large() {
            JournalErrorKind::Invalid
        } else {
            JournalErrorKind::Io
        };
        JournalError::new(kind, format!("cannot {doing}")).with_source(self)
    }

    /// The error of a key-value store, which was about to do this.
    pub(super) fn kv(self, doing: impl fmt::Display) -> KvStoreError {
        let kind = if self.is_corrupt() {
            KvStoreErrorKind::Corrupt
        } else if self.is_too_large() {
            KvStoreErrorKind::Invalid
        } else {
            KvStoreErrorKind::Io
        };
        KvStoreError::new(kind, format!("cannot {doing}")).with_source(self)
    }

    /// The error of a memory, which was about to do this.
    pub(super) fn memory(self, doing: impl fmt::Display) -> MemoryError {
        let kind = if self.is_corrupt() {
            MemoryErrorKind::Corrupt
        } else if self.is_too_large() {
            MemoryErrorKind::Invalid
        } else {
            MemoryErrorKind::Io
        };
        MemoryError::new(kind, format!("cannot {doing}")).with_source(self)
    }

    /// True if the server refused for this reason.
    pub(super) fn is(&self, state: &SqlState) -> bool {
        self.code() == Some(state)
    }

    fn is_corrupt(&self) -> bool {
        let broken = [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED];
        matches!(self, Self::Stored(_)) || self.code().is_some_and(|code| broken.contains(code))
    }

    fn is_too_large(&self) -> bool {
        self.is(&SqlState::PROGRAM_LIMIT_EXCEEDED)
    }

    fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Sql(error) => error.code(),
            Self::Pool(_) | Self::Stored(_) => None,
        }
    }
}

impl From<PoolError> for Fault {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => Self::Sql(error),
            error => Self::Pool(error),
        }
    }
}

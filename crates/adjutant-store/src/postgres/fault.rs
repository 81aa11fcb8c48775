//! What goes wrong between us and the server, in the words of the trait that was asked.

use std::{error, fmt};

use adjutant_core::{
    JournalError, JournalErrorKind,
    kv::{KvStoreError, KvStoreErrorKind},
    memory::{MemoryError, MemoryErrorKind},
};
use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

/// What went wrong.
#[derive(Debug)]
pub(super) enum Fault {
    /// There is no connection.
    Pool(PoolError),
    /// The connection broke, or the server refused.
    Sql(tokio_postgres::Error),
    /// What is stored is not what was written: what that is.
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

    /// Whether the server refused for this reason.
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
            Self::Pool(PoolError::Backend(error)) | Self::Sql(error) => error.code(),
            Self::Pool(_) | Self::Stored(_) => None,
        }
    }
}

impl From<PoolError> for Fault {
    fn from(error: PoolError) -> Self {
        Self::Pool(error)
    }
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Sql(error)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pool(PoolError::Backend(_)) | Self::Sql(_) => f.write_str("the database failed"),
            Self::Pool(_) => f.write_str("no connection to the database is free"),
            Self::Stored(what) => write!(f, "{what} is not what was written"),
        }
    }
}

impl error::Error for Fault {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Pool(PoolError::Backend(error)) | Self::Sql(error) => Some(error),
            Self::Pool(error) => Some(error),
            Self::Stored(_) => None,
        }
    }
}

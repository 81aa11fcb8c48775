//! Failures below the three traits, before each becomes the error of one of them.

use std::{io, sync::Arc};

use adjutant_core::{
    JournalError, JournalErrorKind,
    kv::{KvStoreError, KvStoreErrorKind},
    memory::{MemoryError, MemoryErrorKind},
};
use rusqlite::ErrorCode;

/// A failure below the three traits.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    Sqlite(Arc<rusqlite::Error>),
    File(Arc<io::Error>),
    /// The stored data differs from the written data.
    Corrupt(String),
    /// The request cannot be met.
    Invalid(String),
    /// A newer program wrote the database.
    Version(String),
    /// The database can be read and not written.
    ReadOnly,
    /// The thread that should have answered is gone.
    Gone,
    Journal(JournalError),
    KvStore(KvStoreError),
    Memory(MemoryError),
}

/// The kind of a failure, by the caller's possible reaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Corrupt,
    Invalid,
    Version,
    Io,
}

impl Fault {
    /// The error of a journal, which attempted this.
    pub(super) fn journal(self, attempt: impl FnOnce() -> String) -> JournalError {
        let kind = match self.sort() {
            Sort::Corrupt => JournalErrorKind::Corrupt,
            Sort::Invalid => JournalErrorKind::Invalid,
            Sort::Version => JournalErrorKind::Version,
            Sort::Io => JournalErrorKind::Io,
        };
        match self {
            Self::Journal(error) => return error,
            Self::ReadOnly => return JournalError::read_only(&attempt(), "the database"),
            _ => {}
        }
        let error = JournalError::new(kind, self.message(attempt));
        match self {
            Self::Sqlite(source) => error.with_source(source),
            Self::File(source) => error.with_source(source),
            _ => error,
        }
    }

    /// The error of a key-value store, which attempted this.
    pub(super) fn kv(self, attempt: impl FnOnce() -> String) -> KvStoreError {
        let kind = match self.sort() {
            Sort::Corrupt | Sort::Version => KvStoreErrorKind::Corrupt,
            Sort::Invalid => KvStoreErrorKind::Invalid,
            Sort::Io => KvStoreErrorKind::Io,
        };
        if let Self::KvStore(error) = self {
            return error;
        }
        let error = KvStoreError::new(kind, self.message(attempt));
        match self {
            Self::Sqlite(source) => error.with_source(source),
            Self::File(source) => error.with_source(source),
            _ => error,
        }
    }

    /// The error of a memory, which attempted this.
    pub(super) fn memory(self, attempt: impl FnOnce() -> String) -> MemoryError {
        let kind = match self.sort() {
            Sort::Corrupt | Sort::Version => MemoryErrorKind::Corrupt,
            Sort::Invalid => MemoryErrorKind::Invalid,
            Sort::Io => MemoryErrorKind::Io,
        };
        if let Self::Memory(error) = self {
            return error;
        }
        let error = MemoryError::new(kind, self.message(attempt));
        match self {
            Self::Sqlite(source) => error.with_source(source),
            Self::File(source) => error.with_source(source),
            _ => error,
        }
    }

    /// True if the cause may be that something can only be read.
    pub(super) fn is_unwritable(&self) -> bool {
        match self {
            Self::ReadOnly => true,
            Self::Sqlite(error) => matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied)
            ),
            _ => false,
        }
    }

    fn sort(&self) -> Sort {
        match self {
            Self::Sqlite(error) => sort(error),
            Self::Corrupt(_) => Sort::Corrupt,
            Self::Invalid(_) => Sort::Invalid,
            Self::Version(_) => Sort::Version,
            Self::File(_)
            | Self::ReadOnly
            | Self::Gone
            | Self::Journal(_)
            | Self::KvStore(_)
            | Self::Memory(_) => Sort::Io,
        }
    }

    fn message(&self, attempt: impl FnOnce() -> String) -> String {
        match self {
            Self::Corrupt(why) | Self::Invalid(why) | Self::Version(why) => {
                format!("{}: {why}", attempt())
            }
            Self::ReadOnly => JournalError::read_only(&attempt(), "the database").to_string(),
            Self::Gone => format!("{}: the database is closed", attempt()),
            _ => attempt(),
        }
    }
}

fn sort(error: &rusqlite::Error) -> Sort {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => return Sort::Corrupt,
        Some(ErrorCode::TooBig) => return Sort::Invalid,
        _ => {}
    }
    match error {
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::Utf8Error(..)
        | rusqlite::Error::InvalidColumnType(..) => Sort::Corrupt,
        _ => Sort::Io,
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(Arc::new(error))
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::File(Arc::new(error))
    }
}

impl From<JournalError> for Fault {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

impl From<KvStoreError> for Fault {
    fn from(error: KvStoreError) -> Self {
        Self::KvStore(error)
    }
}

impl From<MemoryError> for Fault {
    fn from(error: MemoryError) -> Self {
        Self::Memory(error)
    }
}

//! Where a log is kept. A journal stores bytes by log and number; it knows nothing of what records mean.

mod memory;

use std::{error, fmt, pin::Pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_core::Stream;
use serde::{Deserialize, Serialize};

pub use memory::MemoryJournal;

use crate::{Seq, Stamped};

/// Names a log: one session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LogId(pub Arc<str>);

/// The number of an ownership of a log; grows with every owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

/// The end of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    /// The newest record.
    pub seq: Seq,
    /// The ownership that it was seen under.
    pub epoch: Epoch,
}

/// How soon an append must survive a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flush {
    /// Some time soon.
    Lazy,
    /// When the append returns.
    Now,
}

/// What went wrong with a journal.
#[derive(Debug, Clone)]
pub struct JournalError {
    kind: JournalErrorKind,
    message: Arc<str>,
    source: Option<Arc<dyn error::Error + Send + Sync>>,
}

/// What a caller can do about a journal's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JournalErrorKind {
    /// Another owner has taken the log over.
    Fenced,
    /// No log has that name.
    Missing,
    /// What is stored is not what was written.
    Corrupt,
    /// The storage failed.
    Io,
}

/// Where logs are kept.
#[async_trait]
pub trait Journal: Send + Sync + fmt::Debug {
    /// Takes a log over, and makes it if there is none; whoever owned it before is fenced.
    ///
    /// # Errors
    /// `Io` if the storage failed.
    async fn own(&self, log: &LogId) -> Result<Box<dyn Log>, JournalError>;

    /// The records after a place, oldest first.
    ///
    /// # Errors
    /// As the last item: `Missing`, `Corrupt`, `Io`.
    fn read(&self, log: &LogId, after: Seq) -> RecordStream;
}

/// The records of a log, oldest first.
pub type RecordStream = Pin<Box<dyn Stream<Item = Result<Arc<Stamped>, JournalError>> + Send>>;

/// An owned log.
#[async_trait]
pub trait Log: Send + fmt::Debug {
    /// The end of the log.
    fn head(&self) -> Head;

    /// Appends records that follow the head, all of them or none.
    ///
    /// Cancel: the log may hold them or not; own it again before using it.
    ///
    /// # Errors
    /// `Fenced` if another owner has taken over, `Io` if the storage failed.
    async fn append(&mut self, batch: &[Arc<Stamped>], flush: Flush) -> Result<Head, JournalError>;
}

impl JournalError {
    /// An error; `message` says what was attempted and with what.
    pub fn new(kind: JournalErrorKind, message: impl Into<Arc<str>>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Sets what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// What a caller can do about it.
    pub fn kind(&self) -> JournalErrorKind {
        self.kind
    }

    /// Whether the same attempt may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.kind == JournalErrorKind::Io
    }

    /// How long to wait before trying again; a journal never says.
    pub fn retry_after(&self) -> Option<Duration> {
        None
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl error::Error for JournalError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn error::Error + 'static))
    }
}

//! The storage of logs. A journal stores bytes by log and number; it does not interpret records.

mod attachment;
mod due;
mod error;
mod memory;
mod meta;
mod owner;
mod post;
mod shared;
mod stamped;
mod stored;
mod waker;

use std::{fmt, pin::Pin, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures_core::Stream;
use serde::{Deserialize, Serialize};

pub use attachment::Attachment;
pub use due::{
    Backlog, DueLog, DueWork, MAX_LOST_OWNERS, SUSPECT_AFTER, SUSPECT_BARS, SUSPECT_RESTS, Work,
};
pub use error::{JournalError, JournalErrorKind};
pub use memory::MemoryJournal;
pub use meta::{LogInfo, LogPage, LogQuery, MAX_ID_BYTES, PageMark, SessionMeta};
pub use owner::{Holder, Owner};
pub use post::{Post, PostStream, Posted};
pub use stamped::Stamped;
pub use stored::{StoredRecord, StoredStream};
pub use waker::Waker;

use crate::number::{PostNo, Seq};

/// Names a log: one session. Any text of at most [`MAX_ID_BYTES`] bytes that is not empty: it is data, never a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LogId(pub Arc<str>);

/// The number of an ownership of a log; grows with every owner.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
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

/// The time by which an append must survive a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flush {
    /// A crash of the program when the append returns, and of the machine some time soon.
    Lazy,
    /// A crash of the machine when the append returns.
    Now,
}

/// A fold of the records up to a position, stored next to a log so that it opens fast: derived data that can be lost
/// without harm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folded {
    /// The newest record in it.
    pub seq: Seq,
    /// The format of its content, by a name that changes whenever the format does.
    pub format: Arc<str>,
    /// The fold.
    pub bytes: Bytes,
}

/// The result of a clean-up of attachments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GcReport {
    /// The number of removed attachments, to which no log referred.
    pub attachments: u64,
    /// The number of bytes that they had.
    pub bytes: u64,
}

/// A storage of logs.
///
/// A journal needs [`own`](Journal::own) and [`read`](Journal::read) to store sessions. The other methods serve the
/// management of sessions, and by default return `Unsupported` or nothing. The suite in `adjutant-testing` checks
/// whether a journal keeps its guarantees.
#[async_trait]
pub trait Journal: Send + Sync + fmt::Debug {
    /// Acquires a log, and creates it if it does not exist.
    ///
    /// The owner keeps it until the value is dropped or its lease ends, whichever comes first. The same owner can
    /// acquire it again at any time, and so can one that [takes over](Owner::takes_over). The previous owner is
    /// fenced.
    ///
    /// # Errors
    /// `Owned` if another owner has it, `Invalid` if it cannot have that name, `Corrupt` and `Version` if its end cannot
    /// be read, `Io` if the storage failed.
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError>;

    /// Returns the records after a position, oldest first; records that are appended during the call may be included.
    ///
    /// # Errors
    /// As the last item: `Missing`, `Corrupt`, `Version`, `Io`.
    fn read(&self, log: &LogId, after: Seq) -> RecordStream;

    /// The same records as they are stored.
    ///
    /// # Errors
    /// As the last item: `Missing`, `Io`.
    fn read_stored(&self, log: &LogId, after: Seq) -> StoredStream {
        stored::from_records(self.read(log, Seq(0)), after)
    }

    /// Posts a message to a session with any owner; the session consumes it during a run, or at the start of
    /// the next one.
    ///
    /// # Errors
    /// `Missing`, `Invalid` if too many posts wait, `Unsupported`, `Io`.
    async fn post(&self, log: &LogId, post: Post) -> Result<PostNo, JournalError> {
        let _ = (log, post);
        Err(JournalError::not_supported("take posts"))
    }

    /// The posts after a place, as they come; `None` if the journal takes none.
    ///
    /// # Errors
    /// As an item, after which more may come: `Io`.
    fn posts(&self, log: &LogId, after: PostNo) -> Option<PostStream> {
        let _ = (log, after);
        None
    }

    /// The current posts after a position; empty if the journal does not support posts.
    ///
    /// Posts sent before this call are included. A journal whose [`posts`](Journal::posts) arrive immediately needs
    /// nothing else; others query their storage.
    ///
    /// # Errors
    /// `Missing`, `Io`.
    async fn read_posts(&self, log: &LogId, after: PostNo) -> Result<Vec<Posted>, JournalError> {
        self.posts(log, after)
            .map_or_else(|| Ok(Vec::new()), post::at_once)
    }

    /// Returns the known facts about a log.
    ///
    /// # Errors
    /// `Missing`, `Unsupported`, `Io`.
    async fn info(&self, log: &LogId) -> Result<LogInfo, JournalError> {
        let _ = log;
        Err(JournalError::not_supported("describe its logs"))
    }

    /// The logs, a page at a time, without reading them.
    ///
    /// # Errors
    /// `Unsupported`, `Io`.
    async fn list(&self, query: &LogQuery) -> Result<LogPage, JournalError> {
        let _ = query;
        Err(JournalError::not_supported("list its logs"))
    }

    /// Sets the description of a log, in place of the previous one.
    ///
    /// # Errors
    /// `Missing`, `Unsupported`, `Io`.
    async fn describe(&self, log: &LogId, about: SessionMeta) -> Result<(), JournalError> {
        let _ = (log, about);
        Err(JournalError::not_supported("describe its logs"))
    }

    /// Renames a log; its forks are updated.
    ///
    /// # Errors
    /// `Missing`, `Exists`, `Owned`, `Invalid`, `Unsupported`, `Io`.
    async fn rename(&self, from: &LogId, to: &LogId) -> Result<(), JournalError> {
        let _ = (from, to);
        Err(JournalError::not_supported("rename its logs"))
    }

    /// Deletes a log with all that belongs to it; logs that were forked from it stay whole.
    ///
    /// # Errors
    /// `Missing`, `Owned`, `Unsupported`, `Io`.
    async fn delete(&self, log: &LogId) -> Result<(), JournalError> {
        let _ = log;
        Err(JournalError::not_supported("delete its logs"))
    }

    /// Removes attachments without references.
    ///
    /// # Errors
    /// `Io`.
    async fn sweep(&self) -> Result<GcReport, JournalError> {
        Ok(GcReport::default())
    }

    /// Returns the last stored fold of a log, if it still matches the log's first records.
    ///
    /// # Errors
    /// `Io`.
    async fn load_fold(&self, log: &LogId) -> Result<Option<Folded>, JournalError> {
        let _ = log;
        Ok(None)
    }
}

/// The records of a log, oldest first.
pub type RecordStream = Pin<Box<dyn Stream<Item = Result<Arc<Stamped>, JournalError>> + Send>>;

/// An owned log.
///
/// Dropping it releases the log. If the journal learns of the release late, the next owner, rename or delete waits
/// for it, and is not refused as `Owned`.
#[async_trait]
pub trait Log: Send + fmt::Debug {
    /// The end of the log.
    fn head(&self) -> Head;

    /// Appends records that follow the head, all of them or none.
    ///
    /// With [`Flush::Now`] everything that was appended before survives like the batch, also if the batch is empty.
    ///
    /// Cancel: the log may hold them or not; own it again before using it.
    ///
    /// # Errors
    /// `Fenced` if another owner has taken over, `Corrupt` if the batch does not follow the head, `Invalid` if a record
    /// is too large, `Io` if the storage failed: the log may hold the batch then or not, and must be owned again.
    async fn append(&mut self, batch: &[Arc<Stamped>], flush: Flush) -> Result<Head, JournalError>;

    /// Sets the work that the log holds; it is stored with the next append, in one write. Not kept by default.
    fn mark(&mut self, work: Work) {
        let _ = work;
    }

    /// Records that the run has made progress under this owner: owners lost before no longer count. Stored with the
    /// next append, in one write. Not stored by default.
    fn mark_progress(&mut self) {}

    /// Returns the minimum number of records between two folds stored next to the log; `None` if a fold would save
    /// nothing.
    ///
    /// At least this many, and at least a quarter of the log, lie between two folds, so that the cost for each record
    /// does not depend on the length of a log.
    fn keeps(&self) -> Option<u64> {
        None
    }

    /// Stores a fold of the first records next to the log, replacing the previous one.
    ///
    /// It is called between two drives, and only as often as [`keeps`](Log::keeps) requests; a fold has at most 64
    /// MiB.
    ///
    /// # Errors
    /// `Fenced`, `Io`; nothing is lost but time.
    async fn keep(&mut self, folded: Folded) -> Result<(), JournalError> {
        let _ = folded;
        Ok(())
    }

    /// The posts up to this one are in the log, and need not be kept; the next one gets a higher number, also in a log
    /// that was copied from another.
    ///
    /// # Errors
    /// `Io`; nothing is lost.
    async fn mark_consumed(&mut self, upto: PostNo) -> Result<(), JournalError> {
        let _ = upto;
        Ok(())
    }
}

impl LogId {
    /// Checks the length of the name.
    ///
    /// # Errors
    /// `Invalid` if it is empty or has more than [`MAX_ID_BYTES`] bytes.
    pub fn check(&self) -> Result<(), JournalError> {
        let why = match self.0.len() {
            0 => "a log needs a name".to_owned(),
            bytes if bytes > MAX_ID_BYTES => {
                format!("the name of a log has {bytes} bytes; it may have {MAX_ID_BYTES}")
            }
            _ => return Ok(()),
        };
        Err(JournalError::new(JournalErrorKind::Invalid, why))
    }
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for LogId {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl From<String> for LogId {
    fn from(name: String) -> Self {
        Self(name.into())
    }
}

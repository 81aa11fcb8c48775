//! Records as a journal stores them: bytes, their link in the chain, and separate large parts.

use std::{pin::Pin, sync::Arc};

use bytes::Bytes;
use futures_core::Stream;
use futures_util::{StreamExt, future, stream};

use super::{Attachment, JournalError, JournalErrorKind, RecordStream, Stamped};
use crate::{digest::Digest, number::Seq};

/// A record as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// Its place in the log.
    pub seq: Seq,
    /// Its bytes from [`Stamped::bytes`] at the time of the append.
    pub bytes: Bytes,
    /// Its link in the chain: the digest of the link before it and of its bytes.
    pub link: Digest,
    /// Its large parts, in the order of the record.
    pub attachments: Vec<Attachment>,
}

/// The records of a log as they are stored, oldest first.
pub type StoredStream = Pin<Box<dyn Stream<Item = Result<StoredRecord, JournalError>> + Send>>;

impl StoredRecord {
    /// Checks the record against the link before it, and reads it.
    ///
    /// # Errors
    /// `Corrupt` if a byte differs from the written one, or the record is at another position; `Version` if a newer
    /// program wrote it.
    pub fn open(self, before: &Digest) -> Result<Arc<Stamped>, JournalError> {
        let corrupt = |why: &str| {
            JournalError::new(
                JournalErrorKind::Corrupt,
                format!("record {} {why}", self.seq),
            )
        };
        if before.then(&self.bytes) != self.link {
            return Err(corrupt("is not what was written: its digest differs"));
        }
        for attachment in &self.attachments {
            if Digest::compute(&attachment.bytes) != attachment.digest {
                return Err(corrupt(
                    "has an attachment that is not what was written: its digest differs",
                ));
            }
        }
        let seq = self.seq;
        let stamped = Stamped::read(self.bytes.clone(), self.attachments.clone())?;
        if stamped.seq != seq {
            return Err(corrupt(&format!("says that it is record {}", stamped.seq)));
        }
        Ok(Arc::new(stamped))
    }
}

/// Returns the stored form of these records, of which the first is the first of its log.
pub(super) fn from_records(records: RecordStream, after: Seq) -> StoredStream {
    let chained = records.scan(Digest::GENESIS, move |link, record| {
        let stored = record.and_then(|stamped| {
            let bytes = stamped.bytes()?.clone();
            *link = link.then(&bytes);
            Ok(StoredRecord {
                seq: stamped.seq,
                bytes,
                link: *link,
                attachments: stamped.attachments()?.to_vec(),
            })
        });
        future::ready(Some(stored))
    });
    let newer = move |stored: &Result<StoredRecord, JournalError>| {
        future::ready(stored.as_ref().map_or(true, |stored| stored.seq > after))
    };
    Box::pin(stream::StreamExt::filter(chained, newer))
}

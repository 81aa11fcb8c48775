//! Writes a session into a file.

use std::{collections::BTreeSet, io};

use futures_util::StreamExt;
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::{
    Sessions,
    chain::{Chain, Folds},
    corrupt,
    file::{ExportHeader, ExportLine, FORMAT, Footer, MAX_ATTACHED_BYTES, MAX_LINE_BYTES, VERSION},
    invalid,
};
use crate::{
    digest::Digest,
    journal::{JournalError, JournalErrorKind, LogId, StoredRecord},
    number::Seq,
};

/// A session that was written into a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exported {
    /// The number of records in the file.
    pub records: u64,
    /// The number of attachments in it.
    pub attachments: u64,
    /// The number of bytes in it.
    pub bytes: u64,
    /// The link of the newest record.
    pub link: Digest,
}

/// A writer that counts and digests the bytes that are written.
struct Sealed<'a, W> {
    out: &'a mut W,
    sha256: Sha256,
    bytes: u64,
    /// The attachments that were written.
    known: BTreeSet<Digest>,
}

impl Sessions {
    /// Writes a session into a file, checked like [`verify`](Sessions::verify) does; as much of it as there is now.
    ///
    /// Writing blocks. Data written before an error cannot be imported: it has no end.
    ///
    /// # Errors
    /// `Corrupt` with the first corrupt record, `Version`, `Missing`, `Invalid` if a record has more than 512 MiB,
    /// `Unsupported`, `Io`, also if writing fails.
    pub async fn export<W: io::Write + Send>(
        &self,
        id: &LogId,
        out: &mut W,
    ) -> Result<Exported, JournalError> {
        let info = self.journal.info(id).await?;
        let mut sealed = Sealed {
            out,
            sha256: Sha256::new(),
            bytes: 0,
            known: BTreeSet::new(),
        };
        let (created_ms, about) = (info.created_ms, info.about);
        sealed.line(&ExportHeader {
            format: FORMAT.into(),
            version: VERSION,
            id: id.clone(),
            created_ms,
            about,
        })?;
        let (mut chain, mut folds) = (Chain::new(id), Folds::default());
        let mut stored = self.journal.read_stored(id, Seq(0));
        while let Some(stored) = stored.next().await {
            let stored = stored?;
            let stamped = chain.take(stored.clone())?;
            folds.take(id, &stamped)?;
            sealed.record(&stored)?;
        }
        if chain.seq < info.head {
            return Err(corrupt(format!(
                "record {} of log {:?} is missing",
                chain.seq.0 + 1,
                id.0
            )));
        }
        let (records, attachments) = (chain.seq.0, sealed.known.len() as u64);
        let sha256 = Digest(sealed.sha256.clone().finalize().into());
        let footer = Footer {
            records,
            attachments,
            link: chain.link,
            bytes: sealed.bytes,
            sha256,
        };
        sealed.line(&ExportLine::Footer(footer))?;
        sealed.out.flush().map_err(unwritten)?;
        Ok(Exported {
            records,
            attachments,
            bytes: sealed.bytes,
            link: chain.link,
        })
    }
}

impl<W: io::Write> Sealed<'_, W> {
    fn record(&mut self, stored: &StoredRecord) -> Result<(), JournalError> {
        let attached: usize = stored
            .attachments
            .iter()
            .map(|attachment| attachment.bytes.len())
            .sum();
        if attached > MAX_ATTACHED_BYTES {
            let why = format!("record {} has {attached} bytes of attachments", stored.seq);
            return Err(invalid(format!("{why}; a file holds {MAX_ATTACHED_BYTES}")));
        }
        for attachment in &stored.attachments {
            if self.known.insert(attachment.digest) {
                let text = std::str::from_utf8(&attachment.bytes).map_err(|error| {
                    corrupt(format!("attachment {} is no text", attachment.digest))
                        .with_source(error)
                })?;
                self.line(&ExportLine::Attachment {
                    digest: attachment.digest,
                    text: text.into(),
                })?;
            }
        }
        let raw: Option<&RawValue> = serde_json::from_slice(&stored.bytes).ok();
        // A raw value is the text without the space around it; a line feed would end the line.
        let is_whole =
            |raw: &&RawValue| raw.get().len() == stored.bytes.len() && !raw.get().contains('\n');
        let Some(bytes) = raw.filter(is_whole) else {
            return Err(invalid(format!(
                "record {} is not one JSON object in one line",
                stored.seq
            )));
        };
        let attachments = stored
            .attachments
            .iter()
            .map(|attachment| attachment.digest)
            .collect();
        self.line(&ExportLine::Record {
            seq: stored.seq,
            link: stored.link,
            attachments,
            bytes,
        })
    }

    fn line(&mut self, line: &impl Serialize) -> Result<(), JournalError> {
        let mut bytes = serde_json::to_vec(line).map_err(|error| unwritten(error.into()))?;
        bytes.push(b'\n');
        if bytes.len() > MAX_LINE_BYTES {
            let why = format!(
                "a line of the file would have {} bytes; it may have {MAX_LINE_BYTES}",
                bytes.len()
            );
            return Err(invalid(why));
        }
        self.sha256.update(&bytes);
        self.bytes += bytes.len() as u64;
        self.out.write_all(&bytes).map_err(unwritten)
    }
}

fn unwritten(error: io::Error) -> JournalError {
    JournalError::new(
        JournalErrorKind::Io,
        "the file of a session cannot be written",
    )
    .with_source(error)
}

//! Reads a session from a file: all of it is checked before any of it is seen.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, Read as _},
};

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::{
    Sessions,
    chain::{Chain, Folds},
    check_about, corrupt,
    file::{
        ExportHeader, ExportLine, FORMAT, Footer, MAX_ATTACHED_BYTES, MAX_LINE_BYTES, VERSION,
        Versioned,
    },
    half::Half,
};
use crate::{
    digest::Digest,
    journal::{
        Attachment, JournalError, JournalErrorKind, LogId, LogInfo, SessionMeta, StoredRecord,
    },
    number::Seq,
};

/// A file, line by line.
struct Lines<R> {
    input: R,
    /// The digest of the lines before the newest one.
    sha256: Sha256,
    /// The number of bytes that those have.
    bytes: u64,
    line: Vec<u8>,
    no: u64,
}

/// The reader of a file, with the parts that it has read.
struct ImportReader {
    chain: Chain,
    folds: Folds,
    /// The attachments of the record that comes next.
    next: Vec<Attachment>,
    next_bytes: usize,
    /// The first record that has an attachment.
    known: BTreeMap<Digest, Seq>,
}

impl Sessions {
    /// Creates the session that a file contains; `change` may change its name and its description before it becomes
    /// visible. Reading blocks.
    ///
    /// Everything is checked first: digests, the chain, the order, and that each thread folds.
    /// Cancel: a half-made log stays under a hidden name until [`sweep`](Sessions::sweep).
    ///
    /// # Errors
    /// `Corrupt` if the file is incomplete or was changed, `Version` if a newer program wrote it, `Exists` if the
    /// name is in use, `Invalid`, `Unsupported`, `Io`. Nothing of the session remains then.
    pub async fn import(
        &self,
        input: impl BufRead + Send,
        change: impl FnOnce(&mut LogId, &mut SessionMeta) + Send,
    ) -> Result<LogInfo, JournalError> {
        let (
            mut lines,
            ExportHeader {
                mut id, mut about, ..
            },
        ) = Lines::open(input)?;
        change(&mut id, &mut about);
        check_about(&about)?;
        let mut half = Half::new(self, &id).await?;
        let filled = fill(&mut half, &mut lines, &id).await;
        half.end(filled.map(|()| about), &id).await
    }
}

async fn fill<R: BufRead + Send>(
    half: &mut Half,
    lines: &mut Lines<R>,
    id: &LogId,
) -> Result<(), JournalError> {
    let (next, known) = (Vec::new(), BTreeMap::new());
    let mut reading = ImportReader {
        chain: Chain::new(id),
        folds: Folds::default(),
        next,
        next_bytes: 0,
        known,
    };
    loop {
        lines.read()?;
        match lines.parse()? {
            ExportLine::Attachment { digest, text } => reading.attachment(digest, &text)?,
            ExportLine::Record {
                seq,
                link,
                attachments,
                bytes,
            } => {
                let bytes = Bytes::copy_from_slice(bytes.get().as_bytes());
                let attachments = reading.attachments(half, seq, &attachments).await?;
                let stamped = reading.chain.take(StoredRecord {
                    seq,
                    bytes,
                    link,
                    attachments,
                })?;
                reading.folds.take(id, &stamped)?;
                half.push(stamped).await?;
            }
            ExportLine::Footer(footer) => {
                reading.check(lines, &footer)?;
                return lines.end();
            }
        }
    }
}

impl ImportReader {
    fn attachment(&mut self, digest: Digest, text: &str) -> Result<(), JournalError> {
        self.next_bytes += text.len();
        if self.next_bytes > MAX_ATTACHED_BYTES {
            return Err(corrupt(format!(
                "a record has more than {MAX_ATTACHED_BYTES} bytes of attachments"
            )));
        }
        if self.known.contains_key(&digest) || self.next.iter().any(|known| known.digest == digest)
        {
            return Err(corrupt(format!(
                "attachment {digest} appears twice in the file"
            )));
        }
        self.next.push(Attachment {
            digest,
            bytes: Bytes::copy_from_slice(text.as_bytes()),
        });
        Ok(())
    }

    /// The attachments of a record: those directly before it, and those of earlier records.
    async fn attachments(
        &mut self,
        half: &mut Half,
        seq: Seq,
        wanted: &[Digest],
    ) -> Result<Vec<Attachment>, JournalError> {
        let mut found = Vec::with_capacity(wanted.len());
        for digest in wanted {
            let known = match self.next.iter().position(|next| next.digest == *digest) {
                Some(at) => {
                    self.known.insert(*digest, seq);
                    Some(self.next.swap_remove(at))
                }
                None => match self.known.get(digest) {
                    Some(of) if *of < seq => half.attachment(digest, *of).await?,
                    _ => None,
                },
            };
            let missing = || corrupt(format!("record {seq} misses its attachment {digest}"));
            found.push(known.ok_or_else(missing)?);
        }
        self.next_bytes = 0;
        match self.next.first() {
            Some(next) => Err(corrupt(format!(
                "attachment {} does not belong to record {seq}",
                next.digest
            ))),
            None => Ok(found),
        }
    }

    fn check<R>(&self, lines: &Lines<R>, footer: &Footer) -> Result<(), JournalError> {
        let expected = Footer {
            records: self.chain.seq.0,
            attachments: self.known.len() as u64,
            link: self.chain.link,
            bytes: lines.bytes,
            sha256: Digest(lines.sha256.clone().finalize().into()),
        };
        let written = serde_json::to_vec(&ExportLine::Footer(expected)).unwrap_or_default();
        // Compared as bytes: only the last line is not covered by its digest.
        if self.next.is_empty() && written == lines.line {
            return Ok(());
        }
        let why =
            format!("the file is not what was written: its last line does not fit: {footer:?}");
        Err(corrupt(why))
    }
}

impl<R: BufRead> Lines<R> {
    fn open(input: R) -> Result<(Self, ExportHeader), JournalError> {
        let mut lines = Self {
            input,
            sha256: Sha256::new(),
            bytes: 0,
            line: Vec::new(),
            no: 0,
        };
        lines.read()?;
        let unread = |error| corrupt("the file is no exported session").with_source(error);
        let known: Versioned = serde_json::from_slice(&lines.line).map_err(unread)?;
        if known.format != FORMAT {
            return Err(corrupt(format!(
                "the file is no exported session, but a {:?}",
                known.format
            )));
        }
        if known.version > VERSION {
            let message = format!(
                "the file has version {}; this program reads up to {VERSION}",
                known.version
            );
            return Err(JournalError::new(JournalErrorKind::Version, message));
        }
        let header = serde_json::from_slice(&lines.line).map_err(unread)?;
        Ok((lines, header))
    }

    /// Reads the next line, without its end.
    fn read(&mut self) -> Result<(), JournalError> {
        if self.no > 0 {
            self.sha256.update(&self.line);
            self.sha256.update(b"\n");
            self.bytes += self.line.len() as u64 + 1;
        }
        self.no += 1;
        self.line.clear();
        let mut limited = (&mut self.input).take(MAX_LINE_BYTES as u64 + 1);
        limited.read_until(b'\n', &mut self.line).map_err(unread)?;
        if self.line.pop_if(|last| *last == b'\n').is_some() {
            return Ok(());
        }
        let no = self.no;
        Err(match self.line.len() {
            0 => corrupt(format!("the file ends early: line {no} is missing")),
            bytes if bytes > MAX_LINE_BYTES => {
                corrupt(format!("line {no} has more than {MAX_LINE_BYTES} bytes"))
            }
            _ => corrupt(format!("the file ends early, within line {no}")),
        })
    }

    fn parse(&self) -> Result<ExportLine<'_>, JournalError> {
        let why = || format!("line {} of the file is not what was written", self.no);
        serde_json::from_slice(&self.line).map_err(|error| corrupt(why()).with_source(error))
    }

    /// Nothing may stand behind the last line.
    fn end(&mut self) -> Result<(), JournalError> {
        match self.input.fill_buf().map_err(unread)? {
            [] => Ok(()),
            _ => Err(corrupt("something stands behind the end of the file")),
        }
    }
}

fn unread(error: io::Error) -> JournalError {
    JournalError::new(JournalErrorKind::Io, "the file of a session cannot be read")
        .with_source(error)
}

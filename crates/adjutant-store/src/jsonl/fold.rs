//! The fold stored next to a log.
//!
//! Shape: a JSON object in one line, then the bytes of the fold.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    sync::Arc,
};

use adjutant_core::{Digest, Folded, JournalError, Seq};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{
    line::{BEGINNING, LogEnd},
    place::{LogFolder, contents, io_error, replace},
    scan,
};

/// The most bytes of the first line.
const MAX_HEADER: u64 = 4 << 10;

#[derive(Serialize, Deserialize)]
struct FoldHeader {
    seq: Seq,
    /// The link of that record.
    link: Digest,
    /// The length of the file of records up to there.
    length: u64,
    format: Arc<str>,
    digest: Digest,
}

/// Keeps a fold of the records up to this end in place of the one before; they are on the disk before it is.
///
/// A crash of the machine that took them would leave a fold that others could grow into.
pub(super) fn keep(
    log: &LogFolder,
    LogEnd { link, length, .. }: &LogEnd,
    folded: &Folded,
) -> Result<(), JournalError> {
    let path = log.file("fold");
    let Folded { seq, format, bytes } = folded;
    let (format, digest) = (Arc::clone(format), Digest::compute(bytes));
    let header = FoldHeader {
        seq: *seq,
        link: *link,
        length: *length,
        format,
        digest,
    };
    let mut text =
        serde_json::to_vec(&header).map_err(|error| io_error("write", &path, error.into()))?;
    text.push(b'\n');
    text.extend_from_slice(bytes);
    let records = log.records();
    File::open(&records)
        .and_then(|file| file.sync_data())
        .map_err(|error| io_error("flush", &records, error))?;
    replace(&path, &text)
}

/// The last saved fold; `None` if it is damaged, or does not match the records of the log.
pub(super) fn read(log: &LogFolder) -> Result<Option<Folded>, JournalError> {
    let Some(text) = contents(&log.file("fold"))? else {
        return Ok(None);
    };
    let Some(at) = text.iter().position(|byte| *byte == b'\n') else {
        return Ok(None);
    };
    let Ok(header) = serde_json::from_slice::<FoldHeader>(&text[..at]) else {
        return Ok(None);
    };
    let bytes = Bytes::from(text).slice(at + 1..);
    let stands = Digest::compute(&bytes) == header.digest && header.end(log)?.is_some();
    Ok(stands.then_some(Folded {
        seq: header.seq,
        format: header.format,
        bytes,
    }))
}

/// An end from which the records after this one can be read: the fold's end, if it is not later.
///
/// The part before it was checked when the fold was created, and is checked again when it is read.
pub(super) fn before(log: &LogFolder, seq: u64) -> Result<LogEnd, JournalError> {
    let mut text = Vec::new();
    // Derived data: without it, more is read.
    let read = File::open(log.file("fold"))
        .and_then(|file| BufReader::new(file.take(MAX_HEADER)).read_until(b'\n', &mut text));
    match serde_json::from_slice::<FoldHeader>(&text) {
        // A batch is complete or missing: its middle is not an end.
        Ok(header) if read.is_ok() && header.seq.0 <= seq => Ok(header
            .end(log)?
            .filter(|(_, rest)| *rest == 0)
            .map_or(BEGINNING, |(end, _)| end)),
        _ => Ok(BEGINNING),
    }
}

impl FoldHeader {
    /// The end of the folded records, if they belong to this log.
    fn end(&self, log: &LogFolder) -> Result<Option<(LogEnd, u64)>, JournalError> {
        let end = scan::at(&log.records(), self.length)?;
        Ok(end.filter(|(end, _)| (end.seq, end.link) == (self.seq.0, self.link)))
    }
}

//! The fold that is kept beside a log.
//!
//! Shape: a JSON object in one line, then the bytes of the fold.

use std::{fs::File, sync::Arc};

use adjutant_core::{Digest, Folded, JournalError, Seq};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{
    line::LogEnd,
    place::{LogFolder, contents, failed, replace},
    scan,
};

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
pub(super) fn keep(log: &LogFolder, LogEnd { link, length, .. }: &LogEnd, folded: &Folded) -> Result<(), JournalError> {
    let path = log.file("fold");
    let Folded { seq, format, bytes } = folded;
    let (format, digest) = (Arc::clone(format), Digest::of(bytes));
    let header = FoldHeader { seq: *seq, link: *link, length: *length, format, digest };
    let mut text = serde_json::to_vec(&header).map_err(|error| failed("write", &path, error.into()))?;
    text.push(b'\n');
    text.extend_from_slice(bytes);
    let records = log.records();
    File::open(&records).and_then(|file| file.sync_data()).map_err(|error| failed("flush", &records, error))?;
    replace(&path, &text)
}

/// The fold that was kept last; what is damaged, or of records that are not those of the log, is none.
pub(super) fn read(log: &LogFolder) -> Result<Option<Folded>, JournalError> {
    let Some(text) = contents(&log.file("fold"))? else { return Ok(None) };
    let Some(at) = text.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
    let Ok(FoldHeader { seq, link, length, format, digest }) = serde_json::from_slice(&text[..at]) else {
        return Ok(None);
    };
    let bytes = Bytes::from(text).slice(at + 1..);
    let stands = Digest::of(&bytes) == digest && scan::at(&log.records(), length)? == Some((seq.0, link));
    Ok(stands.then_some(Folded { seq, format, bytes }))
}

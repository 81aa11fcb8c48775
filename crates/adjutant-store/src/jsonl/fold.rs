//! The fold that is kept beside a log.
//!
//! Shape: a JSON object in one line, then the bytes of the fold.

use std::sync::Arc;

use adjutant_agent::{Digest, Folded, JournalError, Seq};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{
    place::{LogPlace, contents, failed, replace},
    scan,
};

#[derive(Serialize, Deserialize)]
struct Header {
    seq: Seq,
    format: Arc<str>,
    digest: Digest,
}

/// Keeps a fold in place of the one before.
pub(super) fn keep(log: &LogPlace, folded: &Folded) -> Result<(), JournalError> {
    let path = log.file("fold");
    let Folded { seq, format, bytes } = folded;
    let header = Header { seq: *seq, format: Arc::clone(format), digest: Digest::of(bytes) };
    let mut text = serde_json::to_vec(&header).map_err(|error| failed("write", &path, error.into()))?;
    text.push(b'\n');
    text.extend_from_slice(bytes);
    replace(&path, &text)
}

/// The fold that was kept last; what is damaged, or ahead of the log, is none.
pub(super) fn read(log: &LogPlace) -> Result<Option<Folded>, JournalError> {
    let Some(text) = contents(&log.file("fold"))? else { return Ok(None) };
    let Some(at) = text.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
    let Ok(Header { seq, format, digest }) = serde_json::from_slice(&text[..at]) else { return Ok(None) };
    let bytes = Bytes::from(text).slice(at + 1..);
    let stands = Digest::of(&bytes) == digest && scan::tail(&log.records())?.seq >= seq.0;
    Ok(stands.then_some(Folded { seq, format, bytes }))
}

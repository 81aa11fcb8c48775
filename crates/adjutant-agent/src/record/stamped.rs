//! A record at its place in the log, with the bytes that are stored.

use std::sync::OnceLock;

use adjutant_llm::ThreadId;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::Record;
use crate::Seq;

/// The format that records are stored in.
const VERSION: u32 = 1;

/// A record with its place.
///
/// Shape: `{"v":1,"seq":…,"at_ms":…,"thread":"…","record":{"record":"began",…}}`. The bytes are made once, at most.
#[derive(Debug, Serialize, Deserialize)]
#[serde(try_from = "Raw")]
pub struct Stamped {
    v: u32,
    /// Its place in the log.
    pub seq: Seq,
    /// When it was made, in milliseconds since 1970-01-01 UTC; one value for a batch.
    pub at_ms: u64,
    /// The conversation that it belongs to.
    pub thread: ThreadId,
    /// The record.
    pub record: Record,
    #[serde(skip)]
    bytes: OnceLock<Bytes>,
}

#[derive(Deserialize)]
struct Raw {
    v: u32,
    seq: Seq,
    at_ms: u64,
    thread: ThreadId,
    record: Record,
}

impl Stamped {
    /// A record at its place.
    pub fn new(seq: Seq, at_ms: u64, thread: ThreadId, record: Record) -> Self {
        Self { v: VERSION, seq, at_ms, thread, record, bytes: OnceLock::new() }
    }

    /// The record as it is stored: one JSON object, without a line feed.
    ///
    /// # Errors
    /// If the record cannot be written as JSON; ours can.
    pub fn bytes(&self) -> Result<&Bytes, serde_json::Error> {
        if let Some(bytes) = self.bytes.get() {
            return Ok(bytes);
        }
        let bytes = Bytes::from(serde_json::to_vec(self)?);
        Ok(self.bytes.get_or_init(|| bytes))
    }
}

impl PartialEq for Stamped {
    fn eq(&self, other: &Self) -> bool {
        (self.seq, self.at_ms, &self.thread, &self.record) == (other.seq, other.at_ms, &other.thread, &other.record)
    }
}

impl TryFrom<Raw> for Stamped {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Self, String> {
        if raw.v > VERSION {
            return Err(format!("record {} has version {}; this program reads up to {VERSION}", raw.seq, raw.v));
        }
        Ok(Self::new(raw.seq, raw.at_ms, raw.thread, raw.record))
    }
}

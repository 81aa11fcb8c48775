//! A record at its place in the log, with the bytes that are stored.

mod attach;
mod migrate;

use std::sync::OnceLock;

use adjutant_llm::ThreadId;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use self::attach::Attached;
use super::{Attachment, JournalError, JournalErrorKind};
use crate::{
    json::{self, MAX_DEPTH},
    number::Seq,
    record::Record,
};

/// The format that records are stored in.
const VERSION: u32 = 2;

/// A record with its place.
///
/// Shape: `{"v":2,"seq":…,"at_ms":…,"thread":"…","record":{"began":{…}}}`. The bytes are encoded at most once. Texts
/// of more than 64 KiB are attachments: an empty text takes their place, and `"attached":[{"at":"/…","digest":"…"}]`
/// lists their places as JSON pointers from the record.
#[derive(Debug)]
pub struct Stamped {
    /// Its place in the log.
    pub seq: Seq,
    /// The time when it was made, in milliseconds since 1970-01-01 UTC; one value for a batch.
    pub at_ms: u64,
    /// The conversation that it belongs to.
    pub thread: ThreadId,
    /// The record.
    pub record: Record,
    encoded: OnceLock<Encoded>,
}

/// The stored form of a record.
#[derive(Debug)]
struct Encoded {
    bytes: Bytes,
    attachments: Vec<Attachment>,
}

/// A record in its written form; `R` is the type of its content.
#[derive(Serialize, Deserialize)]
struct Envelope<R> {
    v: u32,
    seq: Seq,
    at_ms: u64,
    thread: ThreadId,
    record: R,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attached: Vec<Attached>,
}

/// The part of a record that every version can read.
#[derive(Deserialize)]
struct Versioned {
    v: u32,
    #[serde(default)]
    seq: Seq,
}

impl Stamped {
    /// A record at its place.
    pub fn new(seq: Seq, at_ms: u64, thread: ThreadId, record: Record) -> Self {
        Self {
            seq,
            at_ms,
            thread,
            record,
            encoded: OnceLock::new(),
        }
    }

    /// Reads a record from its bytes, which are stored with it; also a record of an older version.
    ///
    /// # Errors
    /// `Version` if a newer program wrote it, `Corrupt` if it is not a record.
    pub fn read(bytes: Bytes, attachments: Vec<Attachment>) -> Result<Self, JournalError> {
        let envelope = match serde_json::from_slice::<Envelope<Record>>(&bytes) {
            Ok(envelope) if envelope.v == VERSION && envelope.attached.is_empty() => envelope,
            Ok(envelope) if envelope.v == VERSION => attach::read(&bytes, &attachments)?,
            Ok(_) => older(&bytes, &attachments, None)?,
            Err(error) => older(&bytes, &attachments, Some(error))?,
        };
        let Envelope {
            seq,
            at_ms,
            thread,
            record,
            ..
        } = envelope;
        let encoded = OnceLock::from(Encoded { bytes, attachments });
        Ok(Self {
            seq,
            at_ms,
            thread,
            record,
            encoded,
        })
    }

    /// The record as it is stored: one JSON object, without a line feed.
    ///
    /// # Errors
    /// `Invalid` if its JSON is deeper than 120 levels.
    pub fn bytes(&self) -> Result<&Bytes, JournalError> {
        Ok(&self.get_or_encode()?.bytes)
    }

    /// Returns the texts that are stored separately: texts of more than 64 KiB.
    ///
    /// # Errors
    /// Like [`bytes`](Stamped::bytes).
    pub fn attachments(&self) -> Result<&[Attachment], JournalError> {
        Ok(&self.get_or_encode()?.attachments)
    }

    fn get_or_encode(&self) -> Result<&Encoded, JournalError> {
        if let Some(encoded) = self.encoded.get() {
            return Ok(encoded);
        }
        let encoded = self.encode()?;
        Ok(self.encoded.get_or_init(|| encoded))
    }

    fn encode(&self) -> Result<Encoded, JournalError> {
        let envelope = self.envelope(&self.record, Vec::new());
        let bytes = serde_json::to_vec(&envelope).map_err(|error| self.invalid(error))?;
        if json::depth(&bytes) > MAX_DEPTH {
            let message = format!(
                "record {} is nested deeper than {MAX_DEPTH} levels",
                self.seq
            );
            return Err(JournalError::new(JournalErrorKind::Invalid, message));
        }
        if bytes.len() <= attach::LARGE {
            return Ok(Encoded {
                bytes: bytes.into(),
                attachments: Vec::new(),
            });
        }
        let (record, attached, attachments) =
            attach::detach(&self.record).map_err(|error| self.invalid(error))?;
        if attachments.is_empty() {
            return Ok(Encoded {
                bytes: bytes.into(),
                attachments,
            });
        }
        let envelope = self.envelope(&record, attached);
        let bytes = serde_json::to_vec(&envelope).map_err(|error| self.invalid(error))?;
        Ok(Encoded {
            bytes: bytes.into(),
            attachments,
        })
    }

    fn envelope<R>(&self, record: R, attached: Vec<Attached>) -> Envelope<R> {
        let (seq, at_ms, thread) = (self.seq, self.at_ms, self.thread.clone());
        Envelope {
            v: VERSION,
            seq,
            at_ms,
            thread,
            record,
            attached,
        }
    }

    fn invalid(&self, error: serde_json::Error) -> JournalError {
        let message = format!("record {} cannot be written as JSON", self.seq);
        JournalError::new(JournalErrorKind::Invalid, message).with_source(error)
    }
}

/// A record that this version of the program would not write; `error` is why it cannot be read as one.
fn older(
    bytes: &Bytes,
    attachments: &[Attachment],
    error: Option<serde_json::Error>,
) -> Result<Envelope<Record>, JournalError> {
    let corrupt = |seq: &str, error| {
        JournalError::new(
            JournalErrorKind::Corrupt,
            format!("what is stored{seq} is no record"),
        )
        .with_source(error)
    };
    let known: Versioned = serde_json::from_slice(bytes).map_err(|error| corrupt("", error))?;
    if known.v > VERSION {
        let message = format!(
            "record {} has version {}; this program reads up to {VERSION}",
            known.seq, known.v
        );
        return Err(JournalError::new(JournalErrorKind::Version, message));
    }
    let at = format!(" as record {}", known.seq);
    match error {
        Some(error) if known.v == VERSION => Err(corrupt(&at, error)),
        _ => migrate::read(bytes, attachments, known.v).map_err(|error| corrupt(&at, error)),
    }
}

impl PartialEq for Stamped {
    fn eq(&self, other: &Self) -> bool {
        (self.seq, self.at_ms, &self.thread, &self.record)
            == (other.seq, other.at_ms, &other.thread, &other.record)
    }
}

impl Serialize for Stamped {
    /// The record whole, without attachments.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.envelope(&self.record, Vec::new())
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Stamped {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Self::read(value.to_string().into(), Vec::new())
            .map_err(|error| serde::de::Error::custom(error.to_string()))
    }
}

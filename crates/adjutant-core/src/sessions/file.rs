//! The file that a session is carried in: JSON lines, with a digest over all of it at the end.
//!
//! The first line names the format. Then each record follows with its link, after those of its attachments that no
//! earlier record has. The last line counts and seals.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    digest::Digest,
    journal::{LogId, SessionMeta},
    number::Seq,
};

/// The format name in a session file.
pub(super) const FORMAT: &str = "adjutant-session";
/// The version of the format.
pub(super) const VERSION: u32 = 1;
/// The number of bytes that a line may have.
pub(super) const MAX_LINE_BYTES: usize = 512 * 1024 * 1024;
/// The number of bytes that the attachments of one record may have together.
pub(super) const MAX_ATTACHED_BYTES: usize = 1024 * 1024 * 1024;

/// The part of a first line that every version can read.
#[derive(Deserialize)]
pub(super) struct Versioned {
    pub(super) format: String,
    pub(super) version: u32,
}

/// The first line.
#[derive(Serialize, Deserialize)]
pub(super) struct ExportHeader {
    pub(super) format: Cow<'static, str>,
    pub(super) version: u32,
    pub(super) id: LogId,
    pub(super) created_ms: u64,
    pub(super) about: SessionMeta,
}

/// Every other line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ExportLine<'a> {
    /// A large text of the record that follows.
    Attachment {
        digest: Digest,
        #[serde(borrow)]
        text: Cow<'a, str>,
    },
    /// A record, with the bytes that the chain was made over.
    Record {
        seq: Seq,
        link: Digest,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Digest>,
        #[serde(borrow)]
        bytes: &'a RawValue,
    },
    /// The last line.
    Footer(Footer),
}

/// The last line.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Footer {
    pub(super) records: u64,
    pub(super) attachments: u64,
    /// The link of the newest record.
    pub(super) link: Digest,
    /// The number of bytes before this line.
    pub(super) bytes: u64,
    /// The digest of those.
    pub(super) sha256: Digest,
}

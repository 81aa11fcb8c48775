//! A line of a log.
//!
//! Format: `{"seq":3,"rest":0,"changed_ms":9,"bytes":700,"attached":["<digest>"],"link":"<64 digits>","check":"<16
//! digits>","stored":<record>}`. `rest` is the number of lines of its batch that follow. `changed_ms` and `bytes`
//! cover all records up to here, so that the last line describes the log. `check` covers everything before it, and
//! `link` the record.

use std::sync::Arc;

use adjutant_core::{Digest, JournalError, JournalErrorKind, Stamped};
use serde::{Deserialize, Serialize};

/// The header before the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    /// The number of the record.
    pub(super) seq: u64,
    /// The number of lines of its batch that follow.
    pub(super) rest: u64,
    /// The newest time of all records up to here.
    pub(super) changed_ms: u64,
    /// The number of bytes that all records up to here have.
    pub(super) bytes: u64,
    /// Its attachments, in the order of the record.
    pub(super) attached: Vec<Digest>,
    /// Its link.
    pub(super) link: Digest,
}

/// A complete line: its fields are as written, apart from the record, which is verified with the previous link.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) header: Header,
    pub(super) stored: &'a [u8],
}

/// The end of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogEnd {
    pub(super) seq: u64,
    pub(super) changed_ms: u64,
    pub(super) bytes: u64,
    pub(super) link: Digest,
    /// The length of the file up to there.
    pub(super) length: u64,
}

/// The most bytes of a line, as in an exported session.
pub(super) const MAX_LINE: usize = 512 << 20;

const CHECK: &[u8] = b",\"check\":\"";
const STORED: &[u8] = b"\",\"stored\":";

/// The beginning of every log.
pub(super) const BEGINNING: LogEnd = LogEnd {
    seq: 0,
    changed_ms: 0,
    bytes: 0,
    link: Digest::GENESIS,
    length: 0,
};

impl<'a> Line<'a> {
    /// Reads a line, without its line feed.
    pub(super) fn read(line: &'a [u8]) -> Option<Self> {
        let at = line
            .windows(CHECK.len())
            .position(|window| window == CHECK)?;
        let (head, rest) = line.split_at(at);
        let (check, rest) = rest.get(CHECK.len()..)?.split_at_checked(16)?;
        let stored = rest.strip_prefix(STORED)?.strip_suffix(b"}")?;
        if check != check_of(head).as_bytes() {
            return None;
        }
        let header = serde_json::from_slice(&[head, b"}"].concat()).ok()?;
        Some(Self { header, stored })
    }

    /// True if it is the next line, and its record is as written.
    pub(super) fn follows(&self, end: &LogEnd) -> bool {
        self.header.seq == end.seq + 1 && end.link.then(self.stored) == self.header.link
    }

    /// The end of the log behind this line, which begins where the log ended before.
    pub(super) fn end(&self, end: &LogEnd, line_length: usize) -> LogEnd {
        let Header {
            seq,
            changed_ms,
            bytes,
            link,
            ..
        } = self.header;
        LogEnd {
            seq,
            changed_ms,
            bytes,
            link,
            length: end.length + line_length as u64 + 1,
        }
    }
}

fn check_of(head: &[u8]) -> String {
    let Digest(bytes) = Digest::compute(head);
    bytes.first_chunk().map_or_else(String::new, |first| {
        format!("{:016x}", u64::from_be_bytes(*first))
    })
}

/// The lines of a batch behind an end, and the end behind them.
pub(super) fn lines(
    mut end: LogEnd,
    batch: &[Arc<Stamped>],
) -> Result<(Vec<u8>, LogEnd), JournalError> {
    let mut text = Vec::new();
    for (stamped, rest) in batch.iter().zip((0..batch.len() as u64).rev()) {
        let stored = stamped.bytes()?;
        if stored.contains(&b'\n') {
            let message = format!("record {} has a line feed between its parts", stamped.seq);
            return Err(JournalError::new(JournalErrorKind::Invalid, message));
        }
        let header = Header {
            seq: end.seq + 1,
            rest,
            changed_ms: end.changed_ms.max(stamped.at_ms),
            bytes: end.bytes + stored.len() as u64,
            attached: stamped
                .attachments()?
                .iter()
                .map(|attachment| attachment.digest)
                .collect(),
            link: end.link.then(stored),
        };
        let mut head = serde_json::to_vec(&header).map_err(|error| {
            JournalError::new(
                JournalErrorKind::Invalid,
                "a line cannot be written as JSON",
            )
            .with_source(error)
        })?;
        // Without the brace: the rest of the line belongs to the same object.
        head.pop();
        let check = check_of(&head);
        let before = text.len();
        for part in [&head, CHECK, check.as_bytes(), STORED, stored, b"}\n"] {
            text.extend_from_slice(part);
        }
        if text.len() - before > MAX_LINE {
            let message = format!(
                "record {} would be longer than {MAX_LINE} bytes",
                stamped.seq
            );
            return Err(JournalError::new(JournalErrorKind::Invalid, message));
        }
        let Header {
            seq,
            changed_ms,
            bytes,
            link,
            ..
        } = header;
        end = LogEnd {
            seq,
            changed_ms,
            bytes,
            link,
            length: end.length + (text.len() - before) as u64,
        };
    }
    Ok((text, end))
}

//! The durable end of a log, stored next to it, so that a truncation of the log is detected.
//!
//! Format: `{"seq":3,"length":900,"link":"<64 digits>"}`, then spaces, 160 bytes in total. It is written in place
//! when the records are flushed, and never flushed itself: an old one only covers less.

use std::{
    fs::{File, OpenOptions},
    io::{self, ErrorKind, Read, Seek, Write},
    path::Path,
};

use adjutant_core::{Digest, JournalError, JournalErrorKind};
use serde::{Deserialize, Serialize};

use super::{
    line::LogEnd,
    place::{LogFolder, io_error, replace},
    scan,
};

/// The name of the file.
const FILE: &str = "head";
/// The most bytes of it that are read.
const MAX_BYTES: u64 = 4 << 10;

/// The end of the records that were flushed last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Flushed {
    pub(super) seq: u64,
    pub(super) length: u64,
    link: Digest,
}

impl Flushed {
    /// Reads the file next to these records; `None` if it does not exist.
    pub(super) fn read(records: &Path) -> Result<Option<Self>, JournalError> {
        let path = records.with_file_name(FILE);
        let mut text = Vec::new();
        // Under a separate lock, because it is written in place.
        let read = File::open(&path).and_then(|file| {
            file.lock_shared()?;
            file.take(MAX_BYTES).read_to_end(&mut text)
        });
        match read {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error("read", &path, error)),
        }
        serde_json::from_slice(&text).map(Some).map_err(|error| {
            let message = format!("{} is not what was written", path.display());
            JournalError::new(JournalErrorKind::Corrupt, message).with_source(error)
        })
    }

    /// Fails if the records after this end, at a batch boundary, differ from the flushed ones.
    pub(super) fn check(
        &self,
        records: &Path,
        LogEnd {
            seq, link, length, ..
        }: &LogEnd,
    ) -> Result<(), JournalError> {
        if *seq != self.seq || (*link, *length) == (self.link, self.length) {
            return Ok(());
        }
        Err(other(records, *seq))
    }

    /// Fails if the unread records up to this end differ from the flushed ones.
    pub(super) fn check_before(&self, records: &Path, end: &LogEnd) -> Result<(), JournalError> {
        if end.seq <= self.seq || self.seq == 0 {
            return self.check(records, end);
        }
        match scan::at(records, self.length)? {
            Some((known, _)) if known.seq == self.seq => self.check(records, &known),
            _ => Err(other(records, self.seq)),
        }
    }

    /// Fails if the records end here, before the flushed end.
    pub(super) fn check_reached(&self, records: &Path, seq: u64) -> Result<(), JournalError> {
        if seq >= self.seq {
            return Ok(());
        }
        let cure = match seq {
            0 => String::new(),
            _ => format!("; hint: a fork at {seq} keeps what is left"),
        };
        let (path, gone) = (records.display(), self.seq);
        let message = format!(
            "record {} in {path} is missing: it was cut off, with all up to {gone}{cure}",
            seq + 1
        );
        Err(JournalError::new(JournalErrorKind::Corrupt, message))
    }
}

fn other(records: &Path, seq: u64) -> JournalError {
    let message = format!(
        "record {seq} in {} is not the one that was flushed",
        records.display()
    );
    JournalError::new(JournalErrorKind::Corrupt, message)
}

/// Makes the file; it survives a crash of the machine.
pub(super) fn make(log: &LogFolder, end: &LogEnd) -> Result<(), JournalError> {
    replace(&log.file(FILE), &text(end))
}

/// Opens the file for writing: later writes go to the file of this log, even if it is renamed.
pub(super) fn open(log: &LogFolder) -> Result<File, JournalError> {
    let path = log.file(FILE);
    OpenOptions::new()
        .write(true)
        .open(&path)
        .map_err(|error| io_error("open", &path, error))
}

/// Writes the end of records that have been flushed.
pub(super) fn write(mut file: &File, end: &LogEnd) -> io::Result<()> {
    file.lock()?;
    let written = file.rewind().and_then(|()| file.write_all(&text(end)));
    written.and(file.unlock())
}

fn text(
    LogEnd {
        seq, length, link, ..
    }: &LogEnd,
) -> Vec<u8> {
    let json = format!("{{\"seq\":{seq},\"length\":{length},\"link\":\"{link}\"}}");
    format!("{json:159}\n").into_bytes()
}

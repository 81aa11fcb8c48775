//! Reads a file of records: whole batches, and the remainder after the last one.

use std::{
    fs::File,
    io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use adjutant_core::{Digest, JournalError, JournalErrorKind, Seq};
use bytes::Bytes;

use super::{
    flushed::Flushed,
    line::{BEGINNING, Line, LogEnd, MAX_LINE},
    place::io_error,
};

/// The number of bytes that are read at once from the end.
const TAIL: u64 = 16 * 1024;

/// A record as a file has it.
#[derive(Debug)]
pub(super) struct ScannedRecord {
    pub(super) seq: Seq,
    pub(super) bytes: Bytes,
    pub(super) link: Digest,
    pub(super) attached: Vec<Digest>,
}

/// The batches of a file, one after the other.
#[derive(Debug)]
pub(super) struct Scan {
    file: BufReader<File>,
    path: PathBuf,
    /// The end of the last whole batch.
    pub(super) end: LogEnd,
    /// Records up to this one are not parsed.
    skip: u64,
    /// The flushed end that the records must reach, if one is kept.
    pub(super) flushed: Option<Flushed>,
}

/// The next thing in a file.
enum NextLine {
    /// A line; how long it is without its line feed.
    Line(ScannedRecord, LogEnd, u64),
    /// Nothing, or the beginning of a line.
    End,
}

impl Scan {
    /// Begins behind this end.
    pub(super) fn open(path: &Path, end: LogEnd, skip: u64) -> Result<Self, JournalError> {
        // Before the records: later flushes need not be covered.
        let flushed = Flushed::read(path)?;
        flushed
            .as_ref()
            .map_or(Ok(()), |flushed| flushed.check_before(path, &end))?;
        let mut file = File::open(path).map_err(|error| io_error("open", path, error))?;
        file.seek(SeekFrom::Start(end.length))
            .map_err(|error| io_error("read", path, error))?;
        Ok(Self {
            file: BufReader::with_capacity(64 * 1024, file),
            path: path.to_owned(),
            end,
            skip,
            flushed,
        })
    }

    /// The next whole batch; empty at the end, whatever is torn there. After an error there is nothing more.
    ///
    /// # Errors
    /// `Corrupt` also if the records end before the flushed end.
    pub(super) fn batch(&mut self) -> Result<Vec<ScannedRecord>, JournalError> {
        let (mut batch, mut end) = (Vec::new(), self.end.clone());
        let mut expected = None;
        loop {
            let NextLine::Line(kept, next, rest) = self.line(&end)? else {
                self.flushed.as_ref().map_or(Ok(()), |flushed| {
                    flushed.check_reached(&self.path, self.end.seq)
                })?;
                return Ok(Vec::new());
            };
            if expected.is_some_and(|expected| expected != rest) {
                return Err(self.corrupt(end.seq + 1));
            }
            batch.push(kept);
            end = next;
            if rest == 0 {
                self.flushed
                    .as_ref()
                    .map_or(Ok(()), |flushed| flushed.check(&self.path, &end))?;
                self.end = end;
                return Ok(batch);
            }
            expected = Some(rest - 1);
        }
    }

    fn line(&mut self, end: &LogEnd) -> Result<NextLine, JournalError> {
        let mut text = Vec::new();
        let mut limited = Read::by_ref(&mut self.file).take(MAX_LINE as u64 + 1);
        limited
            .read_until(b'\n', &mut text)
            .map_err(|error| io_error("read", &self.path, error))?;
        if text.len() > MAX_LINE {
            return Err(self.corrupt(end.seq + 1));
        }
        let is_whole = text.pop_if(|last| *last == b'\n').is_some();
        if !is_whole {
            // A different byte in place of the line feed is damage: an incomplete write has no byte after a whole
            // line.
            let is_damaged =
                text.pop().is_some() && Line::read(&text).is_some_and(|line| line.follows(end));
            return if is_damaged {
                Err(self.corrupt(end.seq + 1))
            } else {
                Ok(NextLine::End)
            };
        }
        let Some(line) = Line::read(&text) else {
            return Err(self.corrupt(end.seq + 1));
        };
        let is_next = line.header.seq == end.seq + 1;
        if !is_next || (line.header.seq > self.skip && !line.follows(end)) {
            return Err(self.corrupt(end.seq + 1));
        }
        let (next, rest) = (line.end(end, text.len()), line.header.rest);
        let (seq, link) = (Seq(line.header.seq), line.header.link);
        let start = text.len() - 1 - line.stored.len();
        let attached = line.header.attached;
        let bytes = Bytes::from(text);
        let bytes = bytes.slice(start..bytes.len() - 1);
        Ok(NextLine::Line(
            ScannedRecord {
                seq,
                bytes,
                link,
                attached,
            },
            next,
            rest,
        ))
    }

    fn corrupt(&self, seq: u64) -> JournalError {
        let message = format!(
            "record {seq} in {} is not what was written",
            self.path.display()
        );
        JournalError::new(JournalErrorKind::Corrupt, message)
    }
}

/// The end of a file, from its last lines: the records are not read.
pub(super) fn tail(path: &Path) -> Result<LogEnd, JournalError> {
    let read = |error| io_error("read", path, error);
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BEGINNING),
        Err(error) => return Err(io_error("open", path, error)),
    };
    let length = file.metadata().map_err(read)?.len();
    let mut from = length.saturating_sub(TAIL);
    loop {
        file.seek(SeekFrom::Start(from)).map_err(read)?;
        let mut text = Vec::new();
        Read::by_ref(&mut file)
            .take(length - from)
            .read_to_end(&mut text)
            .map_err(read)?;
        let endless = || {
            let message = format!(
                "{} has no line in its last {} bytes",
                path.display(),
                length - from
            );
            JournalError::new(JournalErrorKind::Corrupt, message)
        };
        if text.len() > MAX_LINE && !text.contains(&b'\n') {
            return Err(endless());
        }
        // The first line is whole only at the beginning of the file, the last one never.
        let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        let torn = lines.pop().map_or(0, <[u8]>::len);
        let whole = if from == 0 {
            &lines[..]
        } else {
            lines.get(1..).unwrap_or_default()
        };
        let mut behind = length - torn as u64;
        for text in whole.iter().rev() {
            if let Some(Line { header, .. }) = Line::read(text)
                && header.rest == 0
            {
                let (changed_ms, bytes) = (header.changed_ms, header.bytes);
                return Ok(LogEnd {
                    seq: header.seq,
                    changed_ms,
                    bytes,
                    link: header.link,
                    length: behind,
                });
            }
            behind -= text.len() as u64 + 1;
        }
        if from == 0 {
            return Ok(BEGINNING);
        }
        if text.len() > MAX_LINE {
            return Err(endless());
        }
        from = from.saturating_sub((length - from).saturating_mul(3));
    }
}

/// The end after a record, searched from an earlier end, also within a batch; `None` if there is no such record.
pub(super) fn end_of(
    path: &Path,
    seq: u64,
    mut end: LogEnd,
) -> Result<Option<LogEnd>, JournalError> {
    let mut scan = Scan::open(path, end.clone(), u64::MAX)?;
    while end.seq < seq {
        let NextLine::Line(_, next, _) = scan.line(&end)? else {
            return Ok(None);
        };
        end = next;
    }
    Ok(Some(end))
}

/// The end behind the record that ends where the file has this length, and how many of its batch follow it; `None` if
/// none ends there.
pub(super) fn at(path: &Path, length: u64) -> Result<Option<(LogEnd, u64)>, JournalError> {
    let read = |error| io_error("read", path, error);
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("open", path, error)),
    };
    if file.metadata().map_err(read)?.len() < length {
        return Ok(None);
    }
    let mut window = TAIL;
    loop {
        let from = length.saturating_sub(window);
        file.seek(SeekFrom::Start(from)).map_err(read)?;
        let mut text = Vec::new();
        Read::by_ref(&mut file)
            .take(length - from)
            .read_to_end(&mut text)
            .map_err(read)?;
        if text.pop() != Some(b'\n') {
            return Ok(None);
        }
        let before = text.iter().rposition(|byte| *byte == b'\n');
        if before.is_some() || from == 0 {
            let text = &text[before.map_or(0, |before| before + 1)..];
            let begins = LogEnd {
                length: length - text.len() as u64 - 1,
                ..BEGINNING
            };
            return Ok(
                Line::read(text).map(|line| (line.end(&begins, text.len()), line.header.rest))
            );
        }
        if window > MAX_LINE as u64 {
            return Ok(None);
        }
        window = window.saturating_mul(4);
    }
}

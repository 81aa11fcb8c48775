//! Reads the lines of a file one at a time, with at most one bounded line in memory.

use std::io::{self, BufRead, BufReader, Read};

use cap_std::fs::File;

/// The number of bytes per read; the first read decides whether the file is binary.
const BUFFER: usize = 16_384;

/// The lines of a file.
#[derive(Debug)]
pub(super) struct Lines<R = File> {
    reader: BufReader<io::Take<R>>,
    keep: usize,
    number: u64,
}

/// A line of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Counted from 1.
    pub(super) number: u64,
    /// The start of the line, without its line feed.
    pub(super) bytes: Vec<u8>,
    /// The number of bytes of the line that are not stored.
    pub(super) cut: u64,
    /// True if the line contains a NUL, in its stored part or not.
    pub(super) nul: bool,
}

impl<R: Read> Lines<R> {
    /// Reads the lines of the first `limit` bytes of a file, and stores up to `keep` bytes of each.
    pub(super) fn new(file: R, limit: u64, keep: usize) -> Self {
        Self {
            reader: BufReader::with_capacity(BUFFER, file.take(limit)),
            keep,
            number: 0,
        }
    }

    /// True if the file is binary: its first read contains a NUL.
    pub(super) fn is_binary(&mut self) -> io::Result<bool> {
        Ok(self.reader.fill_buf()?.contains(&0))
    }

    /// Returns the next line; `None` at the end of the file or of the limit. A byte order mark is removed.
    pub(super) fn read(&mut self) -> io::Result<Option<Line>> {
        let mut line = Line {
            number: self.number + 1,
            bytes: Vec::new(),
            cut: 0,
            nul: false,
        };
        let mut any = false;
        loop {
            let piece = self.reader.fill_buf()?;
            if piece.is_empty() {
                break;
            }
            any = true;
            let end = piece.iter().position(|byte| *byte == b'\n');
            let used = end.unwrap_or(piece.len());
            let kept = used.min(self.keep - line.bytes.len());
            line.nul |= piece[..used].contains(&0);
            line.bytes.extend_from_slice(&piece[..kept]);
            line.cut += (used - kept) as u64;
            self.reader.consume(used + usize::from(end.is_some()));
            if end.is_some() {
                break;
            }
        }
        if !any {
            return Ok(None);
        }
        self.number = line.number;
        if line.number == 1 && line.bytes.starts_with(b"\xEF\xBB\xBF") {
            line.bytes.drain(..3);
        }
        Ok(Some(line))
    }

    /// True if the limit was reached before the file ended.
    pub(super) fn hit_limit(&self) -> bool {
        self.reader.get_ref().limit() == 0
    }
}

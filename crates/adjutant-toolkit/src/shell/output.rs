//! The output of one command: its beginning and its end in memory, the whole in a file, up to a cap.

use std::{
    collections::VecDeque,
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
};

use adjutant_llm::private;

use super::plain;

/// The number of bytes of an output for the model: half of them from its beginning, half from its end.
pub(super) const SHOWN: usize = 64 << 10;
/// The most bytes of an output that are kept on disk.
const MOST: u64 = 64 << 20;
/// The number of lines and bytes in a progress report.
const PROGRESS: (usize, usize) = (5, 2_000);

/// The output of a command so far.
#[derive(Debug)]
pub(super) struct Output {
    /// The first bytes: all of them while they fit.
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    path: PathBuf,
    /// Created when the output exceeds the limit for the model.
    file: Option<File>,
    /// Why the file does not hold the whole.
    lost: Option<String>,
}

/// Some lines of an output.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) text: String,
    /// The number of the line that comes next, if there is one.
    pub(super) next: Option<u64>,
}

impl Output {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
            path,
            file: None,
            lost: None,
        }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(SHOWN - self.head.len()));
        self.head.extend_from_slice(first);
        if rest.is_empty() {
            return;
        }
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(SHOWN / 2);
        self.tail.drain(..over);
        self.keep(rest);
    }

    /// Writes the part that does not fit into memory to the file; the first time, the content of the memory precedes
    /// it.
    fn keep(&mut self, rest: &[u8]) {
        let before = self.total - rest.len() as u64;
        if self.lost.is_some() {
            return;
        }
        let room = usize::try_from(MOST.saturating_sub(before))
            .unwrap_or(usize::MAX)
            .min(rest.len());
        let write = |file: Option<File>| -> io::Result<File> {
            let mut file = match file {
                Some(file) => file,
                None => {
                    let mut file = private::file(OpenOptions::new().create_new(true).append(true))
                        .open(&self.path)?;
                    file.write_all(&self.head)?;
                    file
                }
            };
            file.write_all(rest.get(..room).unwrap_or_default())?;
            Ok(file)
        };
        match write(self.file.take()) {
            Ok(file) => self.file = Some(file),
            Err(error) => {
                self.lost = Some(format!("it could not be kept on disk: {}", error.kind()))
            }
        }
        if room < rest.len() {
            self.lost = Some(format!(
                "only the first {} MiB are kept on disk",
                MOST >> 20
            ));
        }
    }

    /// The text for the model.
    pub(super) fn shown(&self, id: &str) -> String {
        if self.total == 0 {
            return "[no output]".to_owned();
        }
        let is_kept = self.file.is_some() || self.total as usize <= self.head.len();
        if plain::is_binary(&self.head) {
            return format!(
                "[{} bytes of binary output, which is not shown]",
                self.total
            );
        }
        if self.tail.is_empty() {
            return plain::text(&self.head).trim_end().to_owned();
        }
        // Whole lines, where there are some.
        let head = self.head.get(..SHOWN / 2).unwrap_or(&self.head);
        let head = head
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(head, |end| head.get(..=end).unwrap_or(head));
        let end: Vec<u8> = self.end(SHOWN / 2);
        let start = end
            .iter()
            .take(SHOWN / 4)
            .position(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let tail = end.get(start..).unwrap_or_default();
        let out = self.total.saturating_sub((head.len() + tail.len()) as u64);
        let cure = match (&self.lost, is_kept) {
            (Some(why), _) => format!("; {why}"),
            (None, true) => format!("; command_output reads it all under the id {id}"),
            (None, false) => String::new(),
        };
        format!(
            "{}\n[{out} bytes left out{cure}]\n{}",
            plain::text(head).trim_end(),
            plain::text(tail).trim_end()
        )
    }

    /// The last lines, for a person.
    pub(super) fn progress(&self) -> String {
        let end = self.end(PROGRESS.1);
        if plain::is_binary(&end) {
            return format!("[{} bytes of binary output]", self.total);
        }
        let text = plain::text(&end);
        let lines: Vec<&str> = text.trim_end().lines().collect();
        lines
            .get(lines.len().saturating_sub(PROGRESS.0)..)
            .unwrap_or_default()
            .join("\n")
    }

    fn end(&self, bytes: usize) -> Vec<u8> {
        let from_tail = self.tail.len().min(bytes);
        let missing = if self.tail.len() as u64 + self.head.len() as u64 == self.total {
            bytes - from_tail
        } else {
            0
        };
        let head = self
            .head
            .get(self.head.len().saturating_sub(missing)..)
            .unwrap_or_default();
        head.iter()
            .chain(self.tail.iter().skip(self.tail.len() - from_tail))
            .copied()
            .collect()
    }

    /// The complete output: in memory, or in a file.
    pub(super) fn source(&self) -> OutputSource {
        match &self.file {
            Some(_) => OutputSource::File(self.path.clone()),
            None => OutputSource::Memory(self.head.clone()),
        }
    }
}

/// The location of a complete output.
#[derive(Debug)]
pub(super) enum OutputSource {
    Memory(Vec<u8>),
    File(PathBuf),
}

impl OutputSource {
    /// Some lines, counted from 1, as many as fit in a result.
    pub(super) fn lines(&self, from: u64) -> io::Result<Lines> {
        match self {
            Self::Memory(bytes) => lines(bytes.as_slice(), from),
            Self::File(path) => lines(BufReader::new(File::open(Path::new(path))?), from),
        }
    }
}

fn lines(mut source: impl BufRead, from: u64) -> io::Result<Lines> {
    let (mut number, mut shown) = (1, Vec::new());
    loop {
        let mut line = Vec::new();
        // A line without an end is cut into several.
        if source
            .by_ref()
            .take(SHOWN as u64 / 4)
            .read_until(b'\n', &mut line)?
            == 0
        {
            let text = if plain::is_binary(&shown) {
                "[binary output]".to_owned()
            } else {
                plain::text(&shown)
            };
            return Ok(Lines {
                text: text.trim_end().to_owned(),
                next: None,
            });
        }
        if number >= from {
            if shown.len() + line.len() > SHOWN {
                let text = if plain::is_binary(&shown) {
                    "[binary output]".to_owned()
                } else {
                    plain::text(&shown)
                };
                return Ok(Lines {
                    text: text.trim_end().to_owned(),
                    next: Some(number),
                });
            }
            shown.extend_from_slice(&line);
        }
        number += 1;
    }
}

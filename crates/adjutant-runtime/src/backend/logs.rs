//! The output of an agent's process: stored in rotated files, read from the end, followed.

use std::{
    collections::VecDeque,
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    path::PathBuf,
    time::Duration,
};

use crate::{
    error::Error,
    files::{self, private, storage},
    workspace::Workspace,
};

/// The limits of stored logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLimits {
    /// The maximum size of a file before it is rotated: 1 MiB by default. A rotated file can be twice as large, because
    /// the size is checked periodically.
    pub max_bytes: u64,
    /// The number of rotated files to keep: 4 by default.
    pub kept: u32,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self {
            max_bytes: 1 << 20,
            kept: 4,
        }
    }
}

/// The polling interval of a followed log. Another process writes it, so there are no notifications.
const LOOK: Duration = Duration::from_millis(100);
/// The maximum number of bytes of a line; longer lines are returned in parts.
const MAX_LINE: u64 = 64 << 10;
/// The maximum number of lines that are read from the end.
const MAX_TAIL: usize = 100_000;

/// The logs of one agent: `logs/output.log`, and older ones as `logs/output.1.log`.
///
/// The process keeps the file open for appending, so a rotation copies and truncates it. Output in between can be lost.
#[derive(Debug, Clone)]
pub struct Logs {
    folder: PathBuf,
    limits: LogLimits,
}

/// The lines of a log, as they are written.
#[derive(Debug)]
pub struct LogLines {
    path: PathBuf,
    position: u64,
    part: Vec<u8>,
    ready: VecDeque<String>,
}

impl Logs {
    /// The logs of a workspace.
    pub fn new(workspace: &Workspace, limits: LogLimits) -> Self {
        Self {
            folder: workspace.logs(),
            limits,
        }
    }

    /// Returns the path of the current file.
    pub fn path(&self) -> PathBuf {
        self.folder.join("output.log")
    }

    fn older(&self, number: u32) -> PathBuf {
        self.folder.join(format!("output.{number}.log"))
    }

    /// Opens the file for a writer that appends.
    pub(super) fn writer(&self) -> Result<File, Error> {
        files::make_folder(&self.folder)?;
        let path = self.path();
        private(OpenOptions::new().append(true).create(true))
            .open(&path)
            .map_err(|error| storage("open", &path, error))
    }

    /// Writes a line of this program between the lines of the process.
    pub(super) fn note(&self, line: &str) {
        // Errors are ignored: a log that cannot be written must not delay anything.
        if let Ok(mut file) = self.writer() {
            let _written = writeln!(file, "{line}");
        }
    }

    /// Rotates the file if it is large enough, and deletes the oldest. Blocks; the supervisor calls it periodically.
    ///
    /// # Errors
    /// `Storage` if a file cannot be moved or written.
    pub fn rotate(&self) -> Result<(), Error> {
        let path = self.path();
        let bytes = match fs::metadata(&path) {
            Ok(found) => found.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(storage("read", &path, error)),
        };
        if bytes <= self.limits.max_bytes {
            return Ok(());
        }
        for number in (1..self.limits.kept).rev() {
            let (from, to) = (self.older(number), self.older(number + 1));
            match fs::rename(&from, &to) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(storage("move", &from, error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        if self.limits.kept > 0 {
            self.put_aside(bytes)
                .map_err(|error| storage("write", &self.older(1), error))?;
        }
        let empty = private(OpenOptions::new().write(true))
            .open(&path)
            .and_then(|file| file.set_len(0));
        empty.map_err(|error| storage("empty", &path, error))
    }

    /// Copies the file; only the latest complete lines if it is more than twice as large as permitted.
    fn put_aside(&self, bytes: u64) -> io::Result<()> {
        let most = self.limits.max_bytes.saturating_mul(2);
        let mut from = BufReader::new(files::open_regular(&self.path()).map_err(io::Error::other)?);
        let skipped = bytes.saturating_sub(most);
        from.seek(SeekFrom::Start(skipped))?;
        if skipped > 0 {
            (&mut from)
                .take(MAX_LINE)
                .read_until(b'\n', &mut Vec::new())?;
        }
        let mut to = private(OpenOptions::new().write(true).create(true).truncate(true))
            .open(self.older(1))?;
        io::copy(&mut from.take(most), &mut to)?;
        Ok(())
    }

    /// Returns the last lines, oldest first. Blocks.
    ///
    /// # Errors
    /// `Storage` if a file cannot be read.
    pub fn tail(&self, lines: usize) -> Result<Vec<String>, Error> {
        self.tail_at(lines).map(|(lines, _)| lines)
    }

    /// Returns the last lines, and then each new line.
    ///
    /// # Errors
    /// `Storage` if a file cannot be read.
    pub fn follow(&self, lines: usize) -> Result<LogLines, Error> {
        let (ready, position) = self.tail_at(lines)?;
        Ok(LogLines {
            path: self.path(),
            position,
            part: Vec::new(),
            ready: ready.into(),
        })
    }

    /// Returns the last lines, and the position up to which the latest file was read.
    fn tail_at(&self, lines: usize) -> Result<(Vec<String>, u64), Error> {
        let (lines, mut held, mut end) = (lines.min(MAX_TAIL), VecDeque::new(), 0);
        let files = (1..=self.limits.kept)
            .rev()
            .map(|number| self.older(number))
            .chain([self.path()]);
        for path in files {
            let file = match File::open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(storage("read", &path, error)),
            };
            let mut reader = BufReader::new(file);
            end = 0;
            loop {
                let mut line = Vec::new();
                let read = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line);
                let read = read.map_err(|error| storage("read", &path, error))?;
                if read == 0 {
                    break;
                }
                end += read as u64;
                held.push_back(text_of(&line));
                if held.len() > lines {
                    held.pop_front();
                }
            }
        }
        Ok((held.into(), end))
    }
}

impl LogLines {
    /// Waits for the next line.
    ///
    /// Cancel: nothing is lost.
    ///
    /// # Errors
    /// `Storage` if the file cannot be read.
    pub async fn next(&mut self) -> Result<String, Error> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Ok(line);
            }
            self.read()?;
            if self.ready.is_empty() {
                tokio::time::sleep(LOOK).await;
            }
        }
    }

    /// Reads the new output.
    fn read(&mut self) -> Result<(), Error> {
        let failed = |error| storage("read", &self.path, error);
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        let bytes = file.metadata().map_err(failed)?.len();
        if bytes < self.position {
            // It was rotated, so reading starts again.
            self.position = 0;
        }
        file.seek(SeekFrom::Start(self.position)).map_err(failed)?;
        let mut chunk = Vec::new();
        let read = file
            .take(MAX_LINE)
            .read_to_end(&mut chunk)
            .map_err(failed)?;
        self.position += read as u64;
        self.part.extend(chunk);
        while let Some(end) = self.part.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.part.drain(..=end).collect();
            self.ready.push_back(text_of(&line));
        }
        if self.part.len() as u64 >= MAX_LINE {
            let line = std::mem::take(&mut self.part);
            self.ready.push_back(text_of(&line));
        }
        Ok(())
    }
}

fn text_of(line: &[u8]) -> String {
    String::from_utf8_lossy(line)
        .trim_end_matches(['\n', '\r'])
        .to_owned()
}

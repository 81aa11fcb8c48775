//! The part of a text file in one result: numbered lines, bounded, with a note on how to continue.

use std::{fmt::Write, io::Read};

use adjutant_llm::CallResult;
use adjutant_tool::{Cancel, ToolError};
use serde_json::json;

use super::{
    encoding::Encoding,
    lines::{Line, Lines},
    show, work,
};

/// The maximum number of bytes of text in one result.
const MAX_BYTES: usize = 65_536;
/// The maximum number of bytes of a line in the result.
const MAX_LINE: usize = 2_000;
/// The maximum number of bytes of a file that are read to find the requested lines.
const MAX_SCAN: u64 = 268_435_456;

/// The excerpt of a file.
pub(super) struct FileExcerpt<'a> {
    path: &'a str,
    size: u64,
    first: u64,
    last: u64,
    text: String,
    shown: u64,
    lines_cut: u64,
    /// The name of the encoding after a comma, unless it is UTF-8.
    encoding: String,
}

impl<'a> FileExcerpt<'a> {
    pub(super) fn new(path: &'a str, size: u64, first: u64, last: u64) -> Self {
        Self {
            path,
            size,
            first,
            last,
            text: String::new(),
            shown: 0,
            lines_cut: 0,
            encoding: String::new(),
        }
    }

    /// Names the encoding of the file.
    pub(super) fn encoded(mut self, encoding: Encoding) -> Self {
        if !encoding.is_utf8() {
            self.encoding = format!(", {}", encoding.name());
        }
        self
    }

    /// Adds lines until the last requested one, or until the excerpt is full.
    pub(super) fn take(mut self, file: impl Read, stop: &Cancel) -> Result<CallResult, ToolError> {
        let mut lines = Lines::new(file, MAX_SCAN, MAX_LINE);
        let failed = |error: std::io::Error| {
            ToolError::failed(format!(
                "cannot read {}: {}",
                show::quoted(self.path),
                error.kind()
            ))
        };
        if lines.is_binary().map_err(failed)? {
            return Err(self.binary());
        }
        let (mut total, mut more) = (0, None);
        while let Some(line) = lines.read().map_err(failed)? {
            work::go_on(stop)?;
            if line.number >= self.first && (line.number > self.last || !self.show(&line)?) {
                more = Some(line.number);
                break;
            }
            total = line.number;
        }
        let hit_limit = more.is_none() && lines.hit_limit();
        self.finish(total, more, hit_limit)
    }

    /// Adds a line; false if the result is full.
    fn show(&mut self, line: &Line) -> Result<bool, ToolError> {
        let bytes = line.bytes.strip_suffix(b"\r").unwrap_or(&line.bytes);
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            // The line may have been cut within a character.
            Err(error) if line.cut > 0 && error.error_len().is_none() => {
                std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
            }
            Err(_) => return Err(self.binary()),
        };
        if line.nul {
            return Err(self.binary());
        }
        if self.shown > 0 && self.text.len() + text.len() > MAX_BYTES {
            return Ok(false);
        }
        // Writing to a string does not fail.
        let _ = write!(self.text, "{:>6}\t{text}", line.number);
        if line.cut > 0 {
            let _ = write!(self.text, " [+{} of this line]", show::size(line.cut));
            self.lines_cut += 1;
        }
        self.text.push('\n');
        self.shown += 1;
        Ok(true)
    }

    fn finish(
        mut self,
        total: u64,
        more: Option<u64>,
        hit_limit: bool,
    ) -> Result<CallResult, ToolError> {
        let size = format!("{}{}", show::size(self.size), self.encoding);
        let path = show::quoted(self.path);
        if self.shown == 0 && hit_limit {
            let message = format!(
                "line {} of {path} is beyond the first {}",
                self.first,
                show::size(MAX_SCAN)
            );
            return Err(ToolError::failed(message));
        }
        if self.shown == 0 && self.first > 1 {
            let message = format!("{path} has only {}", show::count(total, "line", "lines"));
            return Err(ToolError::failed(message));
        }
        let (first, last) = (self.first, self.first + self.shown.saturating_sub(1));
        let footer = match more {
            _ if self.shown == 0 => format!("[{path} is empty]"),
            Some(next) => format!(
                "[lines {first}-{last} of a file of {size}; read on with start_line={next}]"
            ),
            None if hit_limit => {
                format!("[lines {first}-{last} of a file of {size}; what follows is too far in]")
            }
            None => format!("[lines {first}-{last} of {total}, {size}]"),
        };
        self.text += &footer;
        let details = json!({
            "size": self.size, "first_line": first, "lines": self.shown, "lines_cut": self.lines_cut,
            "truncated": more.is_some_and(|next| next <= self.last) || hit_limit,
        });
        Ok(CallResult {
            details,
            ..CallResult::ok(self.text)
        })
    }

    fn binary(&self) -> ToolError {
        let size = show::size(self.size);
        ToolError::failed(format!(
            "{} is a binary file of {size}, not UTF-8 text",
            show::quoted(self.path)
        ))
    }
}

//! The matches of a search so far, as text for the model, with limits for matches, bytes and work.

use std::{fmt::Write, path::Path};

use adjutant_llm::CallResult;
use serde_json::json;

use super::{
    grep::{FileHits, FoundLine, LineKind, MAX_BYTES},
    show,
};

/// The maximum number of bytes of files that one call searches.
const MAX_SCAN: u64 = 1_073_741_824;

/// The matches that a search found so far.
#[derive(Debug, Default)]
pub(super) struct Hits {
    context: usize,
    limit: u64,
    text: String,
    matches: u64,
    files_with: u64,
    files: u64,
    skipped: u64,
    partly: u64,
    scanned: u64,
    full: bool,
}

impl Hits {
    pub(super) fn new(context: usize, limit: u64) -> Self {
        Self {
            context,
            limit,
            ..Self::default()
        }
    }

    /// True if a limit was exceeded: there are more matches than fit.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// True if this amount alone, independent of earlier matches, exceeds a limit.
    pub(super) fn is_enough(&self, matches: u64, bytes: usize) -> bool {
        matches > self.limit || bytes > MAX_BYTES
    }

    /// Adds the matches of a file; `None` if it is binary or unreadable. Beyond a limit, nothing is added.
    pub(super) fn add(&mut self, path: &Path, found: Option<FileHits>) {
        if self.full {
            return;
        }
        let Some(found) = found else {
            self.skipped += 1;
            return;
        };
        self.files += 1;
        self.partly += u64::from(found.partly);
        self.scanned = self.scanned.saturating_add(found.scanned);
        if !found.lines.is_empty() {
            let before = self.matches;
            self.lines(&show::path(path), &found.lines);
            self.files_with += u64::from(self.matches > before);
        }
        self.full |= found.cut || self.text.len() > MAX_BYTES || self.scanned > MAX_SCAN;
    }

    fn lines(&mut self, path: &str, lines: &[FoundLine]) {
        let (mut lead, mut shown) = (Vec::new(), None);
        for line in lines {
            match line.kind {
                LineKind::Before => lead.push(line),
                LineKind::After => self.show(path, &mut shown, line),
                LineKind::Hit
                    if self.matches == self.limit
                        || self.text.len() + line.text.len() > MAX_BYTES =>
                {
                    self.full = true;
                    return;
                }
                LineKind::Hit => {
                    self.matches += 1;
                    lead.drain(..)
                        .for_each(|line| self.show(path, &mut shown, line));
                    self.show(path, &mut shown, line);
                }
            }
        }
    }

    fn show(&mut self, path: &str, shown: &mut Option<u64>, line: &FoundLine) {
        let follows = shown.is_some_and(|last| last + 1 == line.number);
        if self.context > 0 && !follows && !self.text.is_empty() {
            self.text.push_str("--\n");
        }
        *shown = Some(line.number);
        let mark = if line.kind == LineKind::Hit { ':' } else { '-' };
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{path}{mark}{}{mark} {}", line.number, line.text);
    }

    /// The result of the search.
    pub(super) fn finish(mut self, pattern: &str, incomplete: bool) -> CallResult {
        let files = show::count(self.files, "file", "files");
        self.text += &if self.matches == 0 && !self.full {
            format!("[no match for {} in {files}", show::quoted(pattern))
        } else {
            let lines = show::count(self.matches, "matching line", "matching lines");
            format!("[{lines} in {} of {files}", self.files_with)
        };
        if self.full {
            self.text +=
                "; stopped at a limit, there may be more: narrow the pattern, the path or the glob";
        }
        if incomplete {
            self.text += "; the folder is too large to be walked whole";
        }
        if self.skipped > 0 {
            self.text += &format!("; {} binary or unreadable, not searched", self.skipped);
        }
        if self.partly > 0 {
            self.text += &format!("; {} searched only at their beginning", self.partly);
        }
        self.text += "]";
        let details = json!({
            "matches": self.matches, "files_with_matches": self.files_with, "files_searched": self.files,
            "files_skipped": self.skipped, "truncated": self.full || incomplete || self.partly > 0,
        });
        CallResult {
            details,
            ..CallResult::ok(self.text)
        }
    }
}

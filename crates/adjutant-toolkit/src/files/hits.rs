//! The matches that a search found so far, as the text that the model is shown: bounded in matches, bytes and work.

use std::{collections::VecDeque, fmt::Write, path::Path};

use adjutant_llm::CallResult;
use adjutant_tool::{Cancel, ToolError};
use cap_std::fs::File;
use regex::bytes::{Match, Regex};
use serde_json::json;

use super::{
    lines::{Line, Lines},
    show, work,
};

/// The largest number of bytes of text that one call shows.
const MAX_BYTES: usize = 65_536;
/// The largest number of bytes of one line that are searched.
const MAX_LINE: usize = 65_536;
/// The largest number of bytes of one line that are shown.
const MAX_SHOWN: usize = 300;
/// The number of bytes that are shown before a match that stands far into its line.
const LEAD: usize = 80;
/// The largest number of bytes of one file that are searched.
const MAX_FILE: u64 = 67_108_864;
/// The largest number of bytes of lines that one call searches.
const MAX_SCAN: u64 = 1_073_741_824;

/// The matches that a search found so far.
#[derive(Debug)]
pub(super) struct Hits {
    regex: Regex,
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

/// The progress of the search of one file.
struct FileSearch {
    path: String,
    before: VecDeque<(u64, String)>,
    /// The number of lines after the last match that are still to be shown.
    after: usize,
    /// The last line that was shown.
    shown: Option<u64>,
}

impl Hits {
    pub(super) fn new(regex: Regex, context: usize, limit: u64) -> Self {
        Self {
            regex,
            context,
            limit,
            text: String::new(),
            matches: 0,
            files_with: 0,
            files: 0,
            skipped: 0,
            partly: 0,
            scanned: 0,
            full: false,
        }
    }

    /// True if a limit was passed: there is more than can be shown.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// Counts a file that was not searched.
    pub(super) fn pass_over(&mut self) {
        self.skipped += 1;
    }

    /// Searches a file; one that is binary, or cannot be read, is passed over.
    pub(super) fn search(&mut self, path: &Path, file: File, stop: &Cancel) -> Result<(), ToolError> {
        let mut lines = Lines::new(file, MAX_FILE, MAX_LINE);
        if lines.is_binary().unwrap_or(true) {
            self.pass_over();
            return Ok(());
        }
        self.files += 1;
        let before = self.matches;
        let mut place = FileSearch { path: show::path(path), before: VecDeque::new(), after: 0, shown: None };
        while let Ok(Some(line)) = lines.read() {
            work::go_on(stop)?;
            self.scanned = self.scanned.saturating_add(line.bytes.len() as u64 + line.cut + 1);
            self.full |= self.scanned > MAX_SCAN;
            if line.nul || self.full {
                break;
            }
            self.line(&mut place, &line);
        }
        self.partly += u64::from(lines.hit_limit());
        self.files_with += u64::from(self.matches > before);
        Ok(())
    }

    fn line(&mut self, place: &mut FileSearch, line: &Line) {
        let hit = self.regex.find(&line.bytes);
        if let Some(hit) = hit {
            let shown = around(&line.bytes, line.cut, &hit);
            if self.matches == self.limit || self.text.len() + shown.len() > MAX_BYTES {
                self.full = true;
                return;
            }
            self.matches += 1;
            for (number, text) in std::mem::take(&mut place.before) {
                self.show(place, number, '-', &text);
            }
            self.show(place, line.number, ':', &shown);
            place.after = self.context;
        } else if place.after > 0 {
            place.after -= 1;
            self.show(place, line.number, '-', &start(line));
        } else if self.context > 0 {
            if place.before.len() == self.context {
                place.before.pop_front();
            }
            place.before.push_back((line.number, start(line)));
        }
    }

    fn show(&mut self, place: &mut FileSearch, number: u64, mark: char, text: &str) {
        let follows = place.shown.is_some_and(|last| last + 1 == number);
        if self.context > 0 && !follows && !self.text.is_empty() {
            self.text.push_str("--\n");
        }
        place.shown = Some(number);
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{}{mark}{number}{mark} {text}", place.path);
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
            self.text += "; stopped at a limit, there may be more: narrow the pattern, the path or the glob";
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
        CallResult { details, ..CallResult::ok(self.text) }
    }
}

/// The part of a line around a match.
fn around(bytes: &[u8], cut: u64, hit: &Match<'_>) -> String {
    let whole = show::line(bytes);
    if whole.len() <= MAX_SHOWN && cut == 0 {
        return whole;
    }
    // Offsets count the bytes of the file; what is no UTF-8 grows when shown, so the place is approximate there.
    let lead = if hit.end() <= MAX_SHOWN { 0 } else { show::floor(&whole, hit.start().saturating_sub(LEAD)) };
    let end = show::floor(&whole, lead + MAX_SHOWN);
    let rest = (whole.len() - end) as u64 + cut;
    let dots = if lead > 0 { "…" } else { "" };
    let more = if rest > 0 { format!(" [+{}]", show::size(rest)) } else { String::new() };
    format!("{dots}{}{more}", &whole[lead..end])
}

fn start(line: &Line) -> String {
    let whole = show::line(&line.bytes);
    let end = show::floor(&whole, MAX_SHOWN);
    let rest = (whole.len() - end) as u64 + line.cut;
    if rest == 0 { whole } else { format!("{} [+{}]", &whole[..end], show::size(rest)) }
}

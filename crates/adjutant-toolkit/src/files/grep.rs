//! The search of one file: the matching lines, and their excerpts.

use std::io::{self, Read};

use adjutant_tool::{Cancel, ToolError, ToolErrorKind};
use cap_std::fs::File;
use grep_matcher::{LineTerminator, Match, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};

use super::show;

/// The maximum size of a compiled pattern, in bytes.
const MAX_PATTERN: usize = 1_048_576;
/// The maximum number of bytes of one file that are searched.
const MAX_FILE: u64 = 67_108_864;
/// The maximum number of bytes of a line. The search of a file stops at a longer line.
const MAX_LINE: usize = 8_388_608;
/// The number of bytes at the start of a file in which a NUL marks it as binary.
const HEAD: u64 = 16_384;
/// The maximum number of bytes of text in one result.
pub(super) const MAX_BYTES: usize = 65_536;
/// The maximum number of bytes of a line in the result.
const MAX_SHOWN: usize = 300;
/// The number of bytes that are kept before a match far into its line.
const LEAD: usize = 80;

/// The search for one pattern in one file after another; each thread has its own.
#[derive(Debug, Clone)]
pub(super) struct Grep {
    matcher: RegexMatcher,
    searcher: Searcher,
    limit: u64,
}

/// The lines of a file for the result.
#[derive(Debug, Default)]
pub(super) struct FileHits {
    pub(super) lines: Vec<FoundLine>,
    pub(super) matches: u64,
    /// The number of bytes of the lines.
    pub(super) bytes: usize,
    /// True if there are more lines than fit into one result.
    pub(super) cut: bool,
    /// The number of bytes that were searched.
    pub(super) scanned: u64,
    /// True if only the start of the file was searched.
    pub(super) partly: bool,
}

/// A matching line, or one next to it.
#[derive(Debug)]
pub(super) struct FoundLine {
    /// Counted from 1.
    pub(super) number: u64,
    pub(super) text: String,
    pub(super) kind: LineKind,
}

/// The reason why a line is included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    /// It precedes the next matching line.
    Before,
    /// It matches.
    Hit,
    /// It follows a matching line.
    After,
}

impl Grep {
    /// Creates a search with this number of context lines. It stops in a file one match after the limit.
    ///
    /// # Errors
    /// `InvalidArguments` if the pattern is not a valid regular expression, or is too large.
    pub(super) fn new(
        pattern: &str,
        ignore_case: bool,
        context: usize,
        limit: u64,
    ) -> Result<Self, ToolError> {
        let mut builder = RegexMatcherBuilder::new();
        builder
            .case_insensitive(ignore_case)
            .size_limit(MAX_PATTERN)
            .multi_line(true)
            .crlf(true);
        let matcher = builder.build(pattern).map_err(|error| {
            let message = format!("not a regular expression: {error}");
            ToolError::new(ToolErrorKind::InvalidArguments, message)
        })?;
        let mut builder = SearcherBuilder::new();
        builder
            .line_terminator(LineTerminator::crlf())
            .binary_detection(BinaryDetection::convert(0));
        builder
            .before_context(context)
            .after_context(context)
            .heap_limit(Some(MAX_LINE));
        Ok(Self {
            matcher,
            searcher: builder.build(),
            limit,
        })
    }

    /// Searches a file; `None` if it is binary, or cannot be read.
    ///
    /// # Errors
    /// `Cancelled` after a stop request.
    pub(super) fn search(
        &mut self,
        file: File,
        stop: &Cancel,
    ) -> Result<Option<FileHits>, ToolError> {
        let mut lines = MatchedLines {
            matcher: &self.matcher,
            limit: self.limit,
            found: FileHits::default(),
            nul: None,
        };
        let mut bytes = Stoppable {
            bytes: file.take(MAX_FILE),
            stop,
        };
        let searched = self
            .searcher
            .search_reader(&self.matcher, &mut bytes, &mut lines);
        super::work::go_on(stop)?;
        let (read, hit_limit) = (MAX_FILE - bytes.bytes.limit(), bytes.bytes.limit() == 0);
        let (mut found, nul) = (lines.found, lines.nul);
        if nul.is_some_and(|at| at < HEAD) || (searched.is_err() && read == 0) {
            return Ok(None);
        }
        found.scanned = read;
        found.partly = searched.is_err() || hit_limit;
        Ok(Some(found))
    }
}

/// The bytes of a file, until a stop request.
struct Stoppable<'a> {
    bytes: io::Take<File>,
    stop: &'a Cancel,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.stop.is_cancelled() {
            true => Err(io::Error::other("stopped")),
            false => self.bytes.read(into),
        }
    }
}

/// Collects the lines that a search finds.
struct MatchedLines<'a> {
    matcher: &'a RegexMatcher,
    limit: u64,
    found: FileHits,
    /// The position of the first NUL.
    nul: Option<u64>,
}

impl MatchedLines<'_> {
    /// True if a line contains or follows the first NUL: the content there is not text.
    fn is_behind_nul(&self, at: u64, line: &[u8]) -> bool {
        self.nul.is_some_and(|nul| at + line.len() as u64 > nul)
    }

    /// Adds a line; false if the result is full.
    fn add(&mut self, number: Option<u64>, text: String, kind: LineKind) -> bool {
        self.found.bytes += text.len();
        self.found.matches += u64::from(kind == LineKind::Hit);
        self.found.lines.push(FoundLine {
            number: number.unwrap_or_default(),
            text,
            kind,
        });
        self.found.cut = self.found.bytes > MAX_BYTES || self.found.matches > self.limit;
        !self.found.cut
    }
}

impl Sink for MatchedLines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.is_behind_nul(found.absolute_byte_offset(), found.bytes()) {
            return Ok(false);
        }
        let line = trimmed(found.bytes());
        let hit = self
            .matcher
            .find(line)
            .ok()
            .flatten()
            .unwrap_or_else(|| Match::zero(0));
        Ok(self.add(found.line_number(), around(line, hit), LineKind::Hit))
    }

    fn context(&mut self, _: &Searcher, beside: &SinkContext<'_>) -> io::Result<bool> {
        if self.is_behind_nul(beside.absolute_byte_offset(), beside.bytes()) {
            return Ok(false);
        }
        let kind = if *beside.kind() == SinkContextKind::Before {
            LineKind::Before
        } else {
            LineKind::After
        };
        Ok(self.add(
            beside.line_number(),
            around(trimmed(beside.bytes()), Match::zero(0)),
            kind,
        ))
    }

    fn binary_data(&mut self, _: &Searcher, at: u64) -> io::Result<bool> {
        let first = *self.nul.get_or_insert(at);
        Ok(first >= HEAD)
    }
}

fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Returns the part of a line around a match.
fn around(line: &[u8], hit: Match) -> String {
    if line.len() <= MAX_SHOWN {
        return show::line(line);
    }
    let lead = if hit.end() <= MAX_SHOWN {
        0
    } else {
        floor(line, hit.start().saturating_sub(LEAD))
    };
    let end = floor(line, lead + MAX_SHOWN);
    let rest = (line.len() - end) as u64;
    let dots = if lead > 0 { "…" } else { "" };
    let more = if rest > 0 {
        format!(" [+{}]", show::size(rest))
    } else {
        String::new()
    };
    format!("{dots}{}{more}", show::line(&line[lead..end]))
}

/// Returns the largest character boundary at or before `at`; approximate for invalid UTF-8.
fn floor(line: &[u8], at: usize) -> usize {
    let at = at.min(line.len());
    let begins = |place: &usize| {
        line.get(*place)
            .is_none_or(|byte| byte & 0b1100_0000 != 0b1000_0000)
    };
    (at.saturating_sub(3)..=at).rev().find(begins).unwrap_or(at)
}

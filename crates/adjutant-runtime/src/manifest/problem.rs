//! The errors and warnings of a manifest, with their positions.

use std::{fmt, sync::Arc};

use super::node::Mark;
use crate::{Error, ErrorKind};

/// The maximum number of reported problems.
const MAX_PROBLEMS: usize = 50;
/// The maximum number of characters of quoted text in a message.
const MAX_REPEATED: usize = 80;

/// An error or a warning of a manifest.
///
/// Format: `file:line:column: message; hint: hint`, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The file, as it was named.
    pub file: Arc<str>,
    /// The line, from 1; 0 if it is about the whole file.
    pub line: u32,
    /// The column, from 1, in characters; 0 if it is about the whole file.
    pub column: u32,
    /// The message.
    pub message: String,
    /// A hint.
    pub hint: Option<String>,
}

/// The errors of a manifest, sorted by position.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems {
    list: Vec<Problem>,
    untold: usize,
}

impl Problem {
    pub(super) fn new(mark: &Mark, message: impl Into<String>) -> Self {
        let file = Arc::clone(&mark.source.shown);
        Self {
            file,
            line: mark.line,
            column: mark.column,
            message: message.into(),
            hint: None,
        }
    }

    pub(super) fn in_file(file: impl Into<Arc<str>>, message: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            line: 0,
            column: 0,
            message: message.into(),
            hint: None,
        }
    }

    #[must_use]
    pub(super) fn hint(mut self, hint: impl Into<Option<String>>) -> Self {
        self.hint = self.hint.or(hint.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        write!(f, ": {}", self.message)?;
        self.hint
            .as_ref()
            .map_or(Ok(()), |hint| write!(f, "; hint: {hint}"))
    }
}

impl Problems {
    /// Returns the errors, at most fifty.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Problem> {
        self.list.iter()
    }

    /// Returns the number of errors beyond the maximum.
    pub fn untold(&self) -> usize {
        self.untold
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.list.len() >= MAX_PROBLEMS
    }

    pub(super) fn push(&mut self, problem: Problem) {
        if self.is_full() {
            self.untold += 1;
        } else if !self.list.contains(&problem) {
            self.list.push(problem);
        }
    }

    /// Adds an error at a position.
    pub(super) fn tell(&mut self, mark: &Mark, message: impl Into<String>) {
        self.push(Problem::new(mark, message));
    }

    /// Sorts the errors by position.
    pub(super) fn sorted(mut self) -> Self {
        self.list.sort_by(|one, other| {
            (&one.file, one.line, one.column).cmp(&(&other.file, other.line, other.column))
        });
        self
    }

    pub(super) fn into_list(self) -> Vec<Problem> {
        self.list
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self {
            list: vec![problem],
            untold: 0,
        }
    }
}

impl fmt::Display for Problems {
    /// Writes one error per line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.list.iter().map(Problem::to_string).collect();
        f.write_str(&lines.join("\n"))?;
        if self.untold > 0 {
            write!(f, "\nand {} more", self.untold)
        } else {
            Ok(())
        }
    }
}

impl std::error::Error for Problems {}

impl From<Problems> for Error {
    fn from(problems: Problems) -> Self {
        Self::new(ErrorKind::Manifest, problems.to_string())
    }
}

/// Quotes a text for a message, in one line and truncated.
pub(super) fn quoted(text: &str) -> String {
    let cut: String = text.chars().take(MAX_REPEATED).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("{:?}{more}", cut)
}

//! The colors and widths of a conversation, as the terminal supports them.

use std::env;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The default width.
const USUAL_WIDTH: usize = 80;
/// The maximum width of lines, for readability.
const MAX_WIDTH: usize = 100;

/// The style of text on this terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    is_coloured: bool,
    /// The width, if it differs from the terminal's.
    width: Option<usize>,
}

impl Style {
    /// Returns the style for the environment: no colors if `NO_COLOR` is set.
    pub(crate) fn from_env() -> Self {
        Self {
            is_coloured: env::var_os("NO_COLOR").is_none_or(|it| it.is_empty()),
            width: None,
        }
    }

    #[cfg(test)]
    pub(crate) fn test(is_coloured: bool, width: usize) -> Self {
        Self {
            is_coloured,
            width: Some(width),
        }
    }

    /// True if text is colored.
    pub(crate) fn is_coloured(self) -> bool {
        self.is_coloured
    }

    /// The number of columns of a line.
    pub(crate) fn width(self) -> usize {
        let columns = || {
            console::Term::stdout()
                .size_checked()
                .map(|(_, columns)| usize::from(columns))
        };
        self.width
            .or_else(columns)
            .filter(|it| *it > 0)
            .unwrap_or(USUAL_WIDTH)
            .clamp(10, MAX_WIDTH)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.sgr("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.sgr("2", text)
    }

    pub(crate) fn code(self, text: &str) -> String {
        self.sgr("36", text)
    }

    pub(crate) fn added(self, text: &str) -> String {
        self.sgr("32", text)
    }

    pub(crate) fn removed(self, text: &str) -> String {
        self.sgr("31", text)
    }

    pub(crate) fn asks(self, text: &str) -> String {
        self.sgr("1;33", text)
    }

    /// Returns a text with these attributes; the text must be sanitized.
    pub(crate) fn sgr(self, marks: &str, text: &str) -> String {
        if !self.is_coloured || text.is_empty() || marks.is_empty() {
            return text.to_owned();
        }
        format!("\x1b[{marks}m{text}\x1b[0m")
    }
}

/// Returns the number of columns of a text.
pub(crate) fn width_of(text: &str) -> usize {
    text.width()
}

/// Returns the number of columns of a character.
pub(crate) fn width_of_char(character: char) -> usize {
    if character == '\t' {
        4
    } else {
        character.width().unwrap_or_default()
    }
}

/// Truncates a text to this number of columns.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width_of(text) <= columns {
        return text.to_owned();
    }
    let (mut used, mut short) = (1, String::new());
    for character in text.chars() {
        used += width_of_char(character);
        if used > columns {
            break;
        }
        short.push(character);
    }
    short + "…"
}

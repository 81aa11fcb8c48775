//! Formats names, sizes and long lines for a model.

use std::{fmt::Write, path::Path};

/// The maximum number of characters of a requested path that an error repeats.
const MAX_ECHO: usize = 200;

/// A path on one line: separated by slashes, with control characters escaped and invalid UTF-8 replaced.
pub(crate) fn path(path: &Path) -> String {
    let parts: Vec<String> = path
        .components()
        .map(|part| plain(&part.as_os_str().to_string_lossy()))
        .collect();
    if parts.is_empty() {
        ".".to_owned()
    } else {
        parts.join("/")
    }
}

/// Formats a text of the model in backticks, on one line, truncated.
pub(crate) fn quoted(text: &str) -> String {
    let text = if text.is_empty() { "." } else { text };
    let cut: String = text.chars().take(MAX_ECHO).collect();
    let dots = if cut.len() < text.len() { "…" } else { "" };
    format!("`{}{dots}`", plain(&cut))
}

/// A size, for example `312 B`, `1.2 KB` or `3.4 MB`; a kilobyte has 1,024 bytes.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    if bytes < 1_024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1_024.0;
    let mut unit = 0;
    while value >= 1_023.95 && unit + 1 < UNITS.len() {
        value /= 1_024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A number with its noun, for example `1 file` or `3 files`.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Decodes the bytes of a line: invalid UTF-8 is replaced, a carriage return at the end removed.
pub(crate) fn line(bytes: &[u8]) -> String {
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the largest character boundary at or before `at`.
pub(crate) fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            // Writing to a string does not fail.
            let _ = write!(shown, "{}", character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_changes_its_unit_when_it_would_show_1024() {
        let shown = [0, 1_023, 1_024, 1_048_570, 1_048_576, u64::MAX].map(size);
        assert_eq!(
            shown,
            [
                "0 B",
                "1023 B",
                "1.0 KB",
                "1.0 MB",
                "1.0 MB",
                "16777216.0 TB"
            ]
        );
    }

    #[test]
    fn quoted_stays_on_one_line_when_the_text_has_control_characters() {
        assert_eq!(quoted("a\nb\u{1b}[31m"), "`a\\nb\\u{1b}[31m`");
        assert_eq!(quoted(""), "`.`");
        assert_eq!(quoted(&"x".repeat(300)), format!("`{}…`", "x".repeat(200)));
    }
}

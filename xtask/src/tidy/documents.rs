//! README and ARCHITECTURE: there, short, and the second with its invariants marked.

use std::fs;

use crate::cargo;

/// Document, lines at most, marks at least.
const DOCUMENTS: &[(&str, usize, usize)] = &[("README.md", 150, 0), ("ARCHITECTURE.md", 250, 10)];

pub(super) fn lengths() -> Vec<String> {
    let mut messages = Vec::new();
    for (name, most, least) in DOCUMENTS {
        match fs::read_to_string(cargo::root().join(name)) {
            Ok(text) => messages.extend(length(name, &text, *most, *least)),
            Err(error) => messages.push(format!("{name}:1: {error}")),
        }
    }
    messages
}

fn length(name: &str, text: &str, most: usize, least: usize) -> Option<String> {
    let marks = ["**Invariant:**", "**API boundary:**"].map(|mark| text.matches(mark).count());
    let (lines, marks) = (text.lines().count(), marks.iter().sum::<usize>());
    let what = format!("{name}:1: {lines} lines (limit {most}), {marks} marks (at least {least})");
    (lines > most || marks < least).then_some(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_is_reported_when_too_long_or_without_marks() {
        let text = "**Invariant:** a\n**API boundary:** b\n";
        assert_eq!(length("A.md", text, 2, 2), None);
        let long = "A.md:1: 2 lines (limit 1), 2 marks (at least 0)";
        assert_eq!(length("A.md", text, 1, 0).as_deref(), Some(long));
        let unmarked = "A.md:1: 2 lines (limit 2), 2 marks (at least 3)";
        assert_eq!(length("A.md", text, 2, 3).as_deref(), Some(unmarked));
    }
}

//! README and ARCHITECTURE: there, short, and the second with its invariants marked.

use std::fs;
use std::path::Path;

/// Document, lines at most, marks at least.
const DOCUMENTS: &[(&str, usize, usize)] = &[("README.md", 150, 0), ("ARCHITECTURE.md", 250, 10)];
const MARKS: &[&str] = &["**Invariant:**", "**API boundary:**"];

pub(super) fn lengths(root: &Path) -> Vec<String> {
    let mut messages = Vec::new();
    for (name, most, least) in DOCUMENTS {
        let text = match fs::read_to_string(root.join(name)) {
            Ok(text) => text,
            Err(error) => {
                messages.push(format!("{name}:1: {error}"));
                continue;
            }
        };
        let lines = text.lines().count();
        if lines > *most {
            messages.push(format!("{name}:{lines}: {lines} lines (limit {most})"));
        }
        let marks: usize = MARKS.iter().map(|mark| text.matches(mark).count()).sum();
        if marks < *least {
            messages.push(format!(
                "{name}:1: {marks} marks {} (at least {least})",
                MARKS.join(" or ")
            ));
        }
    }
    messages
}

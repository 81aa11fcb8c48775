//! README and ARCHITECTURE exist, and ARCHITECTURE marks its invariants.

use std::fs;

use crate::cargo;

/// Document, minimum number of marked invariants and boundaries.
const DOCUMENTS: &[(&str, usize)] = &[("README.md", 0), ("ARCHITECTURE.md", 10)];

pub(super) fn marks() -> Vec<String> {
    let check = |(name, least): &(&str, usize)| match fs::read_to_string(cargo::root().join(name)) {
        Ok(text) => missing(name, &text, *least),
        Err(error) => Some(format!("{name}:1: {error}")),
    };
    DOCUMENTS.iter().filter_map(check).collect()
}

fn missing(name: &str, text: &str, least: usize) -> Option<String> {
    let marks = ["**Invariant:**", "**API boundary:**"].map(|mark| text.matches(mark).count());
    let marks: usize = marks.iter().sum();
    (marks < least).then(|| format!("{name}:1: {marks} marks (at least {least})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_marks_are_reported() {
        let text = "**Invariant:** a\n**API boundary:** b\n";
        assert_eq!(missing("A.md", text, 2), None);
        let unmarked = "A.md:1: 2 marks (at least 3)";
        assert_eq!(missing("A.md", text, 3).as_deref(), Some(unmarked));
    }
}

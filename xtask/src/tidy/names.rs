//! File names that say nothing, and files that do not say what they are.

use super::Source;

/// Stems of files and folders that hold whatever nobody placed.
const VAGUE: &[&str] = &[
    "mod", "util", "utils", "common", "helpers", "misc", "manager",
];

pub(super) fn file_names(sources: &[Source]) -> Vec<String> {
    let vague = |source: &&Source| {
        let stem = source.path.strip_suffix(".rs").unwrap_or(&source.path);
        stem.split('/').any(|part| VAGUE.contains(&part))
    };
    sources
        .iter()
        .filter(vague)
        .map(|source| source.message(0, "a name that says nothing"))
        .collect()
}

pub(super) fn headers(sources: &[Source]) -> Vec<String> {
    let bare = sources
        .iter()
        .filter(|source| !source.raw.starts_with("//! "));
    bare.map(|source| source.message(0, "does not open with `//!`"))
        .collect()
}

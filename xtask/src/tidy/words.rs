//! Names, headers and attributes: file names, the first lines of a file, and allowed lints.

use super::Source;

/// Names of files and folders without a clear purpose.
const VAGUE: &[&str] = &[
    "mod", "util", "utils", "common", "helpers", "misc", "manager",
];
const FORBIDDEN: &[&str] = &["#[allow(", "#![allow(", "#[ignore"];
/// Places where forbidden attributes are text for generated code: path, reason.
const WRITERS: &[(&str, &str)] = &[(
    "crates/adjutant-macros/src/expand.rs",
    "`expect` would warn in code that happens to need no exception",
)];
/// The largest total number of `expect` attributes in the crates. It can only be lowered.
///
/// Tests may have more: what several targets share, each uses in part.
const EXPECTATIONS: usize = 3;
pub(super) fn file_name(source: &Source) -> Vec<String> {
    let mut parts = source.path.trim_end_matches(".rs").split('/');
    let vague = parts.find(|part| VAGUE.contains(part));
    vague
        .map(|part| source.message(0, &format!("the name says nothing: {part}")))
        .into_iter()
        .collect()
}

pub(super) fn header(source: &Source) -> Vec<String> {
    // Fixtures of the compiler's messages are programs of a few lines, named by the mistake in them.
    let bare = !source.raw.starts_with("//! ") && !source.path.contains("/tests/ui/");
    bare.then(|| source.message(0, "does not open with `//!`"))
        .into_iter()
        .collect()
}

pub(super) fn attributes(source: &Source) -> Vec<String> {
    let writes = WRITERS.iter().any(|(path, _)| *path == source.path);
    let words = FORBIDDEN.iter().filter(|_| !writes);
    let found = words.flat_map(|word| source.scanned.code.match_indices(word));
    found
        .map(|(at, word)| source.message(at, &format!("`{word}`")))
        .collect()
}

pub(super) fn expectations(sources: &[Source]) -> Option<String> {
    let is_source =
        |source: &&Source| source.path.starts_with("crates/") && source.path.contains("/src/");
    let crates = sources.iter().filter(is_source);
    let words = crates.flat_map(|source| source.scanned.code.match_indices("[expect("));
    let found = format!(
        "{} expect attributes (limit {EXPECTATIONS})",
        words.clone().count()
    );
    println!("tidy: crates have {found}");
    (words.count() > EXPECTATIONS).then(|| format!("crates:1: {found}"))
}

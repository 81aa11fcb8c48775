//! How long things may be, in code lines: neither blank nor only a comment.

use std::ops::Range;

use super::Source;
use crate::scan;

const FILE: usize = 500;
const FUNCTION: usize = 80;
const TEST_MODULE: usize = 100;
/// Of all files of xtask together: 1,095 for what watches the project, and the eight commands that do work of their own.
const XTASK: usize = 1_800;
/// Of text, documentation included.
const LIBRARY: usize = 60;

/// What may be longer: path, function, `file` or `lib.rs`, reason. Meant for one exhaustive `match` over a wire per adapter.
const LONG: &[(&str, &str, &str)] = &[
    ("crates/adjutant-llm/tests/serde.rs", "file", "one test for each stored type, side by side"),
    ("crates/adjutant-agent/src/lib.rs", "lib.rs", "the index of the core, a line for each of its parts"),
    ("crates/adjutant-llm/src/lib.rs", "lib.rs", "the index of the floor that every crate stands on"),
];
/// Libraries whose root must hold items: path, reason.
const WITH_ITEMS: &[(&str, &str)] =
    &[("crates/adjutant-macros/src/lib.rs", "where the compiler wants procedural macros")];

pub(super) fn file(source: &Source) -> Vec<String> {
    let limit = limit(source, "file", FILE);
    Vec::from_iter(source.longer(0, "file", code_lines(source), limit))
}

pub(super) fn functions(source: &Source) -> Vec<String> {
    let code = &source.scanned.code;
    let long = |(name, range): (&str, Range<usize>)| {
        let limit = limit(source, name, FUNCTION);
        source.longer(range.start, name, scan::count(&code[range]), limit)
    };
    scan::functions(code).into_iter().filter_map(long).collect()
}

pub(super) fn test_modules(source: &Source) -> Vec<String> {
    let code = &source.scanned.code;
    let long = |range: Range<usize>| source.longer(range.start, "inline tests", scan::count(&code[range]), TEST_MODULE);
    scan::test_modules(code).into_iter().filter_map(long).collect()
}

pub(super) fn library(source: &Source) -> Vec<String> {
    if !source.path.ends_with("/src/lib.rs") {
        return Vec::new();
    }
    let limit = limit(source, "lib.rs", LIBRARY);
    let long = source.longer(0, "lib.rs", source.raw.lines().count(), limit);
    let listed = WITH_ITEMS.iter().any(|(path, _)| *path == source.path);
    let item = first_item(&source.scanned.code).filter(|_| !listed);
    let item = item.map(|at| source.message(at, "an item in lib.rs"));
    long.into_iter().chain(item).collect()
}

pub(super) fn xtask(sources: &[Source]) -> Option<String> {
    let files = sources.iter().filter(|source| source.path.starts_with("xtask/"));
    let lines: usize = files.map(code_lines).sum();
    (lines > XTASK).then(|| format!("xtask:1: {lines} code lines in all (limit {XTASK})"))
}

fn limit(source: &Source, what: &str, usual: usize) -> usize {
    let listed = |entry: &&(&str, &str, &str)| entry.0 == source.path && entry.1 == what;
    LONG.iter().find(listed).map_or(usual, |_| usize::MAX)
}

fn code_lines(source: &Source) -> usize {
    let code = &source.scanned.code;
    let tests = scan::test_modules(code).into_iter();
    scan::count(code) - tests.map(|range| scan::count(&code[range])).sum::<usize>()
}

/// Where something stands that is neither an attribute nor `mod name;` nor `use`.
fn first_item(code: &str) -> Option<usize> {
    let mut rest = code.trim();
    while !rest.is_empty() {
        let bare = rest.trim_start_matches("pub ").trim_start_matches("pub(crate) ");
        let length = match bare.split([' ', '[']).next() {
            Some("#" | "#!") => scan::end(rest, rest.find('[')?, b']'),
            Some("use") => rest.find(';').map(|at| at + 1),
            Some("mod") => rest.split_once('{').map_or(rest, |(before, _)| before).find(';').map(|at| at + 1),
            _ => None,
        };
        let Some(length) = length else { return Some(code.trim_end().len() - rest.len()) };
        rest = rest[length..].trim_start();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rule: fn(&Source) -> Vec<String>, raw: &str, expect: &[&str]) {
        assert_eq!(rule(&Source::new("a/src/lib.rs", raw.into())), expect);
    }

    #[test]
    fn library_refuses_items_when_beside_modules_and_uses() {
        let fine = "//! Doc.\n#![deny(x)]\n\nmod a;\n#[cfg(x)]\npub mod b;\npub use a::{C, D};\n";
        check(library, fine, &[]);
        let at_8 = ["a/src/lib.rs:8: an item in lib.rs"];
        check(library, &format!("{fine}mod c {{ }}\n"), &at_8);
        check(library, &format!("{fine}pub struct S;\n"), &at_8);
        check(library, &"//!\n".repeat(61), &["a/src/lib.rs:1: lib.rs has 61 lines (limit 60)"]);
    }

    #[test]
    fn file_counts_no_tests_when_they_are_inline() {
        let (code, tests) = ("a();\n".repeat(500), "b();\n".repeat(98));
        let code = format!("{code}#[cfg(test)]\nmod tests {{\n{tests}}}\n");
        check(file, &code, &[]);
        check(file, &format!("{code}a();"), &["a/src/lib.rs:1: file has 501 lines (limit 500)"]);
        check(test_modules, &code, &["a/src/lib.rs:501: inline tests has 101 lines (limit 100)"]);
    }

    #[test]
    fn functions_are_reported_when_longer_than_the_limit() {
        let code = format!("// Why.\nfn f() {{\n{}}}\n", "a();\n".repeat(79));
        check(functions, &code, &["a/src/lib.rs:2: f has 81 lines (limit 80)"]);
    }
}

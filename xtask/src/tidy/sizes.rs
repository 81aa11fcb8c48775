//! How long things may be. A code line is one that is neither blank nor only a comment.

use super::Source;
use crate::scan;

const FILE_LINES: usize = 500;
const FUNCTION_LINES: usize = 80;
const TEST_MODULE_LINES: usize = 100;
/// Of text, documentation included.
const LIBRARY_LINES: usize = 60;
/// Of all files of xtask together.
const XTASK_LINES: usize = 600;

/// Files that may be longer: path and reason.
const LONG_FILES: &[(&str, &str)] = &[];
/// Functions that may be longer: path, name and reason. Meant for one exhaustive `match` over a wire per adapter.
const LONG_FUNCTIONS: &[(&str, &str, &str)] = &[];
/// Libraries whose root must hold items: path and reason.
const LIBRARIES_WITH_ITEMS: &[(&str, &str)] = &[(
    "crates/adjutant-macros/src/lib.rs",
    "the compiler wants procedural macros at the root of their crate",
)];

pub(super) fn files(sources: &[Source]) -> Vec<String> {
    let long = |source: &Source| {
        let lines = code_lines(source);
        let listed = LONG_FILES.iter().any(|(path, _)| *path == source.path);
        let what = format!("a file of {lines} code lines (limit {FILE_LINES})");
        (lines > FILE_LINES && !listed).then(|| source.message(0, &what))
    };
    sources.iter().filter_map(long).collect()
}

pub(super) fn functions(sources: &[Source]) -> Vec<String> {
    let mut messages = Vec::new();
    for source in sources {
        for function in scan::functions(&source.scanned.code) {
            let (name, lines) = (function.name, function.lines);
            let listed = LONG_FUNCTIONS
                .iter()
                .any(|(path, listed, _)| *path == source.path && *listed == name);
            if lines > FUNCTION_LINES && !listed {
                let what =
                    format!("function `{name}` has {lines} code lines (limit {FUNCTION_LINES})");
                messages.push(source.message(function.start, &what));
            }
        }
    }
    messages
}

pub(super) fn test_modules(sources: &[Source]) -> Vec<String> {
    let mut messages = Vec::new();
    for source in sources {
        for range in scan::test_modules(&source.scanned.code) {
            let lines = scan::count(&source.scanned.code[range.clone()]);
            if lines > TEST_MODULE_LINES {
                let what =
                    format!("inline tests of {lines} code lines (limit {TEST_MODULE_LINES})");
                messages.push(source.message(range.start, &what));
            }
        }
    }
    messages
}

pub(super) fn libraries(sources: &[Source]) -> Vec<String> {
    let mut messages = Vec::new();
    for source in sources
        .iter()
        .filter(|source| source.path.ends_with("/src/lib.rs"))
    {
        let lines = source.raw.lines().count();
        if lines > LIBRARY_LINES {
            messages.push(source.message(
                0,
                &format!("a lib.rs of {lines} lines (limit {LIBRARY_LINES})"),
            ));
        }
        if LIBRARIES_WITH_ITEMS
            .iter()
            .all(|(path, _)| *path != source.path)
        {
            messages.extend(
                first_item(&source.scanned.code).map(|at| source.message(at, "an item in lib.rs")),
            );
        }
    }
    messages
}

pub(super) fn xtask(sources: &[Source]) -> Vec<String> {
    let lines: usize = sources
        .iter()
        .filter(|source| source.path.starts_with("xtask/"))
        .map(code_lines)
        .sum();
    let what = format!("xtask:1: {lines} code lines in all (limit {XTASK_LINES})");
    if lines > XTASK_LINES {
        vec![what]
    } else {
        Vec::new()
    }
}

fn code_lines(source: &Source) -> usize {
    let code = &source.scanned.code;
    let tests: usize = scan::test_modules(code)
        .into_iter()
        .map(|range| scan::count(&code[range]))
        .sum();
    scan::count(code) - tests
}

/// Where something stands that is neither an attribute nor `mod name;` nor `use`.
fn first_item(code: &str) -> Option<usize> {
    let mut rest = code.trim_start();
    while !rest.is_empty() {
        if rest.starts_with('#') {
            rest = rest[scan::block(rest, 0, b'[', b']')?..].trim_start();
            continue;
        }
        let (statement, after) = rest.split_once(';').unwrap_or((rest, ""));
        let words: Vec<&str> = statement.split_whitespace().collect();
        match words.as_slice() {
            ["mod", _]
            | ["pub" | "pub(crate)", "mod", _]
            | ["use", ..]
            | ["pub" | "pub(crate)", "use", ..] => {}
            _ => return Some(code.len() - rest.len()),
        }
        rest = after.trim_start();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(path: &str, raw: &str) -> Vec<Source> {
        vec![Source::new(path.into(), raw.into())]
    }

    #[test]
    fn libraries_refuse_items_when_beside_modules_and_uses() {
        let fine = "//! Doc.\n#![deny(x)]\n\nmod a;\n#[cfg(x)]\npub mod b;\npub use a::{C, D};\n";
        assert_eq!(libraries(&sources("crates/a/src/lib.rs", fine)), [""; 0]);
        let inline = format!("{fine}mod c {{ }}\n");
        assert_eq!(
            libraries(&sources("crates/a/src/lib.rs", &inline)),
            ["crates/a/src/lib.rs:8: an item in lib.rs"]
        );
    }

    #[test]
    fn files_count_no_tests_when_they_are_inline() {
        let code = format!(
            "{}#[cfg(test)]\nmod tests {{\n{}}}\n",
            "a();\n".repeat(500),
            "b();\n".repeat(98)
        );
        assert_eq!(files(&sources("a.rs", &code)), [""; 0]);
        assert_eq!(
            files(&sources("a.rs", &format!("{code}a();"))),
            ["a.rs:1: a file of 501 code lines (limit 500)"]
        );
        assert_eq!(
            test_modules(&sources("a.rs", &code)),
            ["a.rs:501: inline tests of 101 code lines (limit 100)"]
        );
    }

    #[test]
    fn functions_are_reported_when_longer_than_the_limit() {
        let code = format!("// Why.\nfn f() {{\n{}}}\n", "a();\n".repeat(79));
        assert_eq!(
            functions(&sources("a.rs", &code)),
            ["a.rs:2: function `f` has 81 code lines (limit 80)"]
        );
    }
}

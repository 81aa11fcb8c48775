//! What was promised, line by line, and the test that holds each line, or why ours is otherwise.

#[path = "spec_table/context.rs"]
mod context;
#[path = "spec_table/hazards.rs"]
mod hazards;
#[path = "spec_table/hooks.rs"]
mod hooks;
#[path = "spec_table/memory.rs"]
mod memory;
#[path = "spec_table/sessions.rs"]
mod sessions;
#[path = "spec_table/steering.rs"]
mod steering;
#[path = "spec_table/subagents.rs"]
mod subagents;
#[path = "spec_table/suites.rs"]
mod suites;
#[path = "spec_table/suites_agent.rs"]
mod suites_agent;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// A requirement, and what became of it.
#[derive(Debug)]
struct Row {
    /// Where it is from.
    source: &'static str,
    /// The requirement, or the name of what is asked for.
    item: &'static str,
    /// Who holds it.
    how: How,
}

/// Who holds a requirement. A test is a file from the root of the workspace, and a function in it, or a check of a
/// conformance suite.
#[derive(Debug)]
enum How {
    /// This test.
    Test(&'static str),
    /// It is otherwise here: the test holds what is so instead.
    Deviation { test: &'static str, why: &'static str },
    /// It comes with this.
    Later(&'static str),
}

/// Rows of one source, each written `"item" => how`.
macro_rules! rows {
    ($source:literal; $($item:literal => $how:expr,)*) => {
        &[$($crate::spec_table::Row { source: $source, item: $item, how: $how }),*]
    };
}
use rows;

const TABLES: [&[Row]; 9] = [
    steering::ROWS,
    subagents::ROWS,
    hooks::ROWS,
    hazards::ROWS,
    suites::ROWS,
    suites_agent::ROWS,
    sessions::ROWS,
    memory::ROWS,
    context::ROWS,
];
/// Every source, and how many lines it has at least.
const SOURCES: [(&str, usize); 8] = [
    ("context", 50),
    ("e", 180),
    ("g", 90),
    ("hooks", 150),
    ("loop", 150),
    ("memory", 65),
    ("sessions", 75),
    ("subagents", 55),
];
/// Where each conformance suite is played; every check of it is a test there.
const SUITES: [(&str, &[&str]); 3] = [
    (
        "journal_suite",
        &["adjutant-testing/tests/journal_suite.rs", "adjutant-store/tests/jsonl_suite.rs", SQLITE, POSTGRES],
    ),
    ("shelf_suite", &["adjutant-testing/tests/shelf_suite.rs", SQLITE, POSTGRES]),
    ("memory_suite", &["adjutant-testing/tests/memory_suite.rs", SQLITE, POSTGRES]),
];
const SQLITE: &str = "adjutant-store/tests/sqlite_suites.rs";
const POSTGRES: &str = "adjutant-store/tests/postgres/suites.rs";
/// What may come later.
const LATER: [&str; 1] = ["orchestration"];

fn all() -> impl Iterator<Item = &'static Row> {
    TABLES.into_iter().flatten()
}

/// Whether a line with the attribute of a test stands right above the function.
fn has_test(text: &str, name: &str) -> bool {
    let head = format!("fn {name}(");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let at = lines.iter().position(|line| line.contains(&head));
    at.is_some_and(|at| {
        let above = lines[..at].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
        above.into_iter().any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
    })
}

/// Whether the list of a conformance suite has the check, of which each store's tests make a test.
fn has_check(text: &str, name: &str) -> bool {
    let list = text.split_once("\nchecks! {").map_or("", |(_, list)| list);
    list.lines()
        .any(|line| line.trim().split_once("::").is_some_and(|(_, rest)| rest.starts_with(&format!("{name}: \""))))
}

fn is_held(path: &str, text: &str, name: &str) -> bool {
    if path.ends_with("_suite.rs") && path.contains("/src/") { has_check(text, name) } else { has_test(text, name) }
}

#[test]
fn every_row_names_a_test_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files: BTreeMap<&str, Option<String>> = BTreeMap::new();
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for row in all() {
        let (How::Test(test) | How::Deviation { test, .. }) = row.how else { continue };
        let (path, name) = test.rsplit_once("::").unwrap_or((test, ""));
        let text = files.entry(path).or_insert_with(|| std::fs::read_to_string(root.join(path)).ok());
        if !text.as_ref().is_some_and(|text| is_held(path, text, name)) {
            missing.entry(path).or_default().insert(name);
        }
    }
    let count: usize = missing.values().map(BTreeSet::len).sum();
    assert!(missing.is_empty(), "{count} tests are missing: {missing:#?}");
}

#[test]
fn suites_are_played_on_every_store() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    for (suite, places) in SUITES {
        for place in places {
            let text = std::fs::read_to_string(crates.join(place)).expect("the file is there");
            assert!(text.contains(&format!("adjutant_testing::{suite}!(")), "{suite} is not played in {place}");
        }
    }
}

#[test]
fn every_source_has_its_rows_when_they_are_counted() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    all().for_each(|row| *counts.entry(row.source).or_default() += 1);
    let sources: Vec<&str> = counts.keys().copied().collect();
    assert_eq!(sources, SOURCES.map(|(source, _)| source));
    for (source, least) in SOURCES {
        assert!(counts[source] >= least, "{source} has {} rows", counts[source]);
    }
}

#[test]
fn every_row_is_told_apart_and_has_its_reason() {
    let mut seen = BTreeSet::new();
    for row in all() {
        assert!(!row.item.is_empty() && seen.insert((row.source, row.item)), "a second {row:?}");
        match row.how {
            How::Test(_) => {}
            How::Deviation { why, .. } => assert!(why.split(' ').count() > 3 && !why.ends_with('.'), "{row:?}"),
            How::Later(what) => assert!(LATER.contains(&what), "{row:?}"),
        }
    }
}

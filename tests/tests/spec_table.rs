//! What was promised, line by line, and the test that holds each line, or why ours is otherwise.

#[path = "spec_table/context.rs"]
mod context;
#[path = "spec_table/delegation.rs"]
mod delegation;
#[path = "spec_table/handoffs.rs"]
mod handoffs;
#[path = "spec_table/hazards.rs"]
mod hazards;
#[path = "spec_table/hooks.rs"]
mod hooks;
#[path = "spec_table/lifecycle.rs"]
mod lifecycle;
#[path = "spec_table/lifecycle_parts.rs"]
mod lifecycle_parts;
#[path = "spec_table/memory.rs"]
mod memory;
#[path = "spec_table/react.rs"]
mod react;
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
#[path = "spec_table/teams.rs"]
mod teams;

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
    Deviation {
        test: &'static str,
        why: &'static str,
    },
}

/// Rows of one source, each written `"item" => how`.
macro_rules! rows {
    ($source:literal; $($item:literal => $how:expr,)*) => {
        &[$($crate::spec_table::Row { source: $source, item: $item, how: $how }),*]
    };
}
use rows;

const TABLES: [&[Row]; 15] = [
    steering::ROWS,
    subagents::ROWS,
    hooks::ROWS,
    hazards::ROWS,
    suites::ROWS,
    suites_agent::ROWS,
    sessions::ROWS,
    memory::ROWS,
    context::ROWS,
    react::ROWS,
    delegation::ROWS,
    handoffs::ROWS,
    teams::ROWS,
    lifecycle::ROWS,
    lifecycle_parts::ROWS,
];
/// Every source, and how many lines it has at least.
const SOURCES: [(&str, usize); 14] = [
    ("context", 50),
    ("delegation", 130),
    ("e", 180),
    ("g", 90),
    ("handoffs", 130),
    ("hooks", 150),
    ("lifecycle", 130),
    ("lifecycle parts", 225),
    ("loop", 150),
    ("memory", 65),
    ("react", 115),
    ("sessions", 75),
    ("subagents", 55),
    ("teams", 135),
];
/// Where each conformance suite is played; every check of it is a test there.
const SUITES: [(&str, &[&str]); 3] = [
    (
        "journal_suite",
        &[
            "adjutant-testing/tests/journal_suite.rs",
            "adjutant-store/tests/jsonl_suite.rs",
            SQLITE,
            POSTGRES,
        ],
    ),
    (
        "kv_suite",
        &["adjutant-testing/tests/kv_suite.rs", SQLITE, POSTGRES],
    ),
    (
        "memory_suite",
        &["adjutant-testing/tests/memory_suite.rs", SQLITE, POSTGRES],
    ),
];
const SQLITE: &str = "adjutant-store/tests/sqlite_suites.rs";
const POSTGRES: &str = "adjutant-store/tests/postgres/suites.rs";

fn all() -> impl Iterator<Item = &'static Row> {
    TABLES.into_iter().flatten()
}

/// Whether a line with the attribute of a test stands right above the function.
fn has_test(text: &str, name: &str) -> bool {
    let head = format!("fn {name}(");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let at = lines.iter().position(|line| line.contains(&head));
    at.is_some_and(|at| {
        let above = lines[..at]
            .iter()
            .rev()
            .take_while(|line| line.starts_with("#[") || line.starts_with("//"));
        above
            .into_iter()
            .any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
    })
}

/// Whether it is a check of the prompt surface, of which a test is made for each way of asking.
fn has_both(text: &str, name: &str) -> bool {
    let list = text
        .split_once("\nstage::both!(")
        .and_then(|(_, rest)| rest.split_once(");"));
    list.is_some_and(|(list, _)| list.split(',').any(|check| check.trim() == name))
}

/// Whether the list of a suite has the check, of which the tests of each store make a test.
fn has_check(text: &str, name: &str) -> bool {
    let heads = ["\nchecks! {", "\nboard_suite! {"];
    let list = heads
        .iter()
        .find_map(|head| text.split_once(head))
        .map_or("", |(_, list)| list);
    let is_check = |rest: &str| {
        rest.strip_prefix(name)
            .is_some_and(|end| end == "," || end.starts_with(": \""))
    };
    list.lines().any(|line| {
        line.trim()
            .split_once("::")
            .is_some_and(|(_, rest)| is_check(rest))
    })
}

#[test]
fn every_row_names_a_test_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files: BTreeMap<&str, Option<String>> = BTreeMap::new();
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for row in all() {
        let (How::Test(test) | How::Deviation { test, .. }) = row.how;
        let (path, name) = test.rsplit_once("::").unwrap_or((test, ""));
        let text = files
            .entry(path)
            .or_insert_with(|| std::fs::read_to_string(root.join(path)).ok());
        if !text.as_ref().is_some_and(|text| {
            has_check(text, name) || has_test(text, name) || has_both(text, name)
        }) {
            missing.entry(path).or_default().insert(name);
        }
    }
    let count: usize = missing.values().map(BTreeSet::len).sum();
    assert!(
        missing.is_empty(),
        "{count} tests are missing: {missing:#?}"
    );
}

#[test]
fn suites_are_played_on_every_store() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    for (suite, places) in SUITES {
        for place in places {
            let text = std::fs::read_to_string(crates.join(place)).expect("the file is there");
            assert!(
                text.contains(&format!("adjutant_testing::{suite}!(")),
                "{suite} is not played in {place}"
            );
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
        assert!(
            counts[source] >= least,
            "{source} has {} rows",
            counts[source]
        );
    }
}

#[test]
fn every_row_is_told_apart_and_has_its_reason() {
    let mut seen = BTreeSet::new();
    for row in all() {
        assert!(
            !row.item.is_empty() && seen.insert((row.source, row.item)),
            "a second {row:?}"
        );
        match row.how {
            How::Test(_) => {}
            How::Deviation { why, .. } => {
                assert!(why.split(' ').count() > 3 && !why.ends_with('.'), "{row:?}")
            }
        }
    }
}

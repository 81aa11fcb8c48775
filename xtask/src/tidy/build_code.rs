//! Which crates run code while they are built: each one is listed with its reason in a document.

use std::{collections::BTreeSet, fs};

use serde_json::Value;

use crate::{Failure, cargo};

const DOCUMENT: &str = "docs/dependencies.md";

/// Compares the crates of the lock file, for every platform, with the document.
pub(super) fn check_list() -> Result<Vec<String>, Failure> {
    let failure = |error: &dyn std::fmt::Display| Failure::Step(format!("{DOCUMENT}: {error}"));
    let tree = cargo::output("metadata --format-version 1 --locked")?;
    let tree: Value = serde_json::from_str(&tree).map_err(|error| failure(&error))?;
    let document =
        fs::read_to_string(cargo::root().join(DOCUMENT)).map_err(|error| failure(&error))?;
    Ok(compare(&running(&tree), &parse_crates(&document)))
}

/// The crates of others with a target that cargo runs, or loads into the compiler.
fn running(tree: &Value) -> BTreeSet<&str> {
    let list = |value: &'static str, of: &Value| of[value].as_array().cloned().unwrap_or_default();
    let packages = tree["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|package| !package["source"].is_null());
    let runs = |package: &&Value| {
        let kinds = list("targets", package)
            .into_iter()
            .flat_map(|target| list("kind", &target));
        kinds
            .into_iter()
            .any(|kind| kind == "custom-build" || kind == "proc-macro")
    };
    packages
        .filter(runs)
        .filter_map(|package| package["name"].as_str())
        .collect()
}

/// The crates that stand between backticks in the first cell of a row.
fn parse_crates(document: &str) -> BTreeSet<&str> {
    let cells = document
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
    cells
        .flat_map(|cell| cell.split(", ").map(|name| name.trim_matches('`')))
        .collect()
}

fn compare(running: &BTreeSet<&str>, named: &BTreeSet<&str>) -> Vec<String> {
    let missing = running
        .difference(named)
        .map(|name| format!("{DOCUMENT}:1: runs code when built, not listed: {name}"));
    let gone = named
        .difference(running)
        .map(|name| format!("{DOCUMENT}:1: listed, runs no code when built: {name}"));
    missing.chain(gone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_told_when_they_are_not_listed_or_gone() {
        let tree = r#"{"packages": [
            {"name": "ours", "source": null, "targets": [{"kind": ["custom-build"]}]},
            {"name": "plain", "source": "registry", "targets": [{"kind": ["lib"]}]},
            {"name": "script", "source": "registry", "targets": [{"kind": ["lib"]}, {"kind": ["custom-build"]}]},
            {"name": "macros", "source": "registry", "targets": [{"kind": ["proc-macro"]}]}
        ]}"#;
        let tree = serde_json::from_str(tree).expect("a tree");
        let document = "| crates | why |\n|---|---|\n| `script`, `old` | `macros` |\n";
        assert_eq!(
            compare(&running(&tree), &parse_crates(document)),
            [
                "docs/dependencies.md:1: runs code when built, not listed: macros",
                "docs/dependencies.md:1: listed, runs no code when built: old",
            ]
        );
    }
}

//! `adjutant manifest`: problems with places, what will run, and the schema.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::command::{KEY, Seen, adjutant, seen};

/// A folder with a manifest.
fn folder(text: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary directory");
    fs::write(folder.path().join("adjutant.yaml"), text).expect("it can be written");
    folder
}

fn run(folder: &TempDir, args: &[&str]) -> Seen {
    let mut command = adjutant(&[&["manifest"], args].concat());
    command
        .current_dir(folder.path())
        .env("ANTHROPIC_API_KEY", KEY)
        .env("TEAM", "birds");
    seen(command)
}

const WRONG: &str =
    "name: clerk\nmodel: offline/planer\ntoolboxes: [file]\nlimts: {max_turns: 3}\n";

#[test]
fn check_tells_every_problem_with_its_place() {
    let folder = folder(WRONG);
    let expect = "adjutant.yaml:2:8: no model is called \"offline/planer\"; hint: the nearest are offline/planner\n\
                  adjutant.yaml:3:13: there is no toolbox \"file\"; hint: the nearest is `files`\n\
                  adjutant.yaml:4:1: there is no field `limts` here; hint: the nearest is `limits`\n";
    run(&folder, &["check"]).check(2, expect, "errors: 3, warnings: 0\n");
    run(&folder, &["check", "none.yaml"]).check(
        2,
        "none.yaml: there is no such file\n",
        "errors: 1, warnings: 0\n",
    );
}

#[test]
fn check_tells_json_when_it_is_asked_to() {
    let lines = run(&folder(WRONG), &["check", "--json"]).events();
    let first = json!({
        "severity": "error", "file": "adjutant.yaml", "line": 2, "column": 8,
        "message": "no model is called \"offline/planer\"", "hint": "the nearest are offline/planner",
    });
    assert_eq!(
        (lines.len(), &lines[0], &lines[3]),
        (4, &first, &json!({"errors": 3, "warnings": 0}))
    );
}

#[test]
fn check_tells_warnings_when_nothing_is_wrong() {
    let folder = folder(
        "name: clerk\nmodel: offline/planner\nboard: {name: b}\nsessions: {store: {kind: memory}}\n",
    );
    let expect = "warning: adjutant.yaml:3:1: `board` is lost when the process ends: the store is of kind `memory`\n";
    run(&folder, &["check"]).check(0, expect, "errors: 0, warnings: 1\n");
}

#[test]
fn show_prints_what_will_run_without_credentials() {
    let folder =
        folder("name: clerk\nmodel: anthropic/claude-sonnet-5\nlabels: {team: '${TEAM}'}\n");
    let yaml = run(&folder, &["show"]);
    assert_eq!((yaml.code, yaml.stderr.as_str()), (Some(0), ""));
    let file = folder
        .path()
        .canonicalize()
        .expect("it is there")
        .join("adjutant.yaml");
    let expect = format!(
        "manifest:\n  name: clerk\n  labels:\n    team: birds\n  entry_agent: clerk\n  agents:\n    - name: clerk\n      \
         model: anthropic/claude-sonnet-5\nsources:\n  - {}\nneeds:\n  - ANTHROPIC_API_KEY\n  - ANTHROPIC_BASE_URL\n",
        file.display()
    );
    assert_eq!(yaml.stdout, expect);
    let json: Value = run(&folder, &["show", "--json"]).events().remove(0);
    assert_eq!(json["manifest"]["labels"], json!({"team": "birds"}));
}

#[test]
fn show_tells_what_is_wrong_on_standard_error() {
    let folder = folder("name: clerk\nprefix: ${NOBODY}\n");
    let expect = "error: adjutant.yaml:2:9: the variable NOBODY is not set; hint: set it, or give a default: `${NOBODY:-…}`\n";
    run(&folder, &["show"]).check(2, "", expect);
}

#[test]
fn schema_is_printed() {
    let seen = run(&folder(""), &["schema"]);
    let schema: Value = serde_json::from_str(&seen.stdout).expect("it is JSON");
    assert_eq!(
        (seen.code, &schema["title"]),
        (Some(0), &json!("Adjutant manifest"))
    );
}

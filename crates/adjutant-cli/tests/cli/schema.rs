//! Answers by a schema: alone on standard output, checked, and asked for again when they do not fit.

use std::fs;

use adjutant::llm::{Gate, Script, ScriptedModel};
use adjutant_testing::{Fault, Loopback};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::command::{Vendor, WIRES, adjutant, run, says, seen, serve, usage};

/// A directory with this schema, and a file beside it.
fn schema(schema: &str) -> (TempDir, String, String) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let text =
        |path: &std::path::Path| path.to_str().expect("temporary paths are UTF-8").to_owned();
    let path = dir.path().join("schema.json");
    fs::write(&path, schema).expect("the file can be written");
    let names = (text(&path), text(dir.path()));
    (dir, names.0, names.1)
}

fn count() -> String {
    json!({"type": "object", "properties": {"files": {"type": "integer"}}, "required": ["files"], "additionalProperties": false})
        .to_string()
}

#[test]
fn answer_is_one_line_of_json_when_it_fits() {
    let (_dir, path, root) = schema(&count());
    for vendor in WIRES {
        let look = Script::new()
            .text("Let me look.")
            .call("list_files", json!({}))
            .usage(usage());
        let server = serve([look, says("{\n  \"files\": 1\n}")]);
        let seen = seen(run(
            vendor,
            &server,
            &["How many?", "--schema", &path, "--root", &root],
        ));
        assert_eq!(
            (seen.code, seen.stdout.as_str()),
            (Some(0), "{\"files\":1}\n"),
            "{vendor:?} {seen:#?}"
        );
        assert!(
            seen.stderr
                .lines()
                .last()
                .is_some_and(|line| line.starts_with("turns 2, calls 1, ")),
            "{seen:#?}"
        );
        assert!(
            String::from_utf8_lossy(&server.requests()[0].body).contains("\\\"files\\\""),
            "it is told the schema"
        );
    }
}

#[test]
fn wire_is_sent_the_schema_when_it_has_a_mode_for_it() {
    let (_dir, path, _) = schema(&count());
    for (vendor, pointer) in [
        (Vendor::Anthropic, "/output_config/format/schema"),
        (Vendor::OpenAi, "/text/format/schema"),
    ] {
        let server = serve([says("{\"files\": 1}")]);
        assert_eq!(
            seen(run(vendor, &server, &["How many?", "--schema", &path])).code,
            Some(0)
        );
        let sent = server.requests()[0].json();
        assert_eq!(
            sent.pointer(pointer).map(|it| &it["required"]),
            Some(&json!(["files"])),
            "{sent:#}"
        );
    }
}

#[test]
fn answer_is_asked_for_again_when_it_does_not_fit() {
    let (_dir, path, _) = schema(&count());
    for (vendor, cost) in [(Vendor::Anthropic, "$0.0075"), (Vendor::OpenAi, "$0.0052")] {
        let server = serve([
            says("There is one file."),
            says("{\"files\": \"one\"}"),
            says("{\"files\": 1}"),
        ]);
        let stderr = format!(
            "the answer does not fit the schema, and is asked for again\n\
             the answer does not fit the schema, and is asked for again\n\
             turns 3, calls 0, tokens 3,000 in / 150 out, cost {cost}\n"
        );
        seen(run(vendor, &server, &["How many?", "--schema", &path])).check(
            0,
            "{\"files\":1}\n",
            &stderr,
        );
        let last = String::from_utf8_lossy(&server.requests()[2].body).into_owned();
        assert!(
            last.contains("There is one file.") && last.contains("/files"),
            "it is shown what is wrong: {last}"
        );
    }
}

#[test]
fn run_has_its_own_code_when_no_answer_fits() {
    let (_dir, path, _) = schema(&count());
    let server = serve(["none", "{}", "[]"].map(says));
    let seen = seen(run(
        Vendor::Anthropic,
        &server,
        &["How many?", "--schema", &path],
    ));
    assert_eq!((seen.code, seen.stdout.as_str()), (Some(4), ""));
    let error = "\nerror: no answer fits the schema\ncaused by: The answer does not fit its schema: - the whole: ";
    let summary = "\nturns 3, calls 0, tokens 3,000 in / 150 out, cost $0.0075\n";
    assert!(
        seen.stderr.contains(error) && seen.stderr.ends_with(summary),
        "{seen:#?}"
    );
    assert_eq!(server.request_count(), 3);
    let model = ScriptedModel::new(["none"].map(says));
    let server = Loopback::setup(model)
        .fault(1, Fault::server_error())
        .start_blocking()
        .expect("a port");
    assert_eq!(
        crate::command::seen(run(Vendor::Anthropic, &server, &["Hi", "--schema", &path])).code,
        Some(1)
    );
}

#[test]
fn answer_has_no_more_time_than_the_run_when_it_is_asked_for_again() {
    let (_dir, path, _) = schema(&count());
    let gate = Gate::default();
    let server = serve([says("none"), says("{\"files\": 1}").wait_at(0, &gate)]);
    let seen = seen(run(
        Vendor::Anthropic,
        &server,
        &["Hi", "--schema", &path, "--timeout", "0.3", "--quiet"],
    ));
    seen.check(
        124,
        "",
        "error: the run did not end within 300ms\nhint: --timeout sets the time\n",
    );
    gate.open();
}

#[test]
fn answer_is_the_last_line_when_events_are_written() {
    let (_dir, path, _) = schema("{\"type\": \"array\", \"items\": {\"type\": \"string\"}}");
    for replies in [
        vec!["{\"value\": [\"a\"]}"],
        vec!["a", "{\"value\": [\"a\"]}"],
    ] {
        let turns = replies.len();
        let server = serve(replies.into_iter().map(says));
        let seen = seen(run(
            Vendor::Anthropic,
            &server,
            &["Which?", "--schema", &path, "--json", "-q"],
        ));
        assert_eq!(
            (seen.code, seen.stderr.as_str()),
            (Some(0), ""),
            "{seen:#?}"
        );
        let events = seen.events();
        let last: &Value = &events[events.len() - 1];
        assert_eq!(events[events.len() - 2]["event"], "run_finished");
        assert_eq!(
            (&last["event"], &last["value"]),
            (&json!("answer"), &json!(["a"]))
        );
        let result = &events[events.len() - 2]["result"];
        assert_eq!(
            (&result["output"], &result["turns"]),
            (&json!(["a"]), &json!(turns))
        );
    }
}

#[test]
fn schema_is_refused_when_it_is_none() {
    let model = Vendor::OpenAi;
    for (text, cause) in [
        ("{\n  \"type\": }", "expected value at line 2 column 11"),
        ("{\"type\": \"thing\"}", "not a JSON schema: "),
    ] {
        let (_dir, path, _) = schema(text);
        let server = serve([]);
        let seen = seen(run(model, &server, &["Hi", "--schema", &path]));
        let start = format!("error: cannot use the schema: {path}\ncaused by: {cause}");
        assert!(
            seen.code == Some(2) && seen.stderr.starts_with(&start),
            "{seen:#?}"
        );
    }
    let (_dir, path, _) = schema("{}");
    let stderr = "error: the planner is no language model: it cannot answer by a schema\n\
                  hint: --model names a language model\n";
    seen(adjutant(&[
        "run",
        "Hi",
        "--model",
        "offline/planner",
        "--schema",
        &path,
    ]))
    .check(2, "", stderr);
}

//! One scripted model over each wire: the user sees the same.

use std::fs;

use adjutant::llm::{Script, Thinking};
use serde_json::{Value, json};

use crate::command::{KEY, Vendor, WIRES, adjutant, run, says, seen, serve, usage};

/// What differs between two wires and between two runs.
const VARYING: [&str; 12] = [
    "at_ms",
    "duration",
    "agent_id",
    "thread",
    "model",
    "wire_id",
    "raw_usage",
    "raw_stop",
    "cost",
    "total_cost",
    "limits",
    "extra",
];

fn scripts() -> [Script; 2] {
    [
        Script::new()
            .text("Let me look.")
            .call("list_files", json!({"path": "."}))
            .usage(usage()),
        says("It holds one file: notes.txt. Grüße!\n"),
    ]
}

/// What a user sees of these replies: text, or events without what varies.
fn events(vendor: Vendor, root: &str) -> Vec<Value> {
    let server = serve(scripts());
    let seen = seen(run(
        vendor,
        &server,
        &["What is here?", "--json", "--root", root],
    ));
    assert_eq!(seen.code, Some(0), "{seen:#?}");
    let mut events: Vec<Value> = Vec::new();
    for event in seen.events().into_iter().map(without_varying) {
        // One wire sends arguments whole, the others in pieces.
        match events
            .last_mut()
            .filter(|last| event["event"] == "args_delta" && last["event"] == "args_delta")
        {
            Some(last) => last["text"] = format!("{}{}", text(last), text(&event)).into(),
            None => events.push(event),
        }
    }
    events
}

fn text(event: &Value) -> &str {
    event["text"].as_str().unwrap_or_default()
}

fn without_varying(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields
                .into_iter()
                .filter(|(name, _)| !VARYING.contains(&name.as_str()));
            Value::Object(
                kept.map(|(name, value)| (name, without_varying(value)))
                    .collect(),
            )
        }
        Value::Array(items) => items.into_iter().map(without_varying).collect(),
        value => value,
    }
}

#[test]
fn events_are_equal_when_the_wires_differ() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    fs::write(dir.path().join("notes.txt"), "hello").expect("the file can be written");
    let root = dir.path().to_str().expect("temporary paths are UTF-8");
    let [anthropic, others @ ..] = WIRES.map(|vendor| events(vendor, root));
    for (other, vendor) in others.iter().zip(&WIRES[1..]) {
        assert_eq!(*other, anthropic, "{vendor:?}");
    }
    let mut names: Vec<&str> = anthropic
        .iter()
        .filter_map(|event| event["event"].as_str())
        .collect();
    names.dedup();
    let expect = [
        "run_started",
        "entry_added",
        "turn_started",
        "reply_started",
        "block_started",
        "text_delta",
        "block_finished",
        "block_started",
        "args_delta",
        "block_finished",
        "reply_finished",
        "tool_started",
        "tool_finished",
        "turn_finished",
        "turn_started",
        "reply_started",
        "block_started",
        "text_delta",
        "block_finished",
        "reply_finished",
        "turn_finished",
        "run_finished",
    ];
    assert_eq!(names, expect);
    let finished = anthropic
        .iter()
        .find(|event| event["event"] == "tool_finished")
        .expect("the tool was called");
    assert_eq!(
        finished["result"]["content"][0]["text"],
        "notes.txt  5 B\n[1 file, 0 directories]"
    );
}

#[test]
fn text_and_tools_are_shown_when_the_wires_differ() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let root = dir.path().to_str().expect("temporary paths are UTF-8");
    let costs = ["$0.0050", "$0.0035", "$0.0039", "$0.0035"];
    for (vendor, cost) in WIRES.into_iter().zip(costs) {
        let server = serve(scripts());
        let seen = seen(run(vendor, &server, &["What is here?", "--root", root])).normal(&server);
        let stderr = format!(
            "→ list_files {{\"path\":\".\"}}\n✓ list_files N ms\nturns 2, calls 1, tokens 2,000 in / 100 out, cost {cost}\n"
        );
        seen.check(
            0,
            "Let me look.\nIt holds one file: notes.txt. Grüße!\n",
            &stderr,
        );
    }
}

#[test]
fn cost_is_unknown_when_the_model_is_not_in_the_catalogue() {
    let server = serve([says("Hello.")]);
    let mut command = adjutant(&["run", "Hi", "--model", "openai/other"]);
    command
        .env("OPENAI_API_KEY", "k")
        .env("OPENAI_BASE_URL", server.openai_base_url());
    seen(command).check(
        0,
        "Hello.\n",
        "warning: the catalogue does not list openai/other, and its server did not report its limits: the context window is unknown\n\
         turns 1, calls 0, tokens 1,000 in / 50 out, cost unknown\n",
    );
}

#[test]
fn thinking_is_shown_when_it_is_wished() {
    let script = || {
        let text = "Is it here?\nIt is.".into();
        Script::new()
            .thinking(Thinking {
                text,
                signature: Some("sig".into()),
                redacted: false,
                extra: Default::default(),
            })
            .text("Yes.")
            .usage(usage())
    };
    let summary = "turns 1, calls 0, tokens 1,000 in / 50 out, cost $0.0025\n";
    let server = serve([script(), script()]);
    seen(run(Vendor::Anthropic, &server, &["Hi"])).check(0, "Yes.\n", summary);
    let shown = format!("· Is it here?\n· It is.\n{summary}");
    seen(run(Vendor::Anthropic, &server, &["Hi", "--show-thinking"])).check(0, "Yes.\n", &shown);
}

#[test]
fn default_model_is_told_when_a_key_chose_it() {
    let server = serve([says("Hello.")]);
    let mut command = adjutant(&["run", "Hi"]);
    command
        .env("ANTHROPIC_API_KEY", "k")
        .env("ANTHROPIC_BASE_URL", server.anthropic_base_url());
    let stderr = "model: anthropic/claude-sonnet-5 (ANTHROPIC_API_KEY is set)\n\
                  turns 1, calls 0, tokens 1,000 in / 50 out, cost $0.0025\n";
    seen(command).check(0, "Hello.\n", stderr);
}

#[test]
fn key_that_leaves_its_vendor_is_told_once_when_the_environment_says_so() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    for (name, by) in [
        ("openai", "OPENAI_BASE_URL"),
        ("acme", "ADJUTANT_PROVIDERS"),
    ] {
        let server = serve([says("Hello.")]);
        let url = server.openai_base_url();
        let providers = json!({"providers": [{"name": "acme", "base_url": url, "key_variables": ["OPENAI_API_KEY"]}]});
        fs::write(file.path(), providers.to_string()).expect("it is written");
        let value = if name == "acme" {
            file.path().as_os_str()
        } else {
            url.as_ref()
        };
        let mut command = adjutant(&["run", "Hi", "--model", &format!("{name}/other")]);
        let output = command
            .env("OPENAI_API_KEY", KEY)
            .env(by, value)
            .output()
            .expect("the command starts");
        let told = format!(
            "warning: the key in OPENAI_API_KEY goes to {}, which is not its vendor's\n",
            server.addr()
        );
        let stderr = String::from_utf8_lossy(&output.stderr);
        let keys = stderr.matches("warning: the key in").count();
        assert_eq!((stderr.matches(&told).count(), keys), (1, 1), "{stderr}");
        assert!(!server.requests().is_empty());
    }
}

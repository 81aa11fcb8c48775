//! Cassettes: what was recorded is played without a server and without keys, byte for byte.

use std::fs;

use adjutant::llm::{Script, ScriptedModel};
use adjutant_testing::{Fault, Loopback};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::command::{KEY, Seen, Vendor, WIRES, adjutant, run, says, seen, serve, usage};

/// A directory to work on, one for cassettes, and the paths of both.
struct Place {
    root: TempDir,
    tapes: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self {
            root: tempfile::tempdir().expect("a directory"),
            tapes: tempfile::tempdir().expect("a directory"),
        };
        for name in ["one.txt", "two.txt", "a/three.txt"] {
            let path = place.root.path().join(name);
            fs::create_dir_all(path.parent().expect("it has a folder"))
                .expect("the folder can be made");
            fs::write(path, format!("This is {name}.\n")).expect("the file can be written");
        }
        place
    }

    fn root(&self) -> &str {
        self.root
            .path()
            .to_str()
            .expect("temporary paths are UTF-8")
    }

    fn tape(&self, name: &str) -> String {
        self.tapes
            .path()
            .join(name)
            .to_str()
            .expect("temporary paths are UTF-8")
            .to_owned()
    }

    /// What a replay in an empty environment shows.
    fn replay(&self, tape: &str, args: &[&str]) -> Seen {
        let mut command = adjutant(&[
            "run",
            "What is here?",
            "--root",
            self.root(),
            "--replay",
            tape,
        ]);
        command.args(args);
        seen(command)
    }
}

fn scripts() -> [Script; 3] {
    let both = Script::new()
        .text("Let me look.")
        .call("list_files", json!({}))
        .call("read_file", json!({"path": "one.txt"}));
    let bad = Script::new().call("read_file", json!({"path": "none.txt"}));
    [
        both.usage(usage()),
        bad.usage(usage()),
        says("Three files. Grüße!"),
    ]
}

fn bytes(path: &str) -> Vec<u8> {
    fs::read(path).expect("the cassette is there")
}

#[test]
fn replay_writes_the_same_bytes_when_the_server_is_gone() {
    let place = Place::new();
    for vendor in WIRES {
        let (tape, again) = (
            place.tape(vendor.model().split('/').next().unwrap_or_default()),
            place.tape("again"),
        );
        let server = serve(scripts());
        let recorded = seen(run(
            vendor,
            &server,
            &["What is here?", "--root", place.root(), "--record", &tape],
        ));
        drop(server);
        assert_eq!(
            (recorded.code, recorded.stdout.as_str()),
            (Some(0), "Let me look.\nThree files. Grüße!\n")
        );
        let replayed = place.replay(&tape, &["--record", &again]);
        assert_eq!(
            (replayed.code, &replayed.stdout),
            (Some(0), &recorded.stdout),
            "{vendor:?} {replayed:#?}"
        );
        let last = |seen: &Seen| seen.stderr.lines().last().map(str::to_owned);
        assert_eq!(last(&replayed), last(&recorded));
        assert_eq!(bytes(&again), bytes(&tape), "{vendor:?}");
        assert!(!String::from_utf8_lossy(&bytes(&tape)).contains(KEY));
        fs::remove_file(again).expect("it is there");
    }
}

#[test]
fn replays_give_the_same_events_when_they_are_written_as_json() {
    let place = Place::new();
    let tape = place.tape("tape");
    // One call after the other: which of several ends first is not the same in every run.
    let look = Script::new()
        .text("Let me look.")
        .call("list_files", json!({}))
        .usage(usage());
    let server = serve([look, says("Three files.")]);
    let args = [
        "What is here?",
        "--root",
        place.root(),
        "--json",
        "--record",
        &tape,
    ];
    let recorded = seen(run(Vendor::Anthropic, &server, &args));
    drop(server);
    let [one, two] = [(); 2].map(|()| place.replay(&tape, &["--json", "--timeout", "60"]));
    assert_eq!(one, two);
    let same = |seen: &Seen| {
        seen.events()
            .into_iter()
            .map(untimed)
            .collect::<Vec<Value>>()
    };
    assert_eq!(same(&one), same(&recorded));
}

/// An event without ids and times.
fn untimed(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields
                .into_iter()
                .filter(|(name, _)| !["at_ms", "duration", "agent_id"].contains(&name.as_str()));
            Value::Object(kept.map(|(name, value)| (name, untimed(value))).collect())
        }
        Value::Array(items) => items.into_iter().map(untimed).collect(),
        value => value,
    }
}

#[test]
fn replay_tells_what_fell_back_when_the_recorded_run_did() {
    let place = Place::new();
    let (tape, again) = (place.tape("tape"), place.tape("again"));
    let model = ScriptedModel::new([says("So far so good. So far so good. ")]);
    let first = Loopback::setup(model)
        .fault(0, Fault::CutAt(700))
        .start_blocking()
        .expect("a port");
    let second = serve([says("Here.")]);
    let models = [Vendor::Anthropic.model(), Vendor::OpenAi.model()].join(",");
    let args = [
        "run",
        "What is here?",
        "--retries",
        "0",
        "--root",
        place.root(),
        "--model",
        &models,
        "--record",
        &tape,
    ];
    let mut command = adjutant(&args);
    command
        .envs(Vendor::Anthropic.variables(&first))
        .envs(Vendor::OpenAi.variables(&second));
    let recorded = seen(command);
    drop((first, second));
    assert!(
        recorded.code == Some(0) && recorded.stdout.contains("[taken back: "),
        "{recorded:#?}"
    );
    assert_eq!(place.replay(&tape, &["--record", &again]), recorded);
    assert_eq!(bytes(&again), bytes(&tape));
}

#[test]
fn answer_by_a_schema_is_replayed_when_it_was_asked_for_twice() {
    let place = Place::new();
    let (tape, schema) = (place.tape("tape"), place.tape("schema.json"));
    fs::write(&schema, "{\"type\": \"object\", \"required\": [\"n\"]}")
        .expect("the file can be written");
    let server = serve([says("None."), says("{\"n\": 1}")]);
    let args = [
        "What is here?",
        "--root",
        place.root(),
        "--schema",
        &schema,
        "--thinking",
        "low",
        "--record",
        &tape,
    ];
    let recorded = seen(run(Vendor::OpenAi, &server, &args));
    drop(server);
    assert_eq!(
        (recorded.code, recorded.stdout.as_str()),
        (Some(0), "{\"n\":1}\n"),
        "{recorded:#?}"
    );
    assert_eq!(
        place.replay(&tape, &["--schema", &schema, "--thinking", "low"]),
        recorded
    );
}

#[test]
fn replay_is_refused_when_something_else_is_asked() {
    let place = Place::new();
    let tape = place.tape("tape");
    let server = serve(scripts());
    seen(run(
        Vendor::OpenAi,
        &server,
        &["What is here?", "--root", place.root(), "--record", &tape],
    ));
    let other = seen(adjutant(&[
        "run",
        "Who is here?",
        "--root",
        place.root(),
        "--replay",
        &tape,
    ]));
    assert_eq!(
        (other.code, other.stdout.as_str()),
        (Some(1), ""),
        "{other:#?}"
    );
    let start = "error: the request was not recorded; the nearest is exchange 1: ";
    let hint = "hint: give the prompt, the options and the directory of the recorded run\n";
    assert!(
        other.stderr.starts_with(start) && other.stderr.contains(hint),
        "{other:#?}"
    );
}

#[test]
fn cassette_is_refused_when_it_exists_or_is_none() {
    let place = Place::new();
    let tape = place.tape("tape");
    fs::write(&tape, "{\"cassette\":1}\n").expect("the file can be written");
    let server = serve([]);
    let stderr = format!(
        "error: cannot create the cassette: {tape}\ncaused by: File exists (os error 17)\n\
         hint: take another name; a cassette is never written over\n"
    );
    seen(run(Vendor::OpenAi, &server, &["Hi", "--record", &tape])).check(2, "", &stderr);
    assert_eq!(server.request_count(), 0);
    let seen = place.replay(&tape, &[]);
    let start =
        format!("error: cannot play the cassette: {tape}\ncaused by: line 1 of a cassette: ");
    assert!(
        seen.code == Some(2) && seen.stderr.starts_with(&start),
        "{seen:#?}"
    );
}

#[test]
fn leftover_is_told_when_a_replay_asks_for_less() {
    let place = Place::new();
    let tape = place.tape("tape");
    let server = serve(scripts());
    seen(run(
        Vendor::OpenAi,
        &server,
        &["What is here?", "--root", place.root(), "--record", &tape],
    ));
    let seen = place.replay(&tape, &["--max-turns", "1"]);
    assert_eq!(seen.code, Some(3));
    assert!(
        seen.stderr
            .contains("\nwarning: 2 exchanges of the cassette were not played\n"),
        "{seen:#?}"
    );
}

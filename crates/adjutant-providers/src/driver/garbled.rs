//! Answers that are other than they should be: cut, doubled, out of order, of wrong types, absurd.

use std::{collections::HashSet, path::Path};

use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use serde_json::Value;
use tokio::runtime::Runtime;

use super::*;

/// Replacements for a value: other types, out-of-range numbers, invalid texts.
const ABSURD: [&str; 10] = [
    "null",
    "true",
    "-1",
    "1e999",
    "18446744073709551616",
    "NaN",
    "\"\\ud800\"",
    "\"x\"",
    "[]",
    "{}",
];
/// The depth to which a value is nested where nesting is the hazard: deeper than the parser goes.
const DEEP: usize = 200;
/// The mark at the place of an absurd value.
const HERE: &str = "\"@here@\"";

/// Plays the fixtures of a wire in every garbled form: nothing panics, the grammar holds, and what cannot be read is
/// never taken for a success.
pub(crate) fn survive<W: Driven>(wire: &Arc<W>, folder: &str) {
    let texts = fixtures(
        &PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures")
            .join(folder),
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let runs = |bytes: &[u8]| runtime.block_on(play(wire, &[bytes], End::Clean));
    let mut seen = HashSet::new();
    for text in &texts {
        let events: Vec<&str> = text
            .split("\n\n")
            .filter(|event| !event.trim().is_empty())
            .collect();
        let whole = runs(text.as_bytes());
        // Events after the last one that is read are ignored.
        let read = (1..=events.len())
            .find(|count| {
                whole.last().is_some_and(Result::is_ok)
                    && runs(join_events(&events[..*count]).as_bytes()) == whole
            })
            .unwrap_or(0);
        for at in 0..events.len() {
            if !seen.insert((events[at].split("data:").next(), shape(data(events[at])))) {
                continue;
            }
            let play_with = |event: &str| {
                let events: Vec<&str> = events
                    .iter()
                    .enumerate()
                    .map(|(n, it)| if n == at { event } else { it })
                    .collect();
                runs(join_events(&events).as_bytes())
            };
            play_with(&format!("{0}\n\n{0}", events[at]));
            for cut in cuts(events[at]) {
                let items = play_with(cut);
                let success = items.last().is_some_and(Result::is_ok);
                assert!(
                    !(success && at < read && is_broken(cut)),
                    "a cut event was taken for a success: {cut}"
                );
            }
            absurd(events[at])
                .iter()
                .for_each(|event| drop(play_with(event)));
        }
    }
    play_shuffled(wire, &texts, &runtime);
}

fn fixtures(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).expect("the fixtures are there");
    let mut files: Vec<_> = files
        .filter_map(|file| {
            Some(file.ok()?.path()).filter(|path| path.extension().is_some_and(|it| it == "sse"))
        })
        .collect();
    files.sort();
    files
        .iter()
        .map(|path| std::fs::read_to_string(path).expect("a fixture is text"))
        .collect()
}

/// The data of an event, if it is JSON.
fn data(event: &str) -> Option<Value> {
    serde_json::from_str(event.split_once("data:")?.1).ok()
}

/// Returns the structure of a value, without its texts and numbers: one event of each shape is enough.
fn shape(value: Option<Value>) -> String {
    match value {
        None => "-".to_owned(),
        Some(Value::Object(members)) => {
            let members = members
                .into_iter()
                .map(|(name, value)| match name.as_str() {
                    // These members determine the meaning of the rest.
                    "type" | "finish_reason" | "stop_reason" | "finishReason" => {
                        format!("{name}:{value},")
                    }
                    _ => format!("{name}:{},", shape(Some(value))),
                });
            format!("{{{}}}", members.collect::<String>())
        }
        Some(Value::Array(items)) => format!(
            "[{}]",
            items
                .into_iter()
                .map(|it| shape(Some(it)))
                .collect::<String>()
        ),
        Some(Value::String(_)) => "s".to_owned(),
        Some(Value::Number(_)) => "n".to_owned(),
        Some(Value::Bool(_)) => "b".to_owned(),
        Some(Value::Null) => "0".to_owned(),
    }
}

fn join_events(events: &[&str]) -> String {
    events.iter().map(|event| format!("{event}\n\n")).collect()
}

/// An event cut at every byte of its data.
fn cuts(event: &str) -> impl Iterator<Item = &str> {
    let begin = event
        .find("data:")
        .map_or(event.len(), |at| at + "data:".len());
    (begin..event.len())
        .filter(|at| event.is_char_boundary(*at))
        .map(|at| &event[..at])
}

/// True if an event holds half of some JSON.
fn is_broken(event: &str) -> bool {
    let data = event
        .split_once("data:")
        .map(|(_, data)| data.trim())
        .unwrap_or_default();
    !data.is_empty() && serde_json::from_str::<Value>(data).is_err() && !data.starts_with("[D")
}

/// An event with each value in it replaced by each absurd one.
fn absurd(event: &str) -> Vec<String> {
    let Some((head, data)) = event.split_once("data:") else {
        return Vec::new();
    };
    let Ok(value) = serde_json::from_str::<Value>(data) else {
        return Vec::new();
    };
    let deep = format!("{}{}", "[".repeat(DEEP), "]".repeat(DEEP));
    let mut places = Vec::new();
    replace_each(&value, &mut |value| places.push(value.to_string()));
    let with = |text: &String, absurd: &str| format!("{head}data: {}", text.replace(HERE, absurd));
    let all: Vec<&str> = ABSURD.iter().copied().chain([&*deep]).collect();
    places
        .iter()
        .flat_map(|text| all.iter().map(|absurd| with(text, absurd)))
        .collect()
}

/// The value with each of its parts replaced by the mark, one at a time.
fn replace_each(value: &Value, found: &mut dyn FnMut(Value)) {
    found(Value::from("@here@"));
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                replace_each(member, &mut |inner| {
                    let mut members = members.clone();
                    members.insert(name.clone(), inner);
                    found(Value::Object(members));
                });
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                replace_each(item, &mut |inner| {
                    let mut items = items.clone();
                    items[at] = inner;
                    found(Value::Array(items));
                });
            }
        }
        _ => {}
    }
}

/// Plays events in any order, and with a byte changed.
fn play_shuffled<W: Driven>(wire: &Arc<W>, texts: &[String], runtime: &Runtime) {
    let events: Vec<String> = texts
        .iter()
        .flat_map(|text| text.split("\n\n").map(str::to_owned))
        .collect();
    let order = prop::collection::vec(prop::sample::select(events), 0..16);
    let change = prop::option::of((any::<prop::sample::Index>(), any::<u8>()));
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(500)
    });
    let outcome = runner.run(&(order, change), |(order, change)| {
        let mut bytes = order.join("\n\n").into_bytes();
        if let (Some((at, byte)), false) = (change, bytes.is_empty()) {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        runtime.block_on(play(wire, &[&bytes], End::Clean));
        Ok(())
    });
    outcome.expect("no answer breaks anything");
}

//! The same script gives the same events, whatever wire carries it.

use adjutant::{
    Agent, Model,
    llm::{Script, ScriptedModel},
    tool,
};
use adjutant_testing::Loopback;
use adjutant_tests::WIRES;
use serde_json::{Value, json};

/// What differs from wire to wire and from run to run.
const DIFFERS: [&str; 12] = [
    "at_ms",
    "agent_id",
    "extra",
    "seq",
    "model",
    "limits",
    "raw_usage",
    "raw_stop",
    "wire_id",
    "cost",
    "duration",
    "tokens",
];

/// Adds two whole numbers.
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

fn script() -> ScriptedModel {
    ScriptedModel::new([
        Script::new()
            .text("Zwei Summen für dich:")
            .call("add", json!({"a": 2, "b": 3}))
            .call("add", json!({"a": 4, "b": "viel"})),
        Script::new().text("Die erste ist fünf, die zweite gibt es nicht."),
    ])
}

#[tokio::test]
async fn events_are_the_same_when_the_wire_is_another() {
    let expect = events(script()).await;
    assert_eq!(
        expect.last().map(|event| &event["event"]),
        Some(&json!("run_finished"))
    );
    for wire in WIRES {
        let server = Loopback::start(script()).await.expect("the server starts");
        let real = events(wire.model(&server)).await;
        let first = expect
            .iter()
            .zip(&real)
            .position(|(expect, real)| expect != real);
        let pair = first.map(|at| (&expect[at], &real[at]));
        assert_eq!(pair, None, "the first event that differs on {wire:?}");
        assert_eq!(real.len(), expect.len(), "{wire:?}");
    }
}

/// The events of a run, without what may differ.
async fn events(model: impl Model + 'static) -> Vec<Value> {
    let agent = Agent::new(model).instructions("Du rechnest.").tool(add);
    let mut running = agent.run("Rechne!").stream().expect("the session is free");
    let mut events = Vec::new();
    let mut last = None;
    while let Some(event) = running.next().await {
        assert!(last <= Some(event.seq), "{:?} after {last:?}", event.seq);
        last = Some(event.seq);
        let mut value = serde_json::to_value(&event).expect("an event is JSON");
        strip(&mut value);
        events.push(value);
    }
    // Blocks may interleave: one wire says that a call is whole when the next one begins, the other at the end.
    for reply in events.chunk_by_mut(|_, next| next["block"].is_u64()) {
        reply.sort_by_key(|event| event["block"].as_u64());
    }
    joined(events)
}

/// The events with the deltas of each block as one: one wire sends a call in pieces, another one whole.
fn joined(events: Vec<Value>) -> Vec<Value> {
    let mut joined: Vec<Value> = Vec::new();
    for event in events {
        let more = event["text"].as_str().unwrap_or_default().to_owned();
        let is_delta = event["event"]
            .as_str()
            .is_some_and(|it| it.ends_with("_delta"));
        match joined.last_mut().filter(|last| {
            is_delta && last["event"] == event["event"] && last["block"] == event["block"]
        }) {
            Some(last) => {
                last["text"] = format!("{}{more}", last["text"].as_str().unwrap_or_default()).into()
            }
            None => joined.push(event),
        }
    }
    joined
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !DIFFERS.contains(&name.as_str()));
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

//! The same script gives the same events, whatever wire carries it.

use adjutant::{
    Agent, Model,
    llm::{Script, ScriptedModel},
    providers::Timeouts,
    tool,
};
use adjutant_testing::Loopback;
use serde_json::{Value, json};

use super::perform::{WIRES, Wire};

/// What differs from wire to wire and from run to run.
const DIFFERS: [&str; 10] =
    ["at_ms", "agent_id", "model", "limits", "raw_usage", "raw_stop", "wire_id", "cost", "duration", "tokens"];

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
    assert_eq!(expect.last().map(|event| &event["event"]), Some(&json!("run_finished")));
    for wire in WIRES {
        let server = Loopback::start(script()).await.expect("the server starts");
        let real = events(wire.model(&server, Timeouts::new())).await;
        let first = expect.iter().zip(&real).position(|(expect, real)| expect != real);
        let pair = first.map(|at| (&expect[at], &real[at]));
        assert_eq!(pair, None, "the first event that differs on {wire:?}");
        assert_eq!(real.len(), expect.len(), "{wire:?}");
    }
    assert_eq!(WIRES, [Wire::Messages, Wire::Chat]);
}

/// The events of a run, without what may differ.
async fn events(model: impl Model + 'static) -> Vec<Value> {
    let agent = Agent::new(model).instructions("Du rechnest.").tool(add);
    let mut running = agent.stream("Rechne!").expect("the session is free");
    let mut events = Vec::new();
    while let Some(event) = running.next().await {
        let mut value = serde_json::to_value(&event).expect("an event is JSON");
        strip(&mut value);
        events.push(value);
    }
    // Blocks may interleave: one wire says that a call is whole when the next one begins, the other at the end.
    for reply in events.chunk_by_mut(|_, next| next["block"].is_u64()) {
        reply.sort_by_key(|event| event["block"].as_u64());
    }
    events
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

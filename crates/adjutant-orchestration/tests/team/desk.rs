//! What the tests of teams share: leads and members that say what they are told, and what came of a run.

use std::sync::{Arc, Mutex};

use adjutant_agent::{Agent, Event, EventKind, RunResult};
use adjutant_llm::{Gate, Script, ScriptedModel, Usage};
use adjutant_orchestration::team::{Team, TeamReport};
use serde_json::{Value, json};

/// A reply of 100 tokens in and 10 out that calls a tool.
pub(crate) fn call(name: &'static str, args: Value) -> Script {
    metered().call(name, args)
}

pub(crate) fn says(text: &'static str) -> Script {
    metered().text(text)
}

fn metered() -> Script {
    Script::new().usage(Usage {
        input_uncached: 100,
        output: 10,
        ..Usage::default()
    })
}

pub(crate) fn spawn(name: &'static str) -> Script {
    call(
        "spawn_teammate",
        json!({"name": name, "task": format!("The task of {name}.")}),
    )
}

pub(crate) fn send(to: &'static str, content: &'static str) -> Script {
    call("send_message", json!({"to": to, "content": content}))
}

pub(crate) fn read() -> Script {
    call("read_messages", json!({}))
}

/// Waits for a message, for 60 seconds.
pub(crate) fn wait() -> Script {
    call("wait_for_message", json!({"timeout_s": 60}))
}

/// Waits for all members, for 60 seconds.
pub(crate) fn wait_team() -> Script {
    call("wait_for_team", json!({"timeout_s": 60}))
}

/// An agent that says this.
pub(crate) fn agent(scripts: impl IntoIterator<Item = Script>) -> Agent {
    Agent::new(ScriptedModel::new(scripts))
}

/// An agent that answers once the gate is open.
pub(crate) fn gated(text: &'static str, gate: &Gate) -> Agent {
    agent([says(text).wait_at(0, gate)])
}

/// An agent that never answers.
pub(crate) fn hanging() -> Agent {
    gated("Never.", &Gate::default())
}

pub(crate) fn team() -> Team {
    Team::new("crew")
}

/// The lead of a team, that says this.
pub(crate) fn lead(team: &Team, scripts: impl IntoIterator<Item = Script>) -> Agent {
    team.install(agent(scripts).name("boss"))
}

/// A run of a lead that says this.
pub(crate) async fn led(team: &Team, scripts: impl IntoIterator<Item = Script>) -> RunResult {
    lead(team, scripts)
        .run("Go.")
        .await
        .expect("the run finishes")
}

/// The results of the lead's calls, as text.
pub(crate) fn results(result: &RunResult) -> Vec<String> {
    result.calls.iter().map(|call| call.result.text()).collect()
}

/// All events of a run.
pub(crate) async fn events(agent: &Agent) -> Vec<Event> {
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let mut events = Vec::new();
    while let Some(event) = running.next().await {
        events.push(event);
    }
    events
}

/// What the application was told under a name that begins like this.
pub(crate) fn told(events: &[Event], prefix: &str) -> Vec<(String, Value)> {
    let of = |event: &Event| match &event.kind {
        EventKind::App { kind, data, .. } if kind.starts_with(prefix) => {
            Some((kind.to_string(), Value::clone(data)))
        }
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

/// The result at the end of a stream.
pub(crate) fn last(events: &[Event]) -> RunResult {
    match &events.last().expect("some event").kind {
        EventKind::RunFinished { result } | EventKind::RunPaused { result } => {
            RunResult::clone(result)
        }
        other => unreachable!("not the end: {other:?}"),
    }
}

/// A list that fills while a run goes on.
pub(crate) type Seen<T> = Arc<Mutex<Vec<T>>>;

pub(crate) fn taken<T>(seen: &Seen<T>) -> Vec<T> {
    std::mem::take(&mut *seen.lock().expect("nobody panics inside"))
}

/// The team, and what it reports at the end of its runs.
pub(crate) fn reporting(team: Team) -> (Team, Seen<TeamReport>) {
    let seen: Seen<TeamReport> = Arc::default();
    let told = Arc::clone(&seen);
    (
        team.on_end(move |report| {
            told.lock()
                .expect("nobody panics inside")
                .push(report.clone())
        }),
        seen,
    )
}

/// What the model of an agent was shown at its requests, as text.
pub(crate) fn shown(model: &ScriptedModel) -> Vec<String> {
    let entries = |request: &adjutant_llm::Request| {
        let all: Vec<String> = request
            .entries
            .iter()
            .map(|it| json!(it.entry).to_string())
            .collect();
        all.join("\n")
    };
    model.requests().iter().map(entries).collect()
}

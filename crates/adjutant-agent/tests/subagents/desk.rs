//! What the tests of agents under agents share: a tool that opens some, and logs to look into.

use std::sync::Arc;

use adjutant_agent::{
    Agent, Child, Event, EventKind, Journal, LogId, MemoryJournal, Record, RunResult, Seq, Spawn,
    Stamped,
};
use adjutant_llm::{CallResult, FixedWorld, Script, ScriptedModel, Usage};
use adjutant_tool::{CallContext, ErasedTool, Replay, ToolError, ToolSpec, tool_fn};
use futures_util::StreamExt;
use serde_json::{Value, json};

/// A tool of this class with this body.
pub(crate) fn tool<F, Fut>(name: &'static str, replay: Replay, body: F) -> impl ErasedTool + 'static
where
    F: Fn(CallContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<CallResult, ToolError>> + Send + 'static,
{
    let spec = ToolSpec {
        replay,
        ..ToolSpec::new(name, "A tool.", json!({"type": "object"}))
    };
    tool_fn(spec, move |_: Value, cx: CallContext| body(cx))
}

/// The tool `work`, of class `Once`.
pub(crate) fn work<F, Fut>(body: F) -> impl ErasedTool + 'static
where
    F: Fn(CallContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<CallResult, ToolError>> + Send + 'static,
{
    tool("work", Replay::Once, body)
}

/// An agent that calls `work` and answers `Done.`.
pub(crate) fn parent(work: impl ErasedTool + 'static) -> Agent {
    let model = ScriptedModel::new([calls(&["work"]), says("Done.")]);
    Agent::new(model)
        .name("boss")
        .tool(work)
        .world(FixedWorld::at_ms(1_000))
}

/// An agent that says these texts, one for each request.
pub(crate) fn helper(texts: &[&'static str]) -> Agent {
    Agent::new(ScriptedModel::new(texts.iter().map(|text| says(text)))).name("helper")
}

/// A reply of 100 tokens in and 10 out.
pub(crate) fn says(text: &'static str) -> Script {
    Script::new().text(text).usage(usage(100, 10))
}

/// A reply that calls these tools.
pub(crate) fn calls(names: &[&'static str]) -> Script {
    names
        .iter()
        .fold(Script::new().usage(usage(100, 10)), |script, name| {
            script.call(*name, json!({}))
        })
}

pub(crate) fn usage(input_uncached: u64, output: u64) -> Usage {
    Usage {
        input_uncached,
        output,
        ..Usage::default()
    }
}

/// Opens the child of a key.
pub(crate) async fn open(cx: &CallContext, key: &str, agent: Agent) -> Result<Child, ToolError> {
    cx.get::<dyn Spawn>()
        .expect("a call of a run")
        .open(key, agent.into())
        .await
}

/// What a child said, as the result of its call.
pub(crate) fn said(result: &RunResult) -> CallResult {
    CallResult::ok(result.text())
}

/// The records of a log.
pub(crate) async fn records(journal: &MemoryJournal, log: &LogId) -> Vec<Arc<Stamped>> {
    journal
        .read(log, Seq(0))
        .map(|it| it.expect("memory does not fail"))
        .collect()
        .await
}

/// The results of the calls of a run, as text.
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

/// The kind of an event, in one word.
pub(crate) fn word(event: &Event) -> String {
    let value = serde_json::to_value(&event.kind).expect("events are JSON");
    value["event"].as_str().expect("a tag").to_owned()
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

/// The kind of a record, in one word.
pub(crate) fn record(record: &Record) -> String {
    let value = serde_json::to_value(record).expect("records are JSON");
    value
        .as_object()
        .and_then(|value| value.keys().next())
        .expect("a tag")
        .to_owned()
}

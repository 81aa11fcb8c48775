//! What the tests of many agents at a time share: models that answer by their task, and what is read of a run.

use std::sync::Arc;

use adjutant_agent::{
    Event, EventKind, Journal, LogId, MemoryJournal, Record, RunResult, Seq, Stamped,
};
use adjutant_llm::{Content, Entry, Request, Script, ScriptedModel, Usage};
use adjutant_tool::{CallContext, ErasedTool, Replay, ToolError, ToolSpec, tool_fn};
use futures_util::StreamExt;
use serde_json::{Value, json};

/// A model that answers so many requests, each by the newest message of its request.
pub(crate) fn answering(
    requests: usize,
    answer: impl Fn(&str) -> Script + Clone + Send + 'static,
) -> Arc<ScriptedModel> {
    let scripts = (0..requests).map(|_| {
        let answer = answer.clone();
        Script::from_fn(move |request| answer(&newest(request)))
    });
    Arc::new(ScriptedModel::new(scripts))
}

/// A model that says `did <task>.` so many times.
pub(crate) fn doing(requests: usize) -> Arc<ScriptedModel> {
    answering(requests, |task| says(format!("did {task}.")))
}

/// The newest message that a request shows; empty if a turn came after it.
pub(crate) fn newest(request: &Request) -> String {
    match request.entries.last().map(|stored| &stored.entry) {
        Some(Entry::User(message)) => message
            .content
            .iter()
            .filter_map(Content::as_text)
            .collect(),
        _ => String::new(),
    }
}

/// The messages that a request shows.
pub(crate) fn messages(request: &Request) -> Vec<String> {
    let entries = request
        .entries
        .iter()
        .filter_map(|stored| match &stored.entry {
            Entry::User(message) => Some(
                message
                    .content
                    .iter()
                    .filter_map(Content::as_text)
                    .collect(),
            ),
            _ => None,
        });
    entries.collect()
}

/// A reply of 100 tokens in and 10 out.
pub(crate) fn says(text: impl Into<Arc<str>>) -> Script {
    Script::new().text(text).usage(Usage {
        input_uncached: 100,
        output: 10,
        ..Usage::default()
    })
}

/// A reply that calls a tool.
pub(crate) fn calls(name: &'static str, args: Value) -> Script {
    calls_all(&[(name, args)])
}

/// A reply that calls tools.
pub(crate) fn calls_all(calls: &[(&'static str, Value)]) -> Script {
    let script = Script::new().usage(Usage {
        input_uncached: 100,
        output: 10,
        ..Usage::default()
    });
    calls.iter().fold(script, |script, (name, args)| {
        script.call(*name, args.clone())
    })
}

/// A tool of this class with this body.
pub(crate) fn tool<F, Fut>(name: &'static str, replay: Replay, body: F) -> impl ErasedTool + 'static
where
    F: Fn(CallContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<adjutant_llm::CallResult, ToolError>> + Send + 'static,
{
    let spec = ToolSpec {
        replay,
        ..ToolSpec::new(name, "A tool.", json!({"type": "object"}))
    };
    tool_fn(spec, move |_: Value, cx: CallContext| body(cx))
}

/// The results of the calls of a run, as text.
pub(crate) fn results(result: &RunResult) -> Vec<String> {
    result.calls.iter().map(|call| call.result.text()).collect()
}

/// The results of the calls of a run, as JSON.
pub(crate) fn answers(result: &RunResult) -> Vec<Value> {
    results(result)
        .iter()
        .map(|text| serde_json::from_str(text).expect("the result is JSON"))
        .collect()
}

/// All events of a run.
pub(crate) async fn events(agent: &adjutant_agent::Agent) -> Vec<Event> {
    agent
        .run("Go.")
        .stream()
        .expect("the session is free")
        .collect()
        .await
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

/// The records of a log.
pub(crate) async fn records(journal: &MemoryJournal, log: &LogId) -> Vec<Arc<Stamped>> {
    journal
        .read(log, Seq(0))
        .map(|it| it.expect("memory does not fail"))
        .collect()
        .await
}

/// A journal with the records of a log up to the first one of this kind, as if the program had died then.
pub(crate) async fn died_after(
    journal: &MemoryJournal,
    log: &LogId,
    is: impl Fn(&Record) -> bool,
) -> MemoryJournal {
    let records = records(journal, log).await;
    let end = records
        .iter()
        .position(|it| is(&it.record))
        .expect("the record is there");
    let left = MemoryJournal::default();
    let mut own = left
        .own(log, &adjutant_agent::Owner::default())
        .await
        .expect("nobody has it");
    own.append(&records[..=end], adjutant_agent::Flush::Now)
        .await
        .expect("there is room");
    left
}

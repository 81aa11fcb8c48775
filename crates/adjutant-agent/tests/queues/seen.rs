//! Short views of requests, transcripts and events.

use adjutant_agent::{Agent, EventKind, Running};
use adjutant_llm::{CallResult, Entry, Request, Script, ScriptedModel, Terminate, Transcript};
use adjutant_tool::ErasedTool;
use serde_json::json;

use super::stage::tool;

/// A conversation in words: messages as they are, answers after `=`, results after `>`.
pub(crate) fn words(entries: &Transcript) -> Vec<String> {
    entries.iter().map(|stored| word(&stored.entry)).collect()
}

pub(crate) fn word(entry: &Entry) -> String {
    match entry {
        Entry::User(message) => message
            .content
            .iter()
            .filter_map(|it| it.as_text())
            .collect(),
        Entry::Turn(turn) if turn.results().is_empty() => format!("={}", turn.reply().text()),
        Entry::Turn(turn) => {
            let results: Vec<String> = turn.results().iter().map(|result| result.text()).collect();
            format!(">{}", results.join(","))
        }
        Entry::Custom(custom) => format!("#{}", custom.kind),
        other => format!("{other:?}"),
    }
}

/// What each request showed.
pub(crate) fn requests(model: &ScriptedModel) -> Vec<Vec<String>> {
    let shown = |request: &Request| words(&request.entries);
    model.requests().iter().map(shown).collect()
}

/// What waits, in words.
pub(crate) fn waiting(agent: &Agent) -> Vec<String> {
    agent
        .queue()
        .items()
        .iter()
        .map(|waiting| word(&waiting.content))
        .collect()
}

/// The names of events, without those of replies and tools.
pub(crate) fn names(events: &[EventKind]) -> Vec<String> {
    let name = |event: &EventKind| {
        serde_json::to_value(event).expect("JSON")["event"]
            .as_str()
            .map(str::to_owned)
    };
    let left_out = |name: &String| {
        ["reply_", "block_", "tool_", "text_", "args_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
    };
    events
        .iter()
        .filter_map(name)
        .filter(|name| !left_out(name))
        .collect()
}

/// Reads events until one is as wanted.
pub(crate) async fn until(running: &mut Running, wanted: impl Fn(&EventKind) -> bool) {
    while let Some(event) = running.next().await {
        if wanted(&event.kind) {
            return;
        }
    }
    unreachable!("the run ended too early");
}

pub(crate) fn is_queued(event: &EventKind) -> bool {
    matches!(event, EventKind::MessageQueued { .. })
}

pub(crate) fn is_delta(event: &EventKind) -> bool {
    matches!(event, EventKind::TextDelta { .. })
}

/// A reply that calls a tool as often as this.
pub(crate) fn calling(times: usize) -> Script {
    (0..times).fold(Script::new(), |script, _| script.call("work", json!({})))
}

pub(crate) fn says(text: &str) -> Script {
    Script::new().text(text)
}

/// A tool that does something and says `ok`.
pub(crate) fn work(does: impl Fn() + Send + Sync + 'static) -> impl ErasedTool + 'static {
    tool("work", move |_, _| {
        does();
        async { Ok(CallResult::ok("ok")) }
    })
}

/// A tool whose results would end the run.
pub(crate) fn ending(
    terminate: Terminate,
    does: impl Fn() + Send + Sync + 'static,
) -> impl ErasedTool + 'static {
    tool("work", move |_, _| {
        does();
        async move {
            Ok(CallResult {
                terminate,
                ..CallResult::ok("ok")
            })
        }
    })
}

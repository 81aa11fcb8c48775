//! The events of a run as docs/events.md draws them, compared with real runs.

use std::{
    panic::{self, PanicHookInfo},
    time::Duration,
};

use adjutant::{
    Agent, CallContext, EventKind, Outcome, Running, ToolError,
    agent::Limits,
    llm::{BlockKind, Entry, Gate, Script, ScriptedModel},
    tool,
    tools::ToolErrorKind,
};
use serde_json::json;
use tokio::sync::Notify;

const DOCUMENT: &str = include_str!("../../docs/events.md");
const HEADING: &str = "## The order of events";
/// The cases that must be drawn, in order.
const CASES: [&str; 9] = [
    "text only",
    "one tool",
    "parallel tools finishing in reverse",
    "unknown tool",
    "invalid arguments",
    "panic",
    "cancel in mid-stream",
    "cancel in mid-batch",
    "max turns",
];

/// Lets `slow` end; set by the reader of the events.
static RELEASE: Notify = Notify::const_new();

/// Adds two whole numbers.
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Ends when it is let go.
#[tool]
async fn slow() -> &'static str {
    RELEASE.notified().await;
    "slow"
}

/// Ends at once.
#[tool]
async fn quick() -> &'static str {
    "quick"
}

/// Breaks.
#[tool]
fn broken() -> String {
    "no number".parse::<u8>().expect("this tool always breaks").to_string()
}

/// Waits until someone wishes to stop.
#[tool]
async fn wait(cx: CallContext) -> Result<String, ToolError> {
    cx.cancel.cancelled().await;
    Err(ToolError::new(ToolErrorKind::Cancelled, "stopped early"))
}

#[tokio::test]
async fn trace_is_as_drawn_when_runs_are_real() {
    hush_panics_of_tools();
    let drawn = drawn();
    let names: Vec<&str> = drawn.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, CASES, "the cases of docs/events.md");
    let mut wrong = Vec::new();
    for (name, expect) in &drawn {
        let real = real(name).await;
        if real != *expect {
            wrong.push(format!("{name}\n  drawn: {}\n  real:  {}", expect.join(" · "), real.join(" · ")));
        }
    }
    assert!(wrong.is_empty(), "docs/events.md draws other events than a run shows:\n{}", wrong.join("\n"));
}

/// The cases of the document: a name at the start of a line, its events on indented lines.
fn drawn() -> Vec<(String, Vec<String>)> {
    let section = DOCUMENT.split_once(HEADING).expect("the section is there").1;
    let block = section.split("```").nth(1).expect("the section has a fenced block");
    let mut cases: Vec<(String, Vec<String>)> = Vec::new();
    for line in block.lines().skip(1).filter(|line| !line.trim().is_empty()) {
        if line.starts_with(' ') {
            let (_, events) = cases.last_mut().expect("a name comes first");
            events.extend(line.trim().split(" · ").map(str::to_owned));
        } else {
            cases.push((line.to_owned(), Vec::new()));
        }
    }
    cases
}

/// The events of a real run of this case.
async fn real(name: &str) -> Vec<String> {
    let done = || Script::new().text("All done.");
    let call = |name: &str| Script::new().call(name, json!({}));
    let sum = |b: serde_json::Value| Script::new().call("add", json!({"a": 2, "b": b}));
    match name {
        "text only" => trace(agent([done()]), |_, _| {}).await,
        "one tool" => trace(agent([sum(json!(3)), done()]), |_, _| {}).await,
        "parallel tools finishing in reverse" => {
            let both = call("slow").call("quick", json!({}));
            trace(agent([both, done()]), |kind, _| match kind {
                EventKind::ToolFinished { name, .. } if name.as_str() == "quick" => RELEASE.notify_one(),
                _ => {}
            })
            .await
        }
        "unknown tool" => trace(agent([call("subtract"), done()]), |_, _| {}).await,
        "invalid arguments" => trace(agent([sum(json!("many")), done()]), |_, _| {}).await,
        "panic" => trace(agent([call("broken"), done()]), |_, _| {}).await,
        "cancel in mid-stream" => {
            let closed = Gate::default();
            let script = Script::new().text("A long answer, of which").wait_at(1, &closed);
            trace(agent([script]), |kind, running| {
                if let EventKind::TextDelta { .. } = kind {
                    running.cancel();
                }
            })
            .await
        }
        "cancel in mid-batch" => {
            let four = call("quick").call("wait", json!({})).call("wait", json!({})).call("quick", json!({}));
            let two_at_once = Limits { max_parallel_tools: 2, ..Limits::default() };
            trace(agent([four]).limits(two_at_once), |kind, running| match kind {
                EventKind::ToolStarted { call, .. } if call.block == 2 => running.cancel(),
                _ => {}
            })
            .await
        }
        "max turns" => trace(agent([sum(json!(3))]).max_turns(1), |_, _| {}).await,
        other => vec![format!("no case is called {other:?}")],
    }
}

fn agent(scripts: impl IntoIterator<Item = Script>) -> Agent {
    let model = ScriptedModel::new(scripts);
    Agent::new(model)
        .tool(add)
        .tool(slow)
        .tool(quick)
        .tool(broken)
        .tool(wait)
        .calls(|calls| calls.grace = Duration::from_secs(60))
}

async fn trace(agent: Agent, mut on: impl FnMut(&EventKind, &Running)) -> Vec<String> {
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let mut words: Vec<String> = Vec::new();
    while let Some(event) = running.next().await {
        on(&event.kind, &running);
        let word = word(&event.kind);
        if !(word.ends_with('*') && words.last() == Some(&word)) {
            words.push(word);
        }
    }
    words
}

/// The event as the document writes it.
fn word(kind: &EventKind) -> String {
    let value = serde_json::to_value(kind).expect("an event is JSON");
    let name = value["event"].as_str().expect("an event has a name");
    let text = |pointer: &str| value.pointer(pointer).and_then(|it| it.as_str()).unwrap_or("?").to_owned();
    match kind {
        EventKind::TextDelta { .. } | EventKind::ThinkingDelta { .. } | EventKind::ArgsDelta { .. } => {
            format!("{name}*")
        }
        EventKind::EntryAdded { content } => match &**content {
            Entry::User(_) => format!("{name} user"),
            other => format!("{name} {other:?}"),
        },
        EventKind::BlockStarted { kind: BlockKind::Call { name: tool, .. }, .. } => format!("{name} call {tool}"),
        EventKind::BlockStarted { .. } => format!("{name} {}", text("/kind/type")),
        EventKind::ReplyFinished { .. } => format!("{name} {}", text("/reply/stop")),
        EventKind::ToolStarted { name: tool, .. } => format!("{name} {tool}"),
        EventKind::ToolFinished { name: tool, .. } => format!("{name} {tool} {}", text("/result/status")),
        EventKind::RunFinished { result } => match &result.outcome {
            Outcome::Finished { .. } => format!("{name} finished {}", text("/result/outcome/why")),
            Outcome::Limit { .. } => format!("{name} limit {}", text("/result/outcome/limit")),
            Outcome::Cancelled { .. } => format!("{name} cancelled {}", text("/result/outcome/by")),
            other => format!("{name} {other:?}"),
        },
        _ => name.to_owned(),
    }
}

/// The panic of `broken` is meant: its message would only disturb the output of the tests.
fn hush_panics_of_tools() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        let meant = info.payload_as_str().is_some_and(|text| text.contains("this tool always breaks"));
        if !meant {
            usual(info);
        }
    }));
}

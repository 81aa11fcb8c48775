//! The events of a run as docs/events.md draws them, compared with real runs.

use adjutant::{
    EventKind, Outcome,
    llm::{BlockKind, Entry},
};
use adjutant_tests::sequences;

const DOCUMENT: &str = include_str!("../../docs/events.md");
const HEADING: &str = "## The order of events";
#[tokio::test]
async fn trace_is_as_drawn_when_runs_are_real() {
    sequences::hush_panics_of_tools();
    let drawn = drawn();
    let names: Vec<&str> = drawn.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, sequences::DRAWN, "the cases of docs/events.md");
    let mut wrong = Vec::new();
    for (name, expect) in &drawn {
        let real = real(name).await;
        if real != *expect {
            wrong.push(format!(
                "{name}\n  drawn: {}\n  real:  {}",
                expect.join(" · "),
                real.join(" · ")
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "docs/events.md draws other events than a run shows:\n{}",
        wrong.join("\n")
    );
}

/// The cases of the document: a name at the start of a line, its events on indented lines.
fn drawn() -> Vec<(String, Vec<String>)> {
    let section = DOCUMENT
        .split_once(HEADING)
        .expect("the section is there")
        .1;
    let block = section
        .split("```")
        .nth(1)
        .expect("the section has a fenced block");
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
    let Some(agent) = sequences::agent(name) else {
        return vec![format!("no case is called {name:?}")];
    };
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let mut words: Vec<String> = Vec::new();
    while let Some(event) = running.next().await {
        sequences::heed(name, &event.kind, &running.stopper());
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
    let text = |pointer: &str| {
        value
            .pointer(pointer)
            .and_then(|it| it.as_str())
            .unwrap_or("?")
            .to_owned()
    };
    match kind {
        EventKind::TextDelta { .. }
        | EventKind::ThinkingDelta { .. }
        | EventKind::ArgsDelta { .. } => {
            format!("{name}*")
        }
        EventKind::EntryAdded { content } => match &**content {
            Entry::User(_) => format!("{name} user"),
            other => format!("{name} {other:?}"),
        },
        EventKind::BlockStarted {
            kind: BlockKind::Call { name: tool, .. },
            ..
        } => format!("{name} call {tool}"),
        EventKind::BlockStarted { .. } => format!("{name} {}", text("/kind/type")),
        EventKind::ReplyFinished { .. } => format!("{name} {}", text("/reply/stop")),
        EventKind::ToolStarted { name: tool, .. } => format!("{name} {tool}"),
        EventKind::ToolFinished { name: tool, .. } => {
            format!("{name} {tool} {}", text("/result/status"))
        }
        EventKind::RunFinished { result } => match &result.outcome {
            Outcome::Finished { .. } => format!("{name} finished {}", text("/result/outcome/why")),
            Outcome::Limit { .. } => format!("{name} limit {}", text("/result/outcome/limit")),
            Outcome::Cancelled { .. } => format!("{name} cancelled {}", text("/result/outcome/by")),
            other => format!("{name} {other:?}"),
        },
        _ => name.to_owned(),
    }
}

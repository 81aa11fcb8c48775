//! The tables of docs/events.md, compared with the types: every event, its name, its fields.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use adjutant::{
    Agent, CallContext, CancelBy, EventKind, Outcome, RunResult,
    agent::{Lane, Limit, Pause, Seq},
    llm::{
        Call, CallId, Entry, Error, ErrorKind, Script, ScriptedModel, Thinking, ThreadId,
        UserMessage, Warning, WarningKind,
    },
    tool,
    tools::{Answer, Ask, Progress},
};
use serde_json::json;

const DOCUMENT: &str = include_str!("../../docs/events.md");

/// Tells how far it is.
#[tool]
fn look(cx: CallContext) -> &'static str {
    cx.progress(Progress::text("half of it"));
    "all of it"
}

#[test]
fn table_names_every_event_when_the_types_are_asked() {
    let documented: Vec<(String, String)> = rows("## Every event")
        .into_iter()
        .map(|row| (code(&row[0]).remove(0), code(&row[1]).remove(0)))
        .collect();
    let names: Vec<&String> = documented.iter().map(|(_, name)| name).collect();
    let known = known_names();
    assert_eq!(
        names,
        known.iter().collect::<Vec<_>>(),
        "the names of docs/events.md, in the order of EventKind"
    );
    for (variant, name) in &documented {
        assert_eq!(snake(variant), *name, "a variant and its JSON name");
    }
}

#[tokio::test]
async fn table_names_the_fields_when_a_run_shows_them() {
    let documented: BTreeMap<String, Vec<String>> = rows("## Every event")
        .into_iter()
        .map(|row| (code(&row[1]).remove(0), code(&row[2])))
        .collect();
    let mut seen = BTreeSet::new();
    for kind in shown().await {
        let value = serde_json::to_value(&kind).expect("an event is JSON");
        let keys = value
            .as_object()
            .expect("an event is an object")
            .keys()
            .map(String::as_str);
        let fields: BTreeSet<&str> = keys.filter(|key| *key != "event").collect();
        let name = value["event"]
            .as_str()
            .expect("an event has a name")
            .to_owned();
        let expect = documented.get(&name).expect("the event is in the table");
        let allowed: BTreeSet<&str> = expect.iter().map(|it| it.trim_end_matches('?')).collect();
        let needed: BTreeSet<&str> = expect
            .iter()
            .map(String::as_str)
            .filter(|it| !it.ends_with('?'))
            .collect();
        assert!(
            fields.is_subset(&allowed) && fields.is_superset(&needed),
            "{name} has the fields {fields:?}"
        );
        seen.insert(name);
    }
    let mut known: BTreeSet<String> = known_names().into_iter().collect();
    // No provider refuses a medium in these runs.
    known.remove("media_refused");
    assert_eq!(seen, known, "the events whose fields were compared");
}

#[test]
fn mapping_leads_to_events_when_it_leads_anywhere() {
    let known = known_names();
    let rows = rows("## Names elsewhere");
    let systems = rows.iter().filter(|row| !row[0].is_empty()).count();
    assert_eq!(systems, 5, "systems of the mapping");
    for row in &rows {
        let (theirs, ours) = (code(&row[1]), code(&row[2]));
        assert!(!theirs.is_empty(), "a row without an event: {row:?}");
        assert!(!ours.is_empty(), "a row that leads nowhere: {row:?}");
        let wrong: Vec<_> = ours.iter().filter(|name| !known.contains(name)).collect();
        assert!(
            wrong.is_empty(),
            "a row that leads to no event of ours: {wrong:?}"
        );
    }
}

/// The names that the types know: serde lists them when it is given another one.
fn known_names() -> Vec<String> {
    let error = serde_json::from_value::<EventKind>(json!({"event": "?"}))
        .expect_err("no event is called so");
    let text = error.to_string();
    let (_, list) = text
        .split_once("expected one of ")
        .expect("serde lists the names");
    code(list)
}

/// One event of every kind: those of a run that shows nearly all, and the others made by hand.
async fn shown() -> Vec<EventKind> {
    let thinking = Thinking {
        text: "They ask for a look.".into(),
        signature: None,
        redacted: false,
        extra: Default::default(),
    };
    let overloaded = || Error::new(ErrorKind::Overloaded, "overloaded");
    let first = Script::new()
        .warning(Warning {
            kind: WarningKind::Degraded,
            message: "slower than usual".into(),
        })
        .thinking(thinking)
        .call("look", json!({}))
        .after_retracted(Script::new().text("I"), overloaded());
    let agent = Agent::new(ScriptedModel::new([
        first,
        Script::new().text("I have seen it."),
    ]))
    .tool(look);
    let mut running = agent.run("Look.").stream().expect("the session is free");
    let mut kinds = Vec::new();
    while let Some(event) = running.next().await {
        kinds.push(event.kind);
    }
    let result = kinds.iter().find_map(|kind| match kind {
        EventKind::RunFinished { result } => Some(Arc::clone(result)),
        _ => None,
    });
    kinds.extend(around(result.expect("the run ended")));
    kinds.push(EventKind::CancelAsked { by: CancelBy::User });
    kinds.push(EventKind::App {
        kind: "note".into(),
        version: 1,
        data: Box::new(json!({"text": "seen"})),
    });
    kinds
}

/// What happens around a loop: queues, hooks, pauses, children, effects, limits.
fn around(result: Arc<RunResult>) -> Vec<EventKind> {
    let call = CallId {
        turn: 1,
        attempt: 0,
        block: 0,
    };
    let (thread, child) = (ThreadId::from("main"), Arc::clone(&result.agent));
    let pause = Arc::new(Pause::for_call(
        &result.agent,
        Call::new(call, "look", "{}"),
        None,
        Ask::approval("May it?"),
        0,
    ));
    let outcome = || {
        Box::new(Outcome::Limit {
            limit: Limit::Turns,
        })
    };
    let content = Arc::new(Entry::User(UserMessage::text("Wait.")));
    vec![
        EventKind::MessageQueued {
            item: 1,
            lane: Lane::Steering,
            content,
        },
        EventKind::MessageWithdrawn { item: 1 },
        EventKind::MessagePlaced { item: 1 },
        EventKind::Denied {
            point: "before_tool".into(),
            reason: "no".into(),
            call: Some(call),
        },
        EventKind::OutputRefused {
            reason: "it does not fit".into(),
            left: 1,
        },
        EventKind::Paused {
            pause: Arc::clone(&pause),
        },
        EventKind::Answered {
            pause: pause.id.clone(),
            answer: Box::new(Answer::approve()),
        },
        EventKind::ChildOpened { call, child },
        EventKind::ChildEnded {
            call,
            thread,
            outcome: outcome(),
            usage: result.usage,
        },
        EventKind::ReplyPending {
            silent: std::time::Duration::from_secs(15),
        },
        EventKind::Report {
            by: "compact".into(),
            data: Box::new(json!({})),
        },
        EventKind::Overflowed,
        EventKind::LimitReached {
            limit: Limit::Turns,
        },
        EventKind::Overruled {
            outcome: outcome(),
            by: "guard".into(),
        },
        EventKind::Lagged { after: Seq(1) },
        EventKind::RunResumed,
        EventKind::RunPaused { result },
    ]
}

/// The rows of the first table under a heading, as cells.
fn rows(heading: &str) -> Vec<Vec<String>> {
    let section = DOCUMENT
        .split_once(heading)
        .expect("the section is there")
        .1;
    let table = section
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'));
    let cells = |line: &str| {
        line.trim_matches('|')
            .split(" | ")
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    table.skip(2).map(cells).collect()
}

/// What stands between backticks.
fn code(text: &str) -> Vec<String> {
    text.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

fn snake(name: &str) -> String {
    let mut snake = String::new();
    for (at, letter) in name.char_indices() {
        if letter.is_uppercase() && at > 0 {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

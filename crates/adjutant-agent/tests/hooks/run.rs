//! The points around a run: before it, its messages, before and after the agent, after it.

use std::sync::{Arc, Mutex};

use adjutant_agent::{
    Agent, AtLimit, CancelBy, Completion, Event, EventKind, Failure, HookContext, Hooks, Journal,
    Limits, LogId, MemoryJournal, Outcome, Record, Seq, Verdict,
    points::{AfterAgent, AfterRun, BeforeAgent, BeforeRun, UserMessage},
};
use adjutant_llm::{Block, Entry, FinishReason, Reply, Script};
use futures_util::StreamExt;

use super::rules;

type Lines = Arc<Mutex<Vec<String>>>;

fn told(lines: &Lines) -> Vec<String> {
    std::mem::take(&mut *lines.lock().expect("no panic"))
}

/// Hooks that tell each point that is reached, and whether it was denied.
fn observed(lines: &Lines) -> Hooks {
    let lines = Arc::clone(lines);
    Hooks::default().observe(move |seen| {
        let denied = seen
            .denied
            .map(|reason| format!(" denied: {reason}"))
            .unwrap_or_default();
        lines
            .lock()
            .expect("no panic")
            .push(format!("{}{denied}", seen.point));
    })
}

fn said(text: &str) -> Arc<Reply> {
    let mut reply = Reply::new("x/y".into(), FinishReason::End);
    reply.blocks = vec![Arc::new(Block::text(text))];
    Arc::new(reply)
}

async fn all(agent: &Agent, prompt: &str) -> Vec<Event> {
    agent
        .run(prompt)
        .stream()
        .expect("the session is free")
        .collect()
        .await
}

#[track_caller]
fn end(events: &[Event]) -> &adjutant_agent::RunResult {
    let last = events.last().and_then(|event| match &event.kind {
        EventKind::RunFinished { result } => Some(result),
        _ => None,
    });
    last.expect("the run finishes")
}

fn prompt_of(agent: &Agent) -> Vec<String> {
    let transcript = agent.log().transcript();
    let text = |entry: &Entry| match entry {
        Entry::User(message) => message.content[0].as_text().map(String::from),
        _ => None,
    };
    transcript
        .iter()
        .filter_map(|stored| text(&stored.entry))
        .collect()
}

#[tokio::test]
async fn before_run_and_after_run_stand_around_a_run_when_both_observe() {
    let lines = Lines::default();
    let (_, agent) = rules::agent([
        Script::new().text("One."),
        Script::new().text("Two."),
        Script::new().text("Three."),
    ]);
    let seen = Arc::clone(&lines);
    let agent = agent
        .on(|_: HookContext, point: BeforeRun| async move { Verdict::Pass(point) })
        .on(move |cx: HookContext, point: AfterRun| {
            let line = format!(
                "{} {} {}",
                cx.run,
                point.result.outcome.kind(),
                point.result.text()
            );
            seen.lock().expect("no panic").push(line);
            async move { Verdict::Pass(point) }
        });
    agent.run("Go.").await.expect("the run finishes");
    all(&agent, "Go.").await;
    let asks = Limits {
        max_turns: Some(0),
        at_limit: AtLimit::Ask,
        ..Limits::default()
    };
    let parking = agent.limits(asks);
    let parked = parking.run("Go.").await.expect("a pause is no error");
    let Outcome::Paused { pauses } = parked.outcome else {
        panic!("it is parked")
    };
    let answer = adjutant_tool::Answer::Extend {
        by: 1,
        message: None,
    };
    let answers = vec![pauses[0].with_answer(answer)];
    parking.resume(answers).await.expect("the run finishes");
    assert_eq!(
        told(&lines),
        [
            "1 finished One.",
            "2 finished Two.",
            "3 paused ",
            "3 finished Three."
        ]
    );
}

#[tokio::test]
async fn user_message_is_replaced_when_a_hook_changes_it() {
    let (model, agent) = rules::agent([Script::new().text("Hi.")]);
    let agent = agent.on(|_: HookContext, mut point: UserMessage| async move {
        point.message = "Hello!".into();
        Verdict::Pass(point)
    });
    let events = all(&agent, "Psst.").await;
    assert_eq!(prompt_of(&agent), ["Hello!"]);
    assert_eq!(model.requests()[0].entries.len(), 1);
    let spoken =
        serde_json::to_string(&(&events, &model.requests()[0].entries)).expect("events are JSON");
    assert!(
        !spoken.contains("Psst.") && spoken.contains("Hello!"),
        "{spoken}"
    );
}

#[tokio::test]
async fn run_fails_before_the_model_when_a_hook_denies_the_message() {
    let lines = Lines::default();
    let (model, agent) = rules::agent([]);
    let journal = MemoryJournal::default();
    let agent = agent
        .journal(journal.clone())
        .session(LogId("log".into()))
        .hooks(observed(&lines));
    let agent = agent
        .on(|_: HookContext, _: UserMessage| async move { Verdict::Deny("not so loud".into()) });
    let events = all(&agent, "HEY").await;
    let failure = Failure::Denied {
        point: "user_message".into(),
        reason: "not so loud".into(),
    };
    assert_eq!(end(&events).outcome, Outcome::Failed { failure });
    let names: Vec<_> = events
        .iter()
        .map(|event| serde_json::to_value(event).expect("JSON")["event"].clone())
        .collect();
    assert_eq!(names, ["run_started", "denied", "run_finished"]);
    assert_eq!(
        (model.requests().len(), agent.log().transcript().len()),
        (0, 0)
    );
    assert_eq!(
        told(&lines),
        [
            "before_run",
            "user_message denied: not so loud",
            "after_run"
        ]
    );
    let error = agent.run("HEY").await.expect_err("it is denied again");
    assert_eq!(
        error.to_string(),
        "the run failed: denied at user_message: not so loud"
    );
    let records: Vec<_> = journal.read(&LogId("log".into()), Seq(0)).collect().await;
    assert_eq!(records.len(), 6);
}

#[tokio::test]
async fn before_agent_answers_when_it_has_an_answer() {
    let lines = Lines::default();
    let (model, agent) = rules::agent([Script::new().text("From the model.")]);
    let agent = agent.hooks(observed(&lines)).on(|_: HookContext, mut point: BeforeAgent| async move {
        let known = matches!(&point.prompts[0], Entry::User(message) if message.content[0].as_text() == Some("Known?"));
        point.answer = known.then(|| said("Known."));
        Verdict::Pass(point)
    });
    let result = agent.run("Known?").await.expect("the run finishes");
    assert_eq!(
        (result.text().as_str(), model.requests().len()),
        ("Known.", 0)
    );
    assert!(matches!(
        result.outcome,
        Outcome::Finished {
            why: Completion::Answer,
            ..
        }
    ));
    assert_eq!(
        told(&lines)[..3],
        ["before_run", "user_message", "before_agent"]
    );
    assert_eq!(agent.log().transcript().len(), 2);
    assert_eq!(
        agent.run("New?").await.expect("the run finishes").text(),
        "From the model."
    );
    assert_eq!(model.requests()[0].entries.len(), 3);
    assert!(told(&lines).ends_with(&["after_agent".into(), "after_run".into()]));
}

#[tokio::test]
async fn run_ends_unasked_when_before_agent_denies_it() {
    let lines = Lines::default();
    let (model, agent) = rules::agent([]);
    let agent = agent.hooks(observed(&lines));
    let agent = agent
        .on(|_: HookContext, _: BeforeAgent| async move { Verdict::Deny("closed today".into()) });
    let events = all(&agent, "Go.").await;
    let failure = Failure::Denied {
        point: "before_agent".into(),
        reason: "closed today".into(),
    };
    assert_eq!(end(&events).outcome, Outcome::Failed { failure });
    assert_eq!(model.requests().len(), 0);
    assert_eq!(
        told(&lines),
        [
            "before_run",
            "user_message",
            "before_agent denied: closed today",
            "after_run"
        ]
    );
}

#[tokio::test]
async fn after_agent_changes_the_answer_when_it_says_so() {
    let (_, agent) = rules::agent([Script::new().text("Rude."), Script::new().text("Rude.")]);
    let agent = agent.on(|_: HookContext, mut point: AfterAgent| async move {
        point.reply = Some(said("Kind."));
        Verdict::Pass(point)
    });
    assert_eq!(
        agent.run("Go.").await.expect("the run finishes").text(),
        "Kind."
    );
    let events = all(&agent, "Go.").await;
    assert_eq!(end(&events).text(), "Kind.");
    let overruled = events.iter().filter(
        |event| matches!(&event.kind, EventKind::Overruled { by, .. } if **by == *"after_agent"),
    );
    assert_eq!(overruled.count(), 1);
}

#[tokio::test]
async fn after_agent_changes_the_outcome_when_it_says_so() {
    let (_, agent) = rules::agent([Script::new().text("One."), Script::new().text("Two.")]);
    let agent = agent.on(|_: HookContext, mut point: AfterAgent| async move {
        if point
            .reply
            .as_ref()
            .is_some_and(|reply| reply.text() == "Two.")
        {
            return Verdict::Deny("one is enough".into());
        }
        point.outcome = Outcome::Cancelled {
            by: CancelBy::Parent,
        };
        Verdict::Pass(point)
    });
    let result = agent.run("Go.").await.expect("a cancel is no error");
    assert_eq!(
        result.outcome,
        Outcome::Cancelled {
            by: CancelBy::Parent
        }
    );
    let events = all(&agent, "Go.").await;
    let failure = Failure::Denied {
        point: "after_agent".into(),
        reason: "one is enough".into(),
    };
    assert_eq!(end(&events).outcome, Outcome::Failed { failure });
    assert!(
        events
            .iter()
            .any(|event| matches!(event.kind, EventKind::Denied { .. }))
    );
}

#[tokio::test]
async fn denial_of_a_message_says_something_when_it_has_no_reason() {
    let (_, agent) = rules::agent([]);
    let agent = agent.on(|_: HookContext, _: UserMessage| async move { Verdict::Deny(" ".into()) });
    let failure = Failure::Denied {
        point: "user_message".into(),
        reason: "denied by a hook".into(),
    };
    assert_eq!(
        end(&all(&agent, "Go.").await).outcome,
        Outcome::Failed { failure }
    );
}

#[tokio::test]
async fn records_stay_the_same_when_hooks_only_pass() {
    let mut logs = Vec::new();
    for hooked in [false, true] {
        let (_, agent) = rules::agent([Script::new().text("Hi.")]);
        let journal = MemoryJournal::default();
        let mut agent = agent
            .world(adjutant_llm::FixedWorld::at_ms(7))
            .journal(journal.clone())
            .session(LogId("log".into()));
        if hooked {
            agent = agent
                .on(|_: HookContext, point: BeforeRun| async move { Verdict::Pass(point) })
                .on(|_: HookContext, point: UserMessage| async move { Verdict::Pass(point) })
                .on(|_: HookContext, point: BeforeAgent| async move { Verdict::Pass(point) })
                .on(|_: HookContext, point: AfterAgent| async move { Verdict::Pass(point) })
                .on(|_: HookContext, point: AfterRun| async move { Verdict::Pass(point) });
        }
        agent.run("Go.").await.expect("the run finishes");
        let records: Vec<_> = journal.read(&LogId("log".into()), Seq(0)).collect().await;
        let records: Vec<Record> = records
            .into_iter()
            .map(|it| it.expect("memory does not fail").record.clone())
            .collect();
        logs.push(records);
    }
    assert_eq!(logs[0], logs[1]);
}

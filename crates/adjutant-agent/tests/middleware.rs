//! Middleware: the order of the chain, what it may make of a drive, and the ready ones.

#[path = "middleware/left.rs"]
mod left;
#[path = "middleware/ready.rs"]
mod ready;
#[path = "loop_rules/stage.rs"]
#[expect(dead_code, reason = "the rest is for other tests")]
mod stage;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use adjutant_agent::{
    Agent, BoxDrive, CancelBy, DriveContext, Event, EventKind, Failure, Journal, LogId,
    MemoryJournal, NextDrive, Outcome, Record, RunResult, Seq, middleware_fn,
};
use adjutant_llm::{CallResult, Script, ScriptedModel};
use futures_util::StreamExt;
use serde_json::json;
use stage::{agent, tool};

/// Lines that a test writes.
type Lines = Arc<Mutex<Vec<String>>>;

fn tell(lines: &Lines, line: impl Into<String>) {
    lines.lock().expect("no panic").push(line.into());
}

fn told(lines: &Lines) -> Vec<String> {
    std::mem::take(&mut *lines.lock().expect("no panic"))
}

/// A middleware that tells when it goes in and out.
fn told_by(name: &'static str, lines: &Lines) -> impl adjutant_agent::Middleware + 'static {
    let lines = Arc::clone(lines);
    middleware_fn(
        name,
        move |cx: DriveContext, next: NextDrive<'_>| -> BoxDrive<'_> {
            let lines = Arc::clone(&lines);
            Box::pin(async move {
                tell(&lines, format!("{name} in"));
                let result = next.run(cx).await;
                tell(&lines, format!("{name} out"));
                result
            })
        },
    )
}

/// A journal, the agent in its log `log`.
fn kept(agent: &Agent) -> (MemoryJournal, Agent) {
    let journal = MemoryJournal::default();
    let agent = agent
        .clone()
        .journal(journal.clone())
        .session(LogId("log".into()));
    (journal, agent)
}

/// The records of the log.
async fn records(journal: &MemoryJournal) -> Vec<Record> {
    let stamped: Vec<_> = journal.read(&LogId("log".into()), Seq(0)).collect().await;
    stamped
        .into_iter()
        .map(|it| it.expect("memory does not fail").record.clone())
        .collect()
}

/// The names of records.
fn names(records: &[Record]) -> Vec<String> {
    let name = |record: &Record| {
        let value = serde_json::to_value(record).expect("a record is JSON");
        value
            .as_object()
            .and_then(|value| value.keys().next())
            .expect("a tag")
            .to_owned()
    };
    records.iter().map(name).collect()
}

fn failure(message: &str) -> Failure {
    Failure::Middleware {
        message: message.into(),
    }
}

async fn all(agent: &Agent, prompt: &str) -> Vec<Event> {
    agent
        .run(prompt)
        .stream()
        .expect("the session is free")
        .collect()
        .await
}

/// The one result that the stream ends with.
#[track_caller]
fn only_end(events: &[Event]) -> RunResult {
    let ends = events.iter().filter_map(|event| match &event.kind {
        EventKind::RunFinished { result } => Some(result),
        _ => None,
    });
    let ends: Vec<_> = ends.collect();
    assert_eq!(ends.len(), 1, "{events:?}");
    assert!(matches!(
        events.last().expect("there are events").kind,
        EventKind::RunFinished { .. }
    ));
    assert!(matches!(events[0].kind, EventKind::RunStarted));
    RunResult::clone(ends[0])
}

#[tokio::test]
async fn first_middleware_is_outermost_when_there_are_several() {
    let (lines, (_, agent)) = (Lines::default(), agent([Script::new().text("Hi.")]));
    let agent = agent
        .middleware(told_by("1", &lines))
        .middleware(told_by("2", &lines))
        .middleware(told_by("3", &lines));
    agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        told(&lines),
        ["1 in", "2 in", "3 in", "3 out", "2 out", "1 out"]
    );
}

#[tokio::test]
async fn middleware_sees_result_and_error_when_a_drive_ends() {
    let lines = Lines::default();
    let (_, agent) = agent([Script::new().text("One."), Script::new().text("Two.")]);
    let (journal, agent) = kept(&agent);
    let seen = Arc::clone(&lines);
    let looks = middleware_fn(
        "looks",
        move |cx: DriveContext, next: NextDrive<'_>| -> BoxDrive<'_> {
            let seen = Arc::clone(&seen);
            Box::pin(async move {
                let result = next.run(cx).await;
                let text = result.as_ref().map(RunResult::text);
                tell(&seen, text.unwrap_or_else(|failure| failure.to_string()));
                result
            })
        },
    );
    let refuses = middleware_fn(
        "refuses",
        |cx: DriveContext, next: NextDrive<'_>| -> BoxDrive<'_> {
            Box::pin(async move {
                let result = next.run(cx).await?;
                if result.text() == "Two." {
                    Err(failure("not that"))
                } else {
                    Ok(result)
                }
            })
        },
    );
    let agent = agent.middleware(looks).middleware(refuses);
    assert_eq!(
        agent.run("Go.").await.expect("the run finishes").text(),
        "One."
    );
    let events = all(&agent, "Again.").await;
    assert_eq!(told(&lines), ["One.", "not that"]);
    let outcome = Outcome::Failed {
        failure: failure("not that"),
    };
    assert_eq!(only_end(&events).outcome, outcome);
    let last = records(&journal).await.pop();
    assert_eq!(
        last,
        Some(Record::Overruled {
            run: adjutant_agent::RunNo(2),
            outcome,
            by: "refuses".into(),
            instead: None
        })
    );
}

#[tokio::test]
async fn middleware_replaces_the_outcome_when_it_gives_another() {
    let (_, agent) = agent([Script::new().text("One.")]);
    let limits = middleware_fn(
        "limits",
        |cx: DriveContext, next: NextDrive<'_>| -> BoxDrive<'_> {
            Box::pin(async move {
                let mut result = next.run(cx).await?;
                result.outcome = Outcome::Cancelled {
                    by: CancelBy::Parent,
                };
                Ok(result)
            })
        },
    );
    let result = agent
        .middleware(limits)
        .run("Go.")
        .await
        .expect("a cancel is no error");
    assert_eq!(
        (result.outcome, result.turns),
        (
            Outcome::Cancelled {
                by: CancelBy::Parent
            },
            1
        )
    );
}

#[tokio::test]
async fn run_is_told_and_recorded_when_a_middleware_keeps_it_from_beginning() {
    let (model, agent) = agent([Script::new().text("Now.")]);
    let (journal, free) = kept(&agent);
    let refuses = middleware_fn(
        "refuses",
        |_: DriveContext, _: NextDrive<'_>| -> BoxDrive<'_> {
            Box::pin(async move { Err(failure("closed")) })
        },
    );
    let closed = free.clone().middleware(refuses);
    let events = all(&closed, "Go.").await;
    assert_eq!(
        only_end(&events).outcome,
        Outcome::Failed {
            failure: failure("closed")
        }
    );
    assert_eq!(
        (model.requests().len(), free.log().transcript().len()),
        (0, 0)
    );
    assert_eq!(names(&records(&journal).await), ["began", "ended"]);
    assert_eq!(
        free.run("Go.").await.expect("the session is usable").text(),
        "Now."
    );
}

#[tokio::test]
async fn turn_is_closed_when_a_middleware_leaves_the_drive_in_its_middle() {
    let reached = Arc::new(tokio::sync::Notify::new());
    let script = [
        Script::new().call("waits", json!({})),
        Script::new().text("Next."),
    ];
    let (_, agent) = agent(script);
    let begins = Arc::clone(&reached);
    let body = tool("waits", move |_, _| {
        begins.notify_one();
        std::future::pending::<Result<CallResult, _>>()
    });
    let (journal, free) = kept(&agent.tool(body));
    let leaves = middleware_fn(
        "leaves",
        move |cx: DriveContext, next: NextDrive<'_>| -> BoxDrive<'_> {
            let reached = Arc::clone(&reached);
            Box::pin(async move {
                tokio::select! {
                    biased;
                    result = next.run(cx) => result,
                    () = reached.notified() => Err(failure("left")),
                }
            })
        },
    );
    let events = all(&free.clone().middleware(leaves), "Go.").await;
    let end = only_end(&events);
    assert_eq!(
        (end.outcome, end.calls.len()),
        (
            Outcome::Failed {
                failure: failure("left")
            },
            1
        )
    );
    let shown = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::ToolFinished { .. }))
        .count();
    assert_eq!(shown, 1);
    let seqs: Vec<_> = events.iter().map(|event| event.seq).collect();
    assert!(seqs.is_sorted(), "{seqs:?}");
    let last = names(&records(&journal).await);
    assert_eq!(
        last[last.len() - 4..],
        ["returned", "settled", "ended", "overruled"]
    );
    assert_eq!(
        free.run("Again.")
            .await
            .expect("the session is usable")
            .text(),
        "Next."
    );
}

#[tokio::test(start_paused = true)]
async fn run_ends_when_a_middleware_hangs_and_someone_wishes_to_stop() {
    let (model, agent) = agent([Script::new().text("One."), Script::new().text("Two.")]);
    let hangs = |before: bool| {
        middleware_fn(
            "hangs",
            move |cx: DriveContext, next: NextDrive<'_>| -> BoxDrive<'_> {
                Box::pin(async move {
                    if before {
                        std::future::pending::<()>().await;
                    }
                    let _ = next.run(cx).await;
                    std::future::pending().await
                })
            },
        )
    };
    for (before, expect) in [(true, "cancelled"), (false, "finished")] {
        let mut running = agent
            .clone()
            .middleware(hangs(before))
            .run("Go.")
            .stream()
            .expect("the session is free");
        let stopper = running.stopper();
        let events = async {
            let mut events = Vec::new();
            while let Some(event) = running.next().await {
                events.push(event);
            }
            events
        };
        let stops = async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            stopper.stop(CancelBy::User);
        };
        let (events, ()) = tokio::join!(events, stops);
        assert_eq!(only_end(&events).outcome.kind(), expect);
    }
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn parked_run_stays_parked_when_middleware_lets_it_pass() {
    let journal = MemoryJournal::default();
    let lines = Lines::default();
    let model = ScriptedModel::new([Script::new().text("Hi.")]);
    let agent = Agent::new(model)
        .journal(journal)
        .middleware(told_by("1", &lines));
    let limits = adjutant_agent::Limits {
        max_turns: Some(0),
        at_limit: adjutant_agent::AtLimit::Ask,
        ..adjutant_agent::Limits::default()
    };
    let agent = agent.limits(limits);
    let parked = agent.run("Go.").await.expect("a pause is no error");
    let Outcome::Paused { pauses } = parked.outcome else {
        panic!("it is parked: {:?}", parked.outcome)
    };
    let answer = adjutant_tool::Answer::Extend {
        by: 1,
        message: None,
    };
    let answers = vec![pauses[0].with_answer(answer)];
    let result = agent.resume(answers).await.expect("the run finishes");
    assert_eq!(result.text(), "Hi.");
    assert_eq!(told(&lines), ["1 in", "1 out", "1 in", "1 out"]);
}

//! Runs that are stopped, dropped, timed out or interrupted while agents under them work or wait.

use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use adjutant_agent::{
    Agent, CancelBy, Caps, Continue, ErrorKind, Event, EventKind, HookContext, Limit, Limits,
    MemoryJournal, Outcome, Record, Running, Spawn, Verdict, points,
};
use adjutant_llm::{
    CallResult, Entry, Gate, Model, ModelInfo, Request, Script, ScriptedModel, Status, model_fn,
};
use adjutant_tool::{Answer, CallContext, ErasedTool, Replay, tool_fn};
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::{
    desk::{calls, open, results, said, says, tool, word},
    stage::{Clock, WAYS, Waits, answered, boss, by_entry, check, count, log, pauses, through},
};

const BY_USER: Outcome = Outcome::Cancelled { by: CancelBy::User };

/// An agent that speaks until it is stopped.
fn endless(gate: &Gate) -> Agent {
    let gate = gate.clone();
    Agent::new(model_fn(
        ModelInfo::new("a/endless"),
        move |request: Request| {
            ScriptedModel::new([Script::new().text("On and on.").wait_at(1, &gate)]).stream(request)
        },
    ))
}

/// A tool that runs a waiting child and an endless one side by side.
fn both(way: Waits, gate: &Gate, replay: Replay) -> impl ErasedTool + 'static {
    let gate = gate.clone();
    tool("work", replay, move |cx| {
        let gate = gate.clone();
        async move {
            let (one, other) = (
                open(&cx, "kid", way.child()).await?,
                open(&cx, "endless", endless(&gate)).await?,
            );
            let (one, other) = tokio::join!(one.run("Go."), other.run("Go."));
            Ok(CallResult::ok(format!("{} {}", one?.text(), other?.text())))
        }
    })
}

async fn goes_on(agent: &Agent, journal: &MemoryJournal) {
    assert_eq!(
        agent
            .run("Again.")
            .await
            .expect("the session goes on")
            .text(),
        "Done."
    );
    assert!(
        check(journal)
            .await
            .values()
            .all(|run| run.history().iter().count() < 20)
    );
}

async fn until(running: &mut Running, wanted: impl Fn(&Event) -> bool) {
    while let Some(event) = running.next().await {
        if wanted(&event) {
            return;
        }
    }
    unreachable!("the run ended too early");
}

#[tokio::test(start_paused = true)]
async fn run_ends_when_it_is_cancelled_while_one_child_waits_and_one_works() {
    for way in WAYS {
        for replay in [Replay::Resumable, Replay::Once] {
            let (journal, gate) = (MemoryJournal::default(), Gate::default());
            let agent = boss(&journal, both(way, &gate, replay));
            let mut running = agent.run("Go.").stream().expect("the session is free");
            if replay == Replay::Resumable {
                until(&mut running, |it| {
                    it.who.depth == 1 && word(it) == "run_paused"
                })
                .await;
            }
            let stopper = running.stopper();
            let stop = tokio::spawn(async move {
                gate.wait_until_reached().await;
                tokio::time::sleep(Duration::from_secs(1)).await;
                stopper.stop(CancelBy::User);
            });
            let result = running.finish().await.expect("a cancel is no error");
            stop.await.expect("no panic");
            assert_eq!(result.outcome, BY_USER, "{way:?} {replay:?}");
            assert_eq!(result.calls.len(), 1);
            let log = log(&journal).await;
            assert_eq!(
                (count(&log, "child_opened"), count(&log, "child_ended")),
                (2, 2),
                "{way:?} {replay:?}"
            );
            assert_eq!(result.total_usage.total(), 110 * 2, "{way:?} {replay:?}");
            goes_on(&agent, &journal).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn run_ends_when_it_is_cancelled_while_a_responder_of_a_child_hangs() {
    for way in WAYS {
        let journal = MemoryJournal::default();
        let agent = boss(&journal, through(move || way.child())).responder(|_, _| pending());
        let mut running = agent.run("Go.").stream().expect("the session is free");
        until(&mut running, |it| word(it) == "paused").await;
        running.cancel();
        let result = running.finish().await.expect("a cancel is no error");
        assert_eq!(result.outcome, BY_USER, "{way:?}");
        assert!(
            check(&journal).await.values().all(|run| !run.is_open()),
            "{way:?}"
        );
        goes_on(&agent, &journal).await;
    }
}

#[tokio::test]
async fn run_that_waits_for_a_child_ends_when_it_is_cancelled() {
    for way in WAYS {
        for restart in [false, true] {
            let journal = MemoryJournal::default();
            let agent = boss(&journal, through(move || way.child()));
            agent.run("Go.").await.expect("the run waits");
            let agent = if restart {
                boss(&journal, through(move || way.child()))
            } else {
                agent
            };
            let ended = agent.cancel_paused().await.expect("a cancel is no error");
            assert_eq!(
                (ended.outcome.clone(), ended.total_usage.total()),
                (BY_USER, 220),
                "{way:?} {restart}"
            );
            let log = log(&journal).await;
            assert_eq!(
                (count(&log, "child_opened"), count(&log, "child_ended")),
                (1, 1),
                "{way:?} {restart}"
            );
            assert!(agent.log().pauses().is_empty());
            assert_eq!(
                agent.resume(vec![]).await.expect_err("it ended").kind(),
                ErrorKind::Answers
            );
            goes_on(&agent, &journal).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn session_goes_on_when_its_run_is_dropped_while_children_work() {
    for way in WAYS {
        let (journal, gate) = (MemoryJournal::default(), Gate::default());
        let agent = boss(&journal, both(way, &gate, Replay::Resumable));
        let mut running = agent.run("Go.").stream().expect("the session is free");
        until(&mut running, |it| {
            it.who.depth == 1 && word(it) == "text_delta"
        })
        .await;
        drop(running);
        goes_on(&agent, &journal).await;
        let log = log(&journal).await;
        assert_eq!(
            (count(&log, "child_opened"), count(&log, "child_ended")),
            (2, 2),
            "{way:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn run_ends_when_its_time_is_over_while_children_work() {
    for way in WAYS {
        for capped in [false, true] {
            let (journal, gate) = (MemoryJournal::default(), Gate::default());
            let agent = boss(&journal, both(way, &gate, Replay::Resumable))
                .world(Clock(tokio::time::Instant::now()));
            let agent = agent
                .session(adjutant_agent::LogId(super::stage::LOG.into()))
                .take_over();
            let five = Duration::from_secs(5);
            let result = if capped {
                agent
                    .clone()
                    .limits(Limits {
                        caps: Caps {
                            wall_ms: Some(5_000),
                            ..Caps::default()
                        },
                        ..Limits::default()
                    })
                    .run("Go.")
                    .await
            } else {
                agent.run("Go.").deadline(five).await
            };
            let outcome = result.expect("no failure").outcome;
            let expect = match capped {
                true => Outcome::Limit { limit: Limit::Time },
                false => Outcome::Cancelled {
                    by: CancelBy::Deadline,
                },
            };
            assert_eq!(outcome, expect, "{way:?} {capped}");
            let log = log(&journal).await;
            assert_eq!(
                (count(&log, "child_opened"), count(&log, "child_ended")),
                (2, 2),
                "{way:?} {capped}"
            );
            goes_on(&agent, &journal).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn children_end_when_their_call_is_stopped_alone() {
    for way in WAYS {
        for replay in [Replay::Resumable, Replay::Pure] {
            let (journal, gate) = (MemoryJournal::default(), Gate::default());
            let agent = boss(&journal, both(way, &gate, replay));
            let mut running = agent.run("Go.").stream().expect("the session is free");
            let mut call = None;
            while let Some(event) = running.next().await {
                match event.kind {
                    EventKind::ToolStarted { call: started, .. } if event.who.depth == 0 => {
                        call = Some(started)
                    }
                    EventKind::TextDelta { .. } if event.who.depth == 1 => break,
                    _ => {}
                }
            }
            running.stopper().stop_call(call.expect("it started"));
            let result = running.finish().await.expect("no failure");
            assert_eq!(
                (result.calls[0].result.status, result.text()),
                (Status::Cancelled, "Done.".to_owned()),
                "{way:?} {replay:?}"
            );
            let log = log(&journal).await;
            assert_eq!(
                count(&log, "child_opened"),
                count(&log, "child_ended"),
                "{way:?} {replay:?}"
            );
            goes_on(&agent, &journal).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn children_end_when_their_call_runs_out_of_time() {
    let (journal, gate) = (MemoryJournal::default(), Gate::default());
    let agent = boss(&journal, both(Waits::Approval, &gate, Replay::Resumable))
        .calls(|calls| calls.timeout = Some(Duration::from_secs(5)));
    let result = agent.run("Go.").await.expect("no failure");
    assert_eq!(
        (result.calls[0].result.status, result.text()),
        (Status::TimedOut, "Done.".to_owned())
    );
    goes_on(&agent, &journal).await;
}

#[tokio::test]
async fn steering_waits_for_the_results_when_a_child_is_at_work() {
    let (journal, gate) = (MemoryJournal::default(), Gate::default());
    let inside = gate.clone();
    let agent = boss(&journal, through(move || endless(&inside)));
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, |it| {
        it.who.depth == 1 && word(it) == "text_delta"
    })
    .await;
    running.queue().steer("steer").expect("there is room");
    running
        .queue()
        .interrupt("interrupt")
        .expect("there is room");
    running.queue().follow_up("follow").expect("there is room");
    until(&mut running, |it| word(it) == "message_queued").await;
    gate.open();
    let result = running.finish().await.expect("the run finishes");
    assert_eq!(results(&result), ["On and on."]);
    let said: Vec<String> = result
        .entries
        .iter()
        .filter_map(|it| match it {
            Entry::User(message) => Some(
                message
                    .content
                    .iter()
                    .filter_map(|it| it.as_text())
                    .collect(),
            ),
            _ => None,
        })
        .collect();
    assert_eq!(said, ["Go.", "steer", "interrupt", "follow"]);
    let log = log(&journal).await;
    assert_eq!(count(&log, "queued"), 3);
    check(&journal).await;
}

#[tokio::test]
async fn early_call_ends_when_its_reply_is_interrupted() {
    let (gate, begun) = (Gate::default(), tokio::sync::watch::Sender::new(0));
    let counts = begun.clone();
    let look = tool("look", Replay::Pure, move |cx: CallContext| {
        counts.send_modify(|it| *it += 1);
        async move {
            let spawn = cx.get::<dyn Spawn>().expect("a call of a run");
            let child = spawn
                .open("kid", Agent::new(by_entry(&[], "Never.")).into())
                .await?;
            Ok(said(&child.run("Go.").await?))
        }
    });
    let held = calls(&["look"]).text("And then?").wait_at(2, &gate);
    let model = Arc::new(ScriptedModel::new([held, says("Done.")]));
    let journal = MemoryJournal::default();
    let agent = boss(&journal, look)
        .model(Arc::clone(&model))
        .calls(|calls| calls.early = true);
    let task = tokio::spawn(
        agent
            .run("Go.")
            .stream()
            .expect("the session is free")
            .finish(),
    );
    gate.wait_until_reached().await;
    begun
        .subscribe()
        .wait_for(|it| *it == 1)
        .await
        .expect("it begins early");
    agent.queue().interrupt("Stop.").expect("there is room");
    let result = task.await.expect("no panic").expect("the run finishes");
    assert_eq!((result.text().as_str(), *begun.borrow()), ("Done.", 1));
    assert_eq!(
        result
            .calls
            .iter()
            .map(|it| it.result.status)
            .collect::<Vec<_>>(),
        [Status::Cancelled]
    );
    assert_eq!(count(&log(&journal).await, "child_opened"), 0);
    check(&journal).await;
}

#[tokio::test]
async fn session_is_busy_when_it_runs_and_nothing_changes_then() {
    let (journal, gate) = (MemoryJournal::default(), Gate::default());
    let inside = gate.clone();
    let agent = boss(&journal, through(move || endless(&inside)));
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, |it| {
        it.who.depth == 1 && word(it) == "text_delta"
    })
    .await;
    agent.queue().steer("steer").expect("there is room");
    assert_eq!(
        agent.run("x").await.expect_err("it runs").kind(),
        ErrorKind::Busy
    );
    assert_eq!(
        agent
            .log()
            .append(vec![Entry::User("x".into())])
            .await
            .expect_err("it runs")
            .kind(),
        ErrorKind::Busy
    );
    assert_eq!(
        agent.resume(vec![]).await.expect_err("it runs").kind(),
        ErrorKind::Busy
    );
    assert_eq!(
        agent.cancel_paused().await.expect_err("it runs").kind(),
        ErrorKind::Busy
    );
    assert_eq!(
        agent.log().open().await.expect_err("it runs").kind(),
        ErrorKind::Busy
    );
    assert_eq!(
        agent.run(Continue).await.expect_err("it runs").kind(),
        ErrorKind::Busy
    );
    assert!(!agent.queue().is_empty());
    gate.open();
    assert!(
        running
            .finish()
            .await
            .expect("the run finishes")
            .is_finished()
    );
    check(&journal).await;
}

#[tokio::test]
async fn run_can_be_continued_after_every_outcome() {
    let down = || adjutant_llm::Error::new(adjutant_llm::ErrorKind::Overloaded, "down");
    let broken = model_fn(ModelInfo::new("a/b"), move |_| {
        Box::pin(futures_util::stream::iter([Err(down())]))
    });
    let journal = MemoryJournal::default();
    let agent = boss(&journal, through(|| Waits::Body.child()));
    assert_eq!(
        agent
            .run(Continue)
            .await
            .expect_err("nothing was said")
            .kind(),
        ErrorKind::Prompt
    );
    assert_eq!(
        agent
            .run("Go on.")
            .model(broken)
            .await
            .expect_err("it fails")
            .kind(),
        ErrorKind::Failed
    );
    assert_eq!(
        agent.run(Continue).await.expect("it goes on").text(),
        "Done."
    );
    assert_eq!(
        agent.run(Continue).await.expect_err("an answer").kind(),
        ErrorKind::Prompt
    );
    let result = agent.run("Go.").max_turns(1).await.expect("it waits");
    let answers = pauses(&result)
        .iter()
        .map(|it| answered(&it.id, Answer::give("x")))
        .collect();
    let limited = agent.resume(answers).await.expect("no failure");
    assert!(
        matches!(
            limited.outcome,
            Outcome::Limit { .. } | Outcome::Finished { .. }
        ),
        "{:?}",
        limited.outcome
    );
    agent.run("Go.").await.expect("it waits");
    agent.cancel_paused().await.expect("it ends");
    assert_eq!(
        agent.run(Continue).await.expect("it goes on").text(),
        "Done."
    );
    check(&journal).await;
}

#[tokio::test]
async fn run_goes_on_when_hooks_tools_and_listeners_panic_inside_children() {
    let journal = MemoryJournal::default();
    let heard = Arc::new(AtomicUsize::new(0));
    let child = || {
        let panics = tool_fn(
            adjutant_tool::ToolSpec::new("step", "A tool.", json!({"type": "object"})),
            |_: Value, _| async { panic!("no step") },
        );
        let agent = Agent::new(by_entry(&["step"], "Survived.")).tool(panics);
        let agent = agent.on(|_: HookContext, point: points::AfterTool| async move {
            assert!(point.call.name.as_str().is_empty(), "no hook");
            Verdict::Pass(point)
        });
        agent.on(|_: HookContext, point: points::AfterRun| async move {
            assert!(point.result.calls.is_empty(), "no end");
            Verdict::Pass(point)
        })
    };
    let agent = boss(&journal, through(child));
    let counts = Arc::clone(&heard);
    let listener = agent.log().on_event(move |event| {
        counts.fetch_add(1, Ordering::SeqCst);
        assert!(event.who.depth == 0, "no listener");
    });
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(result.text(), "Done.");
    check(&journal).await;
    drop(agent);
    listener.await.expect("it ends with the session");
    assert!(heard.load(Ordering::SeqCst) > 20);
}

#[tokio::test]
async fn listener_hears_children_once_when_it_reads_late_or_at_once() {
    let journal = MemoryJournal::default();
    let many = tool("work", Replay::Once, |cx| async move {
        for number in 0..60 {
            open(
                &cx,
                &format!("k{number}"),
                Agent::new(by_entry(&[], "A text.")),
            )
            .await?
            .run("Look.")
            .await?;
        }
        Ok(CallResult::ok("All."))
    });
    let agent = boss(&journal, many);
    let (mut late, live) = (agent.log().subscribe(), Arc::new(Mutex::new(Vec::new())));
    let into = Arc::clone(&live);
    let listener = agent
        .log()
        .on_event(move |event| into.lock().expect("no panic").push(event));
    let mut read = Vec::new();
    let mut running = agent.run("Go.").stream().expect("the session is free");
    while let Some(event) = running.next().await {
        read.push(event);
    }
    drop(running);
    drop(agent);
    let mut heard = Vec::new();
    while let Some(event) = late.next().await {
        heard.push(event);
    }
    listener.await.expect("it ends with the session");
    let lasting = |events: &[Event]| -> Vec<String> {
        let is = |it: &&Event| {
            !["delta", "block", "reply_started", "progress"]
                .iter()
                .any(|part| word(it).contains(part))
        };
        events
            .iter()
            .filter(is)
            .map(|it| format!("{} {} {}", it.who.thread, it.seq, word(it)))
            .collect()
    };
    let live = live.lock().expect("no panic").clone();
    assert_eq!(lasting(&read), lasting(&live));
    assert_eq!(lasting(&read), lasting(&heard));
    let ends = read
        .iter()
        .filter(|it| it.who.depth == 1 && word(it) == "run_finished")
        .count();
    assert_eq!(ends, 60);
    assert_eq!(
        log(&journal)
            .await
            .iter()
            .filter(|it| matches!(it.record, Record::ChildEnded { .. }))
            .count(),
        60
    );
}

#[tokio::test]
async fn key_can_be_used_again_when_its_child_was_let_go() {
    let journal = MemoryJournal::default();
    let work = || {
        tool("work", Replay::Resumable, |cx| async move {
            let first = open(&cx, "kid", Agent::new(by_entry(&[], "One.")))
                .await?
                .run("Look.")
                .await?
                .text();
            let child = open(&cx, "kid", Agent::new(by_entry(&[], "Two."))).await?;
            assert!(
                open(&cx, "kid", Agent::new(by_entry(&[], "No.")))
                    .await
                    .is_err(),
                "it is open"
            );
            let second = child.run("Look.").await?.text();
            drop(child);
            let word = cx.ask("word", "Word?").await?;
            let third = open(&cx, "kid", Waits::Body.child())
                .await?
                .run("Go.")
                .await?
                .text();
            Ok(CallResult::ok(format!("{first} {second} {third} {word}")))
        })
    };
    let mut result = boss(&journal, work()).run("Go.").await.expect("it waits");
    while !result.is_finished() {
        let answers = pauses(&result)
            .iter()
            .map(|it| answered(&it.id, Answer::give("x")))
            .collect();
        result = boss(&journal, work())
            .resume(answers)
            .await
            .expect("it goes on");
    }
    assert_eq!(results(&result), [r#"One. Two. Stepped on. "x""#]);
    assert_eq!(result.total_usage.total(), 110 * 6);
    check(&journal).await;
}

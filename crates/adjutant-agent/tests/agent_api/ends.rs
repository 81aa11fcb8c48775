//! How runs end, and what their results tell.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use adjutant_agent::{
    Agent, CancelBy, Completion, EventKind, Failure, HookContext, Hooks, Outcome, Verdict,
    points::{AfterModel, AfterTool, ModelError},
};
use adjutant_llm::{
    CallResult, Entry, Error, ErrorKind, FixedWorld, Gate, Model, ModelInfo, Script, ScriptedModel,
    Usage, World, model_fn,
};
use futures_util::stream;
use serde_json::json;

use super::stage::{agent, events, tool};

fn used(input_uncached: u64, output: u64) -> Usage {
    Usage {
        input_uncached,
        output,
        ..Usage::default()
    }
}

fn named(event: &EventKind) -> String {
    serde_json::to_value(event).expect("events are JSON")["event"]
        .as_str()
        .expect("a tag")
        .to_owned()
}

async fn check_failure(model: impl Model + 'static, error: &Error) {
    let points: Arc<Mutex<Vec<&str>>> = Arc::default();
    let seen = Arc::clone(&points);
    let agent = Agent::new(model).hooks(
        Hooks::default().observe(move |it| seen.lock().expect("no panic inside").push(it.point)),
    );
    agent.queue().follow_up("Later.").expect("there is room");
    let events = events(agent.run("Go.").stream().expect("the session is free")).await;
    let Some(EventKind::RunFinished { result }) = events.last() else {
        unreachable!("the last event")
    };
    assert_eq!(
        result.outcome,
        Outcome::Failed {
            failure: Failure::Model {
                error: error.clone()
            }
        }
    );
    let names: Vec<String> = events.iter().map(named).collect();
    assert_eq!(names[names.len() - 2..], ["turn_finished", "run_finished"]);
    let turn_points = ["next_turn", "after_turn", "message_placed", "after_model"];
    let reached = points.lock().expect("no panic inside").clone();
    assert!(
        !reached.iter().any(|point| turn_points.contains(point)),
        "{reached:?}"
    );
    assert_eq!(
        (!agent.queue().is_empty(), agent.is_running()),
        (true, false)
    );
}

#[tokio::test]
async fn model_failure_is_an_outcome_when_the_request_cannot_be_made() {
    let error = Error::new(ErrorKind::Auth, "the key is wrong");
    let at_once = error.clone();
    let at_once = model_fn(ModelInfo::new("test/fails"), move |_| {
        Box::pin(stream::iter([Err(at_once.clone())])) as adjutant_llm::ChunkStream
    });
    check_failure(at_once, &error).await;
    check_failure(
        ScriptedModel::new([Script::new().fail(error.clone())]),
        &error,
    )
    .await;
    check_failure(
        ScriptedModel::new([Script::new().text("Half an").fail(error.clone())]),
        &error,
    )
    .await;
}

#[tokio::test]
async fn run_tells_who_cancelled_it_when_a_run_is_stopped() {
    for by in [CancelBy::User, CancelBy::Parent, CancelBy::Shutdown] {
        let gate = Gate::default();
        let (_, agent) = agent([Script::new().text("Never.").wait_at(0, &gate)]);
        let running = agent.run("Go.").stream().expect("the session is free");
        let stopper = running.stopper();
        let task = tokio::spawn(events(running));
        gate.wait_until_reached().await;
        stopper.stop(by);
        let events = task.await.expect("no panic");
        let Some(EventKind::RunFinished { result }) = events.last() else {
            unreachable!("the last event")
        };
        assert_eq!(result.outcome, Outcome::Cancelled { by });
        assert_eq!(
            events
                .iter()
                .filter(|event| **event == EventKind::CancelAsked { by })
                .count(),
            1
        );
    }
}

#[tokio::test(start_paused = true)]
async fn run_tells_who_cancelled_it_when_its_time_is_over() {
    let gate = Gate::default();
    let (_, agent) = agent([Script::new().text("Never.").wait_at(0, &gate)]);
    let result = agent
        .run("Go.")
        .deadline(Duration::from_secs(5))
        .await
        .expect("a cancel is no error");
    assert_eq!(
        result.outcome,
        Outcome::Cancelled {
            by: CancelBy::Deadline
        }
    );
}

/// A world whose clock a tool moves.
#[derive(Debug)]
struct Shared(Arc<FixedWorld>);

impl World for Shared {
    fn now_ms(&self) -> u64 {
        self.0.now_ms()
    }

    fn id(&self) -> u128 {
        self.0.id()
    }

    fn unit(&self) -> f64 {
        self.0.unit()
    }
}

#[tokio::test]
async fn result_tells_reply_usage_and_turns_when_hooks_and_queues_took_part() {
    let world = Arc::new(FixedWorld::at_ms(1_000));
    let clock = Arc::clone(&world);
    let (_, agent) = agent([
        Script::new().call("work", json!({})).usage(used(10, 1)),
        Script::new().text("First.").usage(used(20, 2)),
        Script::new().text("Second.").usage(used(30, 3)),
    ]);
    let agent = agent
        .world(Shared(world))
        .tool(tool("work", move |_, cx| {
            clock.advance_ms(5);
            cx.backend.charge(used(100, 0));
            async { Ok(CallResult::ok("worked")) }
        }))
        .on(|_: HookContext, mut point: AfterTool| async move {
            point.result.details = json!("checked");
            Verdict::Pass(point)
        });
    agent.queue().follow_up("And then?").expect("there is room");
    let result = agent.run("Go.").await.expect("the run finishes");
    assert!(
        matches!(&result.outcome, Outcome::Finished { reply, why: Completion::Answer } if reply.text() == "Second.")
    );
    assert_eq!((result.text().as_str(), result.turns), ("Second.", 3));
    assert_eq!(
        (result.usage, result.total_usage),
        (used(60, 6), used(160, 6))
    );
    assert_eq!(
        (result.duration, result.agent.name.as_ref()),
        (Duration::from_millis(5), "agent")
    );
    let kinds: String = result
        .entries
        .iter()
        .map(|it| {
            if matches!(it, Entry::User(_)) {
                'u'
            } else {
                't'
            }
        })
        .collect();
    assert_eq!(kinds, "uttut");
    let calls: Vec<_> = result
        .calls
        .iter()
        .map(|call| {
            (
                call.name.to_string(),
                call.duration,
                call.result.text(),
                call.result.details.clone(),
            )
        })
        .collect();
    assert_eq!(
        calls,
        [(
            "work".to_owned(),
            Duration::from_millis(5),
            "worked".to_owned(),
            json!("checked")
        )]
    );
}

#[tokio::test]
async fn after_model_tells_the_duration_and_model_error_the_error() {
    let (world, gate) = (Arc::new(FixedWorld::at_ms(1_000)), Gate::default());
    let fails = Script::new().fail(Error::new(ErrorKind::Auth, "the key is wrong"));
    let (_, agent) = agent([Script::new().text("Hi.").wait_at(0, &gate), fails]);
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let (replies, errors) = (Arc::clone(&told), Arc::clone(&told));
    let agent = agent
        .world(Shared(Arc::clone(&world)))
        .on(move |_: HookContext, point: AfterModel| {
            let line = format!("{} {:?}", point.reply.text(), point.duration);
            replies.lock().expect("no panic inside").push(line);
            async { Verdict::Pass(point) }
        })
        .on(move |_: HookContext, point: ModelError| {
            let line = format!("{} {}", point.error, point.reply.is_some());
            errors.lock().expect("no panic inside").push(line);
            async { Verdict::Pass(point) }
        });
    let running = agent
        .run("Go.")
        .stream()
        .expect("the session is free")
        .detach();
    gate.wait_until_reached().await;
    world.advance_ms(7);
    gate.open();
    running.await.expect("no panic").expect("the run finishes");
    agent.run("Again.").await.expect_err("the model fails");
    assert_eq!(
        *told.lock().expect("no panic inside"),
        ["Hi. 7ms", "the key is wrong false"]
    );
}

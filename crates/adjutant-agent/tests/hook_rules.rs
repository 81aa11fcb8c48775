//! The rules of a chain of hooks, at the points around a run.

#[path = "loop_rules/stage.rs"]
#[expect(dead_code, reason = "the rest is for other tests")]
mod stage;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use adjutant_agent::{
    Agent, CancelBy, Event, EventKind, Failure, HookContext, Hooks, Outcome, Verdict,
    points::{AfterAgent, AfterRun, BeforeAgent, BeforeRun, UserMessage},
};
use adjutant_llm::{Error, ErrorKind, Script, WarningKind};
use futures_util::StreamExt;
use serde_json::json;

type Lines = Arc<Mutex<Vec<String>>>;

fn tell(lines: &Lines, line: impl Into<String>) {
    lines.lock().expect("no panic").push(line.into());
}

fn told(lines: &Lines) -> Vec<String> {
    std::mem::take(&mut *lines.lock().expect("no panic"))
}

async fn all(agent: &Agent, prompt: &str) -> Vec<Event> {
    agent
        .run(prompt)
        .stream()
        .expect("the session is free")
        .collect()
        .await
}

/// The outcome that the one last event tells.
#[track_caller]
fn outcome(events: &[Event]) -> Outcome {
    let ends: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::RunFinished { result } => Some(result.outcome.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(ends.len(), 1, "{events:?}");
    assert!(matches!(
        events.last().expect("there are events").kind,
        EventKind::RunFinished { .. }
    ));
    ends[0].clone()
}

fn warnings(events: &[Event]) -> Vec<String> {
    let warning = |event: &Event| match &event.kind {
        EventKind::Warning { warning } if warning.kind == WarningKind::HookFailed => {
            Some(warning.to_string())
        }
        _ => None,
    };
    events.iter().filter_map(warning).collect()
}

fn denied(point: &str, reason: &str) -> Outcome {
    Outcome::Failed {
        failure: Failure::Denied {
            point: point.into(),
            reason: reason.into(),
        },
    }
}

/// A hook that adds a mark to the message and tells what it saw.
fn marking(
    mark: &'static str,
    lines: &Lines,
) -> impl Fn(HookContext, UserMessage) -> std::future::Ready<Verdict<UserMessage>> + Send + Sync + 'static
{
    let lines = Arc::clone(lines);
    move |_, mut point| {
        let text = point.message.content[0]
            .as_text()
            .expect("it is text")
            .to_owned();
        tell(&lines, format!("{mark}: {text}"));
        point.message = format!("{text}{mark}").into();
        std::future::ready(Verdict::Pass(point))
    }
}

#[tokio::test]
async fn hooks_run_in_their_order_when_several_are_registered() {
    let (lines, (_, agent)) = (Lines::default(), stage::agent([Script::new().text("Hi.")]));
    let agent = agent
        .hooks(
            Hooks::default()
                .on(marking("a", &lines))
                .on(marking("b", &lines)),
        )
        .on(marking("c", &lines));
    agent.run("-").await.expect("the run finishes");
    assert_eq!(told(&lines), ["a: -", "b: -a", "c: -ab"]);
}

#[tokio::test]
async fn changes_feed_forward_when_several_hooks_change() {
    let (lines, (model, agent)) = (Lines::default(), stage::agent([Script::new().text("Hi.")]));
    let agent =
        agent
            .on(marking("a", &lines))
            .on(|_: HookContext, mut point: UserMessage| async move {
                point.message = "last".into();
                Verdict::Pass(point)
            });
    agent.run("-").await.expect("the run finishes");
    let sent = serde_json::to_string(&model.requests()[0].entries).expect("entries are JSON");
    assert!(sent.contains("last") && !sent.contains("-a"), "{sent}");
}

#[tokio::test]
async fn deny_ends_the_chain_when_a_later_hook_would_pass() {
    let (lines, (_, agent)) = (Lines::default(), stage::agent([]));
    let agent = agent
        .on(|_: HookContext, _: UserMessage| async move { Verdict::Deny("no".into()) })
        .on(marking("later", &lines));
    let events = all(&agent, "-").await;
    assert_eq!(outcome(&events), denied("user_message", "no"));
    let shown = events.iter().any(|event| {
        matches!(&event.kind, EventKind::Denied { point, reason, call: None } if **point == *"user_message" && **reason == *"no")
    });
    assert!(shown, "{events:?}");
    assert_eq!(told(&lines), [""; 0]);
}

#[tokio::test]
async fn before_point_denies_when_its_hook_fails() {
    let (model, agent) = stage::agent([]);
    let failing = |_: HookContext, _: UserMessage| async move {
        Err::<Verdict<UserMessage>, _>("no such file")
    };
    let events = all(&agent.clone().on(failing), "Go.").await;
    assert_eq!(outcome(&events), denied("user_message", "no such file"));
    let failing = |_: HookContext, _: BeforeAgent| async move {
        Err::<Verdict<BeforeAgent>, _>("no such file")
    };
    let events = all(&agent.on(failing), "Go.").await;
    assert_eq!(outcome(&events), denied("before_agent", "no such file"));
    assert_eq!(model.requests().len(), 0);
}

#[tokio::test]
async fn before_point_denies_when_its_hook_panics() {
    let (_, agent) = stage::agent([Script::new().text("Hi.")]);
    let bursting = |_: HookContext, _: UserMessage| -> std::future::Ready<Verdict<UserMessage>> {
        panic!("it burst")
    };
    let events = all(&agent.clone().on(bursting), "Go.").await;
    assert_eq!(
        outcome(&events),
        denied("user_message", "a hook of user_message panicked: it burst")
    );
    let bursting = |_: HookContext, _: BeforeAgent| async move {
        if true {
            panic!("it burst");
        }
        Verdict::Deny("".into())
    };
    let events = all(&agent.clone().on(bursting), "Go.").await;
    assert_eq!(
        outcome(&events),
        denied("before_agent", "a hook of before_agent panicked: it burst")
    );
    assert_eq!(
        agent
            .run("Again.")
            .await
            .expect("the session is usable")
            .text(),
        "Hi."
    );
}

#[tokio::test]
async fn after_point_is_a_warning_when_its_hook_fails() {
    let (_, agent) = stage::agent([Script::new().text("Hi."), Script::new().text("Hi.")]);
    for panics in [false, true] {
        let failing = move |_: HookContext, _: AfterAgent| async move {
            if panics {
                panic!("it burst");
            }
            Err::<Verdict<AfterAgent>, _>("it failed")
        };
        let events = all(&agent.clone().on(failing), "Go.").await;
        assert!(
            matches!(outcome(&events), Outcome::Finished { reply, .. } if reply.text() == "Hi.")
        );
        let why = if panics {
            "a hook of after_agent panicked: it burst"
        } else {
            "it failed"
        };
        assert_eq!(
            warnings(&events),
            [format!(
                "a hook of after_agent failed and is passed over: {why}"
            )]
        );
    }
}

#[tokio::test]
async fn observer_is_a_warning_when_it_fails_or_panics() {
    let (_, agent) = stage::agent([Script::new().text("Hi.")]);
    let hooks = Hooks::default().observe(|seen| assert_ne!(seen.point, "before_run", "it burst"));
    let agent = agent
        .hooks(hooks)
        .on(|_: HookContext, _: AfterRun| async move { Err::<Verdict<AfterRun>, _>("it failed") });
    let events = all(&agent, "Go.").await;
    assert!(matches!(outcome(&events), Outcome::Finished { .. }));
    let expect = [
        "an observer of before_run panicked and is passed over",
        "a hook of after_run failed and is passed over: it failed",
    ];
    assert_eq!(warnings(&events), expect);
    assert!(matches!(events[0].kind, EventKind::RunStarted));
}

/// Counts how often each point of the run is reached and not denied.
fn counted(lines: &Lines) -> Hooks {
    let lines = Arc::clone(lines);
    Hooks::default().observe(move |seen| {
        if seen.denied.is_none() {
            tell(&lines, seen.point);
        }
    })
}

#[track_caller]
fn check_balanced(lines: &Lines, agents: usize) {
    let points = told(lines);
    let count = |point: &str| points.iter().filter(|it| *it == point).count();
    let counts = ["before_run", "after_run", "before_agent", "after_agent"].map(count);
    assert_eq!(counts, [1, 1, agents, agents], "{points:?}");
}

#[tokio::test]
async fn before_and_after_are_balanced_when_a_run_ends_anyhow() {
    let lines = Lines::default();
    let failed = || Script::new().fail(Error::new(ErrorKind::Auth, "the key is wrong"));
    let (_, agent) = stage::agent([
        Script::new().text("Hi."),
        failed(),
        Script::new().text("Hi."),
        Script::new().call("none", json!({})),
    ]);
    let agent = agent.hooks(counted(&lines));
    all(&agent, "Finished.").await;
    check_balanced(&lines, 1);
    all(&agent, "A failure of the model.").await;
    check_balanced(&lines, 1);
    let deny = |_: HookContext, _: UserMessage| async move { Verdict::Deny("no".into()) };
    all(&agent.clone().on(deny), "Denied.").await;
    check_balanced(&lines, 0);
    let fail = |_: HookContext, _: BeforeAgent| async move { Err::<Verdict<BeforeAgent>, _>("no") };
    all(&agent.clone().on(fail), "An error before the agent.").await;
    check_balanced(&lines, 0);
    let source = async |_| Err::<String, _>("no words".into());
    let unready = agent
        .clone()
        .instructions(adjutant_agent::instructions::Instructions::default().source(source));
    let events = all(&unready, "No instructions.").await;
    check_balanced(&lines, 1);
    assert!(matches!(
        outcome(&events),
        Outcome::Failed {
            failure: Failure::Instructions { .. }
        }
    ));
    let fail = |_: HookContext, _: AfterAgent| async move { Err::<Verdict<AfterAgent>, _>("no") };
    all(&agent.clone().on(fail), "An error after the agent.").await;
    check_balanced(&lines, 1);
    let events = all(&agent.clone().max_turns(1), "A limit.").await;
    check_balanced(&lines, 1);
    assert_eq!(outcome(&events).kind(), "limit");
    let running = agent
        .run("A cancel.")
        .stream()
        .expect("the session is free");
    running.cancel();
    let events: Vec<_> = running.collect().await;
    check_balanced(&lines, 1);
    assert_eq!(outcome(&events), Outcome::Cancelled { by: CancelBy::User });
}

#[tokio::test]
async fn before_and_after_are_balanced_when_the_drive_is_left_or_bursts() {
    let lines = Lines::default();
    let (_, agent) = stage::agent([Script::new().call("hangs", json!({}))]);
    let reached = Arc::new(tokio::sync::Notify::new());
    let begins = Arc::clone(&reached);
    let agent = agent
        .hooks(counted(&lines))
        .tool(stage::tool("hangs", move |_, _| {
            begins.notify_one();
            std::future::pending()
        }));
    let leaves = adjutant_agent::middleware_fn("leaves", move |cx, next| {
        let reached = Arc::clone(&reached);
        Box::pin(async move {
            tokio::select! {
                biased;
                result = next.run(cx) => result,
                () = reached.notified() => panic!("it burst"),
            }
        })
    });
    let events = all(&agent.middleware(leaves), "Go.").await;
    assert!(matches!(
        outcome(&events),
        Outcome::Failed {
            failure: Failure::Middleware { .. }
        }
    ));
    check_balanced(&lines, 1);
}

#[tokio::test(start_paused = true)]
async fn run_is_cancelled_when_a_hook_hangs_and_someone_wishes_to_stop() {
    let lines = Lines::default();
    let (model, agent) = stage::agent([Script::new().text("Hi.")]);
    let agent = agent.hooks(counted(&lines));
    let hanging = agent
        .clone()
        .on(|cx: HookContext, point: BeforeAgent| async move {
            cx.cancel.cancelled().await;
            std::future::pending::<()>().await;
            Verdict::Pass(point)
        });
    let running = hanging.run("Go.").stream().expect("the session is free");
    let stopper = running.stopper();
    let stops = async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        stopper.stop(CancelBy::User);
    };
    let (events, ()) = tokio::join!(running.collect::<Vec<_>>(), stops);
    assert_eq!(outcome(&events), Outcome::Cancelled { by: CancelBy::User });
    assert_eq!(
        (model.requests().len(), agent.log().transcript().len()),
        (0, 0)
    );
    check_balanced(&lines, 0);
    let hanging = agent
        .clone()
        .on(|_: HookContext, point: AfterRun| async move {
            std::future::pending::<()>().await;
            Verdict::Pass(point)
        });
    let running = hanging.run("Go.").stream().expect("the session is free");
    let stopper = running.stopper();
    let stops = async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        stopper.stop(CancelBy::User);
    };
    let (events, ()) = tokio::join!(running.collect::<Vec<_>>(), stops);
    assert_eq!(outcome(&events).kind(), "finished");
}

#[tokio::test]
async fn panic_of_any_hook_of_a_run_leaves_a_valid_session_when_it_happens() {
    fn burst<T>() -> T {
        panic!("it burst")
    }
    let cases: [(&str, Hooks, &str); 5] = [
        (
            "before_run",
            Hooks::default()
                .on(|_: HookContext, _: BeforeRun| async { burst::<Verdict<BeforeRun>>() }),
            "finished",
        ),
        (
            "user_message",
            Hooks::default()
                .on(|_: HookContext, _: UserMessage| async { burst::<Verdict<UserMessage>>() }),
            "failed",
        ),
        (
            "before_agent",
            Hooks::default()
                .on(|_: HookContext, _: BeforeAgent| async { burst::<Verdict<BeforeAgent>>() }),
            "failed",
        ),
        (
            "after_agent",
            Hooks::default()
                .on(|_: HookContext, _: AfterAgent| async { burst::<Verdict<AfterAgent>>() }),
            "finished",
        ),
        (
            "after_run",
            Hooks::default()
                .on(|_: HookContext, _: AfterRun| async { burst::<Verdict<AfterRun>>() }),
            "finished",
        ),
    ];
    for (point, hooks, expect) in cases {
        let (_, agent) = stage::agent([Script::new().text("One."), Script::new().text("Two.")]);
        let events = all(&agent.clone().hooks(hooks), "Go.").await;
        assert_eq!(outcome(&events).kind(), expect, "{point}");
        let next = agent.run("Again.").await.expect("the session is usable");
        assert_eq!(
            next.text(),
            if expect == "finished" { "Two." } else { "One." },
            "{point}"
        );
    }
}

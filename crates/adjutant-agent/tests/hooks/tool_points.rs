//! `before_tool`: whether a call runs, and with which arguments.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use adjutant_agent::{
    Agent, CancelBy, HookContext, Journal, MemoryJournal, Outcome, Record, Seq, Verdict,
    points::{AfterTool, BeforeTool, ToolError},
};
use adjutant_llm::{Entry, Script, ScriptedModel, Status};
use adjutant_tool::{Answer, Approval, ToolSpec, external_tool};
use futures_util::StreamExt;
use serde_json::json;
use tokio::sync::Notify;

use super::stage::{agent, answered, calls, names, script, spec};
use super::watch::{Ran, shown, told};

type Seen = Arc<Mutex<Vec<String>>>;

fn deny(agent: Agent, reason: &'static str) -> Agent {
    agent.on(move |_: HookContext, _: BeforeTool| async move {
        Verdict::<BeforeTool>::Deny(reason.into())
    })
}

fn see(seen: &Seen, what: String) {
    seen.lock().expect("nobody panics inside").push(what);
}

#[tokio::test]
async fn call_is_denied_when_before_tool_says_so() {
    let (ran, (model, agent)) = (
        Ran::default(),
        agent(script(&[("write", json!({"n": "1"}))])),
    );
    let agent = deny(agent.tool(ran.tool(spec("write"))), "it is Friday");
    let told = told(agent.run("Go.").stream().expect("the session is free")).await;
    let expect = [
        "reply_finished",
        "denied",
        "tool_started",
        "tool_finished",
        "turn_finished",
    ];
    assert_eq!(told[4..9], expect);
    assert_eq!(shown(&model, 1), ["not executed: it is Friday"]);
    let Entry::Turn(turn) = &agent
        .log()
        .transcript()
        .iter()
        .nth(1)
        .expect("a turn")
        .entry
        .clone()
    else {
        unreachable!("a turn")
    };
    let (call, result) = turn.pairs().next().expect("one call");
    assert_eq!(
        (&*call.args, result.status, result.args.clone()),
        (r#"{"n":"1"}"#, Status::Denied, None)
    );
    assert!(ran.args().is_empty());
}

#[tokio::test]
async fn denial_says_something_when_it_has_no_reason() {
    let (_, agent) = agent(script(&[("write", json!({"n": 1}))]));
    let agent = deny(agent.tool(Ran::default().tool(spec("write"))), " ");
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(calls(&result)[0].2, "not executed: denied by a hook");
}

#[tokio::test]
async fn call_is_denied_when_a_hook_panics() {
    let (ran, (_, agent)) = (Ran::default(), agent(script(&[("write", json!({"n": 1}))])));
    let agent =
        agent
            .tool(ran.tool(spec("write")))
            .on(|_: HookContext, point: BeforeTool| async move {
                if point.args["n"] == 1 {
                    std::panic::resume_unwind(Box::new("oh".to_owned()));
                }
                Verdict::Pass(point)
            });
    let result = agent.run("Go.").await.expect("the run finishes");
    let text = "not executed: a hook of before_tool panicked: oh";
    assert_eq!(
        (calls(&result), ran.args().len()),
        (vec![("write".into(), Status::Denied, text.into())], 0)
    );
}

#[tokio::test]
async fn arguments_are_changed_when_before_tool_says_so() {
    let (ran, seen) = (Ran::default(), Seen::default());
    let (later, after, failed) = (Arc::clone(&seen), Arc::clone(&seen), Arc::clone(&seen));
    let (model, agent) = agent(script(&[("write", json!({"n": 1}))]));
    let agent = agent
        .tool(ran.tool(ToolSpec {
            approval: Approval::Always,
            ..spec("write")
        }))
        .on(|_: HookContext, mut point: BeforeTool| async move {
            point.args["n"] = json!("2");
            Verdict::Pass(point)
        })
        .on(move |_: HookContext, point: BeforeTool| {
            see(&later, format!("before {}", point.args));
            async { Verdict::Pass(point) }
        })
        .on(move |_: HookContext, point: ToolError| {
            see(&failed, format!("error {}", point.args));
            async { Verdict::Pass(point) }
        })
        .on(move |_: HookContext, point: AfterTool| {
            see(&after, format!("after {}", point.args));
            async { Verdict::Pass(point) }
        });
    let parked = agent.run("Go.").await.expect("the run waits");
    let asked = super::stage::pauses(&parked)[0]
        .call
        .as_ref()
        .map(|call| call.args.to_string());
    assert_eq!(asked.as_deref(), Some(r#"{"n":2}"#));
    let result = agent
        .resume(vec![answered(&names(&parked)[0], Answer::approve())])
        .await
        .expect("the run finishes");
    assert_eq!(
        *seen.lock().expect("nobody panics inside"),
        [r#"before {"n":"2"}"#, r#"after {"n":2}"#]
    );
    assert_eq!(
        (ran.args(), shown(&model, 1)),
        (vec![json!({"n": 2})], vec![r#"{"n":2}"#.to_owned()])
    );
    let Entry::Turn(turn) = &result.entries[1] else {
        unreachable!("a turn follows the prompt")
    };
    let (call, ended) = turn.pairs().next().expect("one call");
    assert_eq!(
        (&*call.args, ended.args.as_deref()),
        (r#"{"n":1}"#, Some(r#"{"n":2}"#))
    );
}

#[tokio::test]
async fn changed_arguments_are_refused_when_they_do_not_fit() {
    let (ran, (_, agent)) = (Ran::default(), agent(script(&[("write", json!({"n": 1}))])));
    let agent = agent.tool(ran.tool(spec("write"))).on(
        |_: HookContext, mut point: BeforeTool| async move {
            point.args["n"] = json!("many");
            Verdict::Pass(point)
        },
    );
    let result = agent.run("Go.").await.expect("the run finishes");
    let text = &calls(&result)[0].2;
    assert!(
        text.starts_with("invalid arguments for tool \"write\":\n  - /n: "),
        "{text}"
    );
    assert_eq!(
        (result.calls[0].result.status, ran.args().len()),
        (Status::InvalidArguments, 0)
    );
}

#[tokio::test]
async fn before_tool_keeps_the_order_of_calls_when_tools_run_together() {
    let batch: Vec<_> = (0..6).map(|n| ("write", json!({"n": n}))).collect();
    let (_, agent) = agent(script(&batch));
    let (inside, before, after) = (
        Arc::new(AtomicUsize::new(0)),
        Seen::default(),
        Arc::new(AtomicUsize::new(0)),
    );
    let (seen, ended) = (Arc::clone(&before), Arc::clone(&after));
    let agent = agent.tool(Ran::default().tool(spec("write")));
    let agent = agent.on(move |_: HookContext, point: BeforeTool| {
        let (inside, seen) = (Arc::clone(&inside), Arc::clone(&seen));
        async move {
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at a time");
            see(&seen, point.args["n"].to_string());
            // The first ones take longest.
            for _ in point.args["n"].as_u64().unwrap_or_default()..6 {
                tokio::task::yield_now().await;
            }
            inside.fetch_sub(1, Ordering::SeqCst);
            Verdict::Pass(point)
        }
    });
    let agent = agent.on(move |_: HookContext, point: AfterTool| {
        ended.fetch_add(1, Ordering::SeqCst);
        async { Verdict::Pass(point) }
    });
    let result = agent.run("Go.").await.expect("the run finishes");
    assert!(
        result
            .calls
            .iter()
            .all(|call| call.result.status == Status::Ok),
        "{:?}",
        calls(&result)
    );
    assert_eq!(
        *before.lock().expect("nobody panics inside"),
        ["0", "1", "2", "3", "4", "5"]
    );
    assert_eq!(after.load(Ordering::SeqCst), 6);
}

#[tokio::test]
async fn hooks_apply_when_a_call_is_run_elsewhere() {
    let (_, agent) = agent(script(&[
        ("away", json!({"n": 1})),
        ("away", json!({"n": 2})),
    ]));
    let agent = agent.tool(external_tool(spec("away"))).on(
        |_: HookContext, point: BeforeTool| async move {
            if point.args["n"] == 1 {
                Verdict::Deny("not this one".into())
            } else {
                Verdict::Pass(point)
            }
        },
    );
    let parked = agent.run("Go.").await.expect("the run waits");
    assert_eq!(names(&parked), ["main/c1_0_1"]);
    assert_eq!(
        calls(&parked),
        [(
            "away".into(),
            Status::Denied,
            "not executed: not this one".into()
        )]
    );
}

#[tokio::test]
async fn verdicts_are_not_asked_again_when_a_log_is_driven_on() {
    let journal = MemoryJournal::default();
    let asked = Arc::new(AtomicUsize::new(0));
    let start = |agent: Agent| {
        let asked = Arc::clone(&asked);
        let agent = agent
            .journal(journal.clone())
            .tool(Ran::default().tool(ToolSpec {
                approval: Approval::Always,
                ..spec("write")
            }));
        agent.on(move |_: HookContext, point: BeforeTool| {
            asked.fetch_add(1, Ordering::SeqCst);
            async move {
                if point.args["n"] == 1 {
                    Verdict::Deny("no".into())
                } else {
                    Verdict::Pass(point)
                }
            }
        })
    };
    let first = start(
        agent(script(&[
            ("write", json!({"n": 1})),
            ("write", json!({"n": 2})),
        ]))
        .1,
    );
    let parked = first.run("Go.").await.expect("the run waits");
    let other = start(Agent::new(ScriptedModel::new(
        [Script::new().text("Done.")],
    )))
    .session(first.session_id().clone())
    .take_over();
    let answers = vec![answered(&names(&parked)[0], Answer::approve())];
    let result = other.resume(answers).await.expect("the run finishes");
    let statuses: Vec<Status> = result.calls.iter().map(|call| call.result.status).collect();
    assert_eq!(
        (statuses, asked.load(Ordering::SeqCst)),
        (vec![Status::Denied, Status::Ok], 2)
    );
    let log: Vec<_> = journal.read(first.session_id(), Seq(0)).collect().await;
    let denied = log
        .iter()
        .flatten()
        .filter(|it| matches!(it.record, Record::Denied { .. }))
        .count();
    assert_eq!(denied, 1);
}

#[tokio::test]
async fn run_ends_when_it_is_cancelled_while_before_tool_hangs() {
    let (ran, (_, agent)) = (
        Ran::default(),
        agent(script(&[
            ("write", json!({"n": 1})),
            ("write", json!({"n": 2})),
        ])),
    );
    let agent = agent.tool(ran.tool(spec("write")));
    let reached = Arc::new(Notify::new());
    let reaches = Arc::clone(&reached);
    let agent = agent.on(move |_: HookContext, _: BeforeTool| {
        reaches.notify_one();
        std::future::pending::<Verdict<BeforeTool>>()
    });
    let running = agent.run("Go.").stream().expect("the session is free");
    let stopper = running.stopper();
    let task = tokio::spawn(running.finish());
    reached.notified().await;
    stopper.stop(CancelBy::User);
    let result = task.await.expect("no panic").expect("a cancel is no error");
    assert_eq!(result.outcome, Outcome::Cancelled { by: CancelBy::User });
    assert_eq!((calls(&result).len(), ran.args().len()), (2, 0));
}

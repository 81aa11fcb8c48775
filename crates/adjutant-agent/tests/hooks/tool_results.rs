//! `tool_error` and `after_tool`: what becomes of the result of a call that ran.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use adjutant_agent::{
    Agent, CancelBy, HookContext, Outcome, Verdict,
    points::{AfterTool, BeforeTool, ToolError as Failed},
};
use adjutant_llm::{CallResult, Content, Script, Status, Terminate};
use adjutant_tool::{CallContext, ErasedTool, ToolError, tool_fn};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::stage::{agent, calls, script, spec};
use super::watch::{shown, told};

type Seen = Arc<Mutex<Vec<String>>>;

/// A tool that fails in a way that its argument picks.
fn fails() -> impl ErasedTool + 'static {
    tool_fn(spec("fails"), |args: Value, _: CallContext| async move {
        match args["n"].as_u64() {
            Some(0) => Err(ToolError::failed("an error")),
            Some(1) => Ok(CallResult {
                details: json!(1),
                ..CallResult::new(Status::Failed, "an error result")
            }),
            Some(2) => std::panic::resume_unwind(Box::new("a panic".to_owned())),
            Some(3) => std::future::pending().await,
            _ => Ok(CallResult::ok("fine")),
        }
    })
}

fn batch() -> [Script; 2] {
    let calls: Vec<_> = (0..5).map(|n| ("fails", json!({"n": n}))).collect();
    script(&calls)
}

/// Notes every point after the body.
fn watched(agent: Agent) -> (Agent, Seen) {
    let seen = Seen::default();
    let (errors, ends) = (Arc::clone(&seen), Arc::clone(&seen));
    let note = |seen: &Seen, what: String| seen.lock().expect("nobody panics inside").push(what);
    let agent = agent
        .on(move |_: HookContext, point: Failed| {
            note(
                &errors,
                format!("error {} {}", point.call.id.block, point.result.text()),
            );
            async { Verdict::Pass(point) }
        })
        .on(move |_: HookContext, point: AfterTool| {
            note(
                &ends,
                format!("after {} {}", point.call.id.block, point.result.text()),
            );
            async { Verdict::Pass(point) }
        });
    (agent, seen)
}

fn sorted(seen: &Seen) -> Vec<String> {
    let mut seen = seen.lock().expect("nobody panics inside").clone();
    seen.sort();
    seen
}

#[tokio::test(start_paused = true)]
async fn tool_error_mends_the_result_when_a_hook_says_so() {
    let (model, agent) = agent(batch());
    let (agent, seen) = watched(
        agent
            .tool(fails())
            .calls(|calls| calls.timeout = Some(Duration::from_secs(1))),
    );
    let mend = |name: &'static str| {
        move |_: HookContext, mut point: Failed| async move {
            if point.result.is_error() {
                point.result = CallResult::ok(format!("mended by {name}"));
            }
            Verdict::Pass(point)
        }
    };
    let agent = agent.on(mend("the first")).on(mend("the second"));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert!(
        result
            .calls
            .iter()
            .all(|call| call.result.status == Status::Ok)
    );
    let mended = "mended by the first";
    assert_eq!(shown(&model, 1), [mended, mended, mended, mended, "fine"]);
    let late = "error 3 the tool did not end within 1s and was given up; it may have taken effect";
    let expect = [
        "after 0 mended by the first",
        "after 1 mended by the first",
        "after 2 mended by the first",
        "after 3 mended by the first",
        "after 4 fine",
        "error 0 an error",
        "error 1 an error result",
        "error 2 the tool panicked: a panic",
        late,
    ];
    assert_eq!(sorted(&seen), expect);
}

#[tokio::test(start_paused = true)]
async fn after_tool_sees_errors_when_a_tool_failed() {
    let (_, agent) = agent(batch());
    let (agent, seen) = watched(
        agent
            .tool(fails())
            .calls(|calls| calls.timeout = Some(Duration::from_secs(1))),
    );
    agent.run("Go.").await.expect("the run finishes");
    let (errors, ends): (Vec<String>, Vec<String>) = sorted(&seen)
        .into_iter()
        .partition(|line| line.starts_with("error"));
    assert_eq!((errors.len(), ends.len()), (4, 5));
    for error in errors {
        assert!(
            ends.contains(&error.replacen("error", "after", 1)),
            "{error}"
        );
    }
}

#[tokio::test]
async fn denied_call_is_not_told_to_tool_error_when_it_never_ran() {
    let calls = [
        ("fails", json!({"n": 0})),
        ("fails", json!({"n": "x"})),
        ("nobody", json!({})),
        ("fails", json!({"n": 1})),
    ];
    let (_, agent) = agent(script(&calls));
    let (agent, seen) = watched(agent.tool(fails()));
    let agent = agent.on(|_: HookContext, point: BeforeTool| async move {
        if point.args["n"] == 0 {
            Verdict::Deny("no".into())
        } else {
            Verdict::Pass(point)
        }
    });
    agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        sorted(&seen),
        ["after 3 an error result", "error 3 an error result"]
    );
}

#[tokio::test]
async fn after_tool_changes_each_field_alone_when_it_sets_it() {
    let was = || CallResult {
        details: json!("was"),
        ..CallResult::ok("was")
    };
    type Change = fn(&mut CallResult);
    let table: [(Change, CallResult); 5] = [
        (
            |result| result.content = vec![Content::text("is")],
            CallResult {
                content: vec![Content::text("is")],
                ..was()
            },
        ),
        (
            |result| result.content = Vec::new(),
            CallResult {
                content: Vec::new(),
                ..was()
            },
        ),
        (
            |result| result.details = json!("is"),
            CallResult {
                details: json!("is"),
                ..was()
            },
        ),
        (
            |result| result.status = Status::Failed,
            CallResult {
                status: Status::Failed,
                ..was()
            },
        ),
        (
            |result| result.terminate = Terminate::Now,
            CallResult {
                terminate: Terminate::Now,
                ..was()
            },
        ),
    ];
    for (change, expect) in table {
        let (_, agent) = agent(script(&[("tool", json!({"n": 1}))]));
        let agent = agent.tool(tool_fn(spec("tool"), move |_: Value, _| async move {
            Ok(was())
        }));
        let agent = agent.on(move |_: HookContext, mut point: AfterTool| {
            change(&mut point.result);
            async { Verdict::Pass(point) }
        });
        let result = agent.run("Go.").await.expect("the run finishes");
        assert_eq!(*result.calls[0].result, expect);
    }
}

#[tokio::test]
async fn result_is_denied_when_after_tool_denies_it() {
    let (model, agent) = agent(script(&[("tool", json!({"n": 1}))]));
    let agent = agent.tool(tool_fn(spec("tool"), |_: Value, _| async {
        Ok(CallResult::ok("secret"))
    }));
    let agent = agent.on(|_: HookContext, _: AfterTool| async {
        Verdict::<AfterTool>::Deny("it is secret".into())
    });
    let told = told(agent.run("Go.").stream().expect("the session is free")).await;
    assert_eq!(told[5..8], ["tool_started", "denied", "tool_finished"]);
    assert_eq!(
        shown(&model, 1),
        ["the call ran, but its result is withheld: it is secret"]
    );
}

#[tokio::test]
async fn result_stays_when_after_tool_panics() {
    let (_, agent) = agent(script(&[("tool", json!({"n": 1}))]));
    let agent = agent.tool(tool_fn(spec("tool"), |_: Value, _| async {
        Ok(CallResult::ok("done"))
    }));
    let agent = agent.on(|_: HookContext, point: AfterTool| async move {
        if !point.result.is_error() {
            std::panic::resume_unwind(Box::new("oh".to_owned()));
        }
        Verdict::Pass(point)
    });
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(calls(&result), [("tool".into(), Status::Ok, "done".into())]);
}

#[tokio::test(start_paused = true)]
async fn points_of_tools_see_the_whole_call_when_they_fire() {
    let (_, agent) = agent(script(&[("tool", json!({"n": "7"}))]));
    let seen = Seen::default();
    let (before, after) = (Arc::clone(&seen), Arc::clone(&seen));
    let agent = agent
        .name("clerk")
        .tool(tool_fn(spec("tool"), |_: Value, _| async {
            Ok(CallResult::new(Status::Failed, "broken"))
        }));
    let agent = agent
        .on(move |cx: HookContext, point: BeforeTool| {
            let line = format!(
                "{} {} {} {} {} {}",
                cx.who.name, cx.run, cx.turn, point.call.id, point.call.args, point.args
            );
            before.lock().expect("nobody panics inside").push(line);
            async { Verdict::Pass(point) }
        })
        .on(move |cx: HookContext, mut point: AfterTool| {
            let line = format!(
                "{} {} {} {:?}",
                cx.who.name,
                point.args,
                point.result.text(),
                point.result.status
            );
            after.lock().expect("nobody panics inside").push(line);
            point.result.content = vec![Content::text("seen")];
            async { Verdict::Pass(point) }
        });
    let result = agent.run("Go.").await.expect("the run finishes");
    let expect = [
        r#"clerk 1 1 c1_0_0 {"n":"7"} {"n":7}"#,
        r#"clerk {"n":7} broken Failed"#,
    ];
    assert_eq!(*seen.lock().expect("nobody panics inside"), expect);
    assert_eq!(
        calls(&result),
        [("tool".into(), Status::Failed, "seen".into())]
    );
}

#[tokio::test(start_paused = true)]
async fn after_tool_stands_behind_every_body_when_the_run_is_cancelled() {
    let (_, agent) = agent(script(&[("fails", json!({"n": 3}))]));
    let started = Arc::new(Notify::new());
    let (agent, seen) = watched(
        agent
            .tool(fails())
            .calls(|calls| calls.grace = Duration::from_secs(1)),
    );
    let begins = Arc::clone(&started);
    let agent = agent.on(move |_: HookContext, point: BeforeTool| {
        begins.notify_one();
        async { Verdict::Pass(point) }
    });
    let running = agent.run("Go.").stream().expect("the session is free");
    let stopper = running.stopper();
    let task = tokio::spawn(running.finish());
    started.notified().await;
    // Time passes only when nothing else can move: the body hangs.
    tokio::time::sleep(Duration::from_millis(1)).await;
    stopper.stop(CancelBy::User);
    let result = task.await.expect("no panic").expect("a cancel is no error");
    assert_eq!(result.outcome, Outcome::Cancelled { by: CancelBy::User });
    let text = "cancelled: the call was stopped; it may have taken effect";
    assert_eq!(
        sorted(&seen),
        [format!("after 0 {text}"), format!("error 0 {text}")]
    );
}

#[tokio::test(start_paused = true)]
async fn run_ends_when_it_is_cancelled_while_after_tool_hangs() {
    let (_, agent) = agent(script(&[("fails", json!({"n": 9}))]));
    let reached = Arc::new(Notify::new());
    let reaches = Arc::clone(&reached);
    let agent = agent.tool(fails()).on(move |_: HookContext, _: AfterTool| {
        reaches.notify_one();
        std::future::pending::<Verdict<AfterTool>>()
    });
    let running = agent.run("Go.").stream().expect("the session is free");
    let stopper = running.stopper();
    let task = tokio::spawn(running.finish());
    reached.notified().await;
    stopper.stop(CancelBy::User);
    let result = task.await.expect("no panic").expect("a cancel is no error");
    // What the tool did stays done, and known.
    assert_eq!(
        calls(&result),
        [("fails".into(), Status::Ok, "fine".into())]
    );
}

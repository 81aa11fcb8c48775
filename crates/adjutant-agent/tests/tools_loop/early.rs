//! Calls that begin while their reply still streams.

use std::time::Duration;

use adjutant_agent::{Agent, CancelBy, HookContext, Limits, Verdict, points::BeforeTool};
use adjutant_llm::{CallResult, Error, ErrorKind, FinishReason, Gate, Script, Status, Usage};
use adjutant_tool::{Approval, Ask, CallContext, ErasedTool, Progress, Replay, ToolSpec, tool_fn};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::stage::{agent, calls, spec};
use super::watch::told;

/// Counts how often a body begins, ends and is dropped.
#[derive(Clone)]
struct Count {
    begun: watch::Sender<usize>,
    dropped: watch::Sender<usize>,
}

impl Count {
    fn new() -> Self {
        Self {
            begun: watch::Sender::new(0),
            dropped: watch::Sender::new(0),
        }
    }

    fn begun(&self) -> usize {
        *self.begun.borrow()
    }

    async fn reached(count: &watch::Sender<usize>, times: usize) {
        count
            .subscribe()
            .wait_for(|count| *count >= times)
            .await
            .map(|_| ())
            .expect("the sender lives");
    }

    /// A tool that looks; `hangs` says whether it ends at all.
    fn tool(&self, spec: ToolSpec, hangs: bool) -> impl ErasedTool + 'static {
        let count = self.clone();
        tool_fn(spec, move |args: Value, cx: CallContext| {
            count.begun.send_modify(|begun| *begun += 1);
            let dropped = Dropped(count.dropped.clone());
            async move {
                let _dropped = dropped;
                cx.progress(Progress::text("looking"));
                cx.backend.charge(Usage {
                    output: 7,
                    ..Usage::default()
                });
                if hangs {
                    std::future::pending::<()>().await;
                }
                Ok(CallResult::ok(args.to_string()))
            }
        })
    }
}

struct Dropped(watch::Sender<usize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.send_modify(|dropped| *dropped += 1);
    }
}

fn look() -> ToolSpec {
    ToolSpec {
        replay: Replay::Pure,
        ..spec("look")
    }
}

/// A call, and a gate behind it that holds the reply open.
fn held(gate: &Gate) -> Script {
    Script::new()
        .call("look", json!({"n": "1"}))
        .text("And then?")
        .wait_at(2, gate)
}

/// Runs to the gate; gives how many bodies have begun there.
async fn begun_at_the_gate(change: impl FnOnce(Agent) -> Agent, spec: ToolSpec) -> usize {
    let (gate, count) = (Gate::default(), Count::new());
    let (_, agent) = agent([held(&gate), Script::new().text("Done.")]);
    let agent = change(agent.tool(count.tool(spec, false)));
    let task = tokio::spawn(
        agent
            .run("Go.")
            .stream()
            .expect("the session is free")
            .finish(),
    );
    gate.wait_until_reached().await;
    // Time passes only when nothing else can move: what begins early has begun.
    tokio::time::sleep(Duration::from_millis(1)).await;
    let begun = count.begun();
    gate.open();
    task.await.expect("no panic").expect("the run ends");
    begun
}

#[tokio::test(start_paused = true)]
async fn call_begins_early_when_it_only_looks_and_nobody_need_be_asked() {
    let early = |agent: Agent| agent.calls(|calls| calls.early = true);
    assert_eq!(begun_at_the_gate(early, look()).await, 1);
    assert_eq!(begun_at_the_gate(|agent| agent, look()).await, 0);
    for replay in [Replay::Once, Replay::Idempotent, Replay::Resumable] {
        assert_eq!(
            begun_at_the_gate(
                early,
                ToolSpec {
                    replay,
                    ..spec("look")
                }
            )
            .await,
            0
        );
    }
    assert_eq!(
        begun_at_the_gate(
            early,
            ToolSpec {
                sequential: true,
                ..look()
            }
        )
        .await,
        0
    );
    assert_eq!(
        begun_at_the_gate(
            early,
            ToolSpec {
                approval: Approval::Always,
                ..look()
            }
        )
        .await,
        0
    );
    assert_eq!(
        begun_at_the_gate(
            early,
            ToolSpec {
                external: true,
                ..look()
            }
        )
        .await,
        0
    );
    let sequential = |agent: Agent| {
        agent.calls(|calls| calls.early = true).limits(Limits {
            sequential: true,
            ..Limits::default()
        })
    };
    assert_eq!(begun_at_the_gate(sequential, look()).await, 0);
    let ruled = |agent: Agent| {
        agent
            .calls(|calls| calls.early = true)
            .approve_when(|_, _| Some(Ask::approval("Look?")))
    };
    assert_eq!(begun_at_the_gate(ruled, look()).await, 0);
    let hooked = |agent: Agent| {
        agent
            .calls(|calls| calls.early = true)
            .on(|_: HookContext, point: BeforeTool| async { Verdict::Pass(point) })
    };
    assert_eq!(begun_at_the_gate(hooked, look()).await, 0);
}

#[tokio::test]
async fn call_runs_once_when_it_began_early() {
    let (gate, count) = (Gate::default(), Count::new());
    let (_, agent) = agent([held(&gate), Script::new().text("Done.")]);
    let agent = agent
        .calls(|calls| calls.early = true)
        .tool(count.tool(look(), false));
    let task = tokio::spawn(told(
        agent.run("Go.").stream().expect("the session is free"),
    ));
    gate.wait_until_reached().await;
    Count::reached(&count.begun, 1).await;
    gate.open();
    let told = task.await.expect("no panic");
    // What it says before it was admitted is not heard, what it spends is counted.
    assert_eq!(
        told[4..8],
        [
            "reply_finished",
            "tool_started",
            "tool_finished",
            "turn_finished"
        ]
    );
    assert_eq!(count.begun(), 1);
    let transcript = agent.log().transcript();
    assert_eq!(transcript.len(), 3);
}

#[tokio::test]
async fn early_call_is_the_call_when_it_is_admitted() {
    let (gate, count) = (Gate::default(), Count::new());
    let (_, agent) = agent([held(&gate), Script::new().text("Done.")]);
    gate.open();
    let result = agent
        .calls(|calls| calls.early = true)
        .tool(count.tool(look(), false))
        .run("Go.")
        .await
        .expect("the run finishes");
    assert_eq!(
        calls(&result),
        [("look".into(), Status::Ok, r#"{"n":1}"#.into())]
    );
    assert_eq!(result.calls[0].result.args.as_deref(), Some(r#"{"n":1}"#));
    assert_eq!(
        (
            count.begun(),
            result.total_usage.output - result.usage.output
        ),
        (1, 7)
    );
}

#[tokio::test]
async fn early_call_is_dropped_when_its_reply_is_retracted() {
    let (gate, count) = (Gate::default(), Count::new());
    let cause = Error::new(ErrorKind::Overloaded, "busy");
    let script = Script::new()
        .text("Never mind.")
        .after_retracted(held(&gate), cause);
    let (_, agent) = agent([script]);
    let agent = agent
        .calls(|calls| calls.early = true)
        .tool(count.tool(look(), true));
    let task = tokio::spawn(
        agent
            .run("Go.")
            .stream()
            .expect("the session is free")
            .finish(),
    );
    gate.wait_until_reached().await;
    Count::reached(&count.begun, 1).await;
    gate.open();
    let result = task.await.expect("no panic").expect("the run finishes");
    Count::reached(&count.dropped, 1).await;
    assert_eq!(
        (result.text().as_str(), result.calls.len()),
        ("Never mind.", 0)
    );
}

#[tokio::test]
async fn early_call_is_dropped_when_its_reply_is_cut_off() {
    let (gate, count) = (Gate::default(), Count::new());
    let (_, agent) = agent([
        held(&gate).stop(FinishReason::Length),
        Script::new().text("Done."),
    ]);
    let agent = agent
        .calls(|calls| calls.early = true)
        .tool(count.tool(look(), true));
    let task = tokio::spawn(
        agent
            .run("Go.")
            .stream()
            .expect("the session is free")
            .finish(),
    );
    gate.wait_until_reached().await;
    Count::reached(&count.begun, 1).await;
    gate.open();
    let result = task.await.expect("no panic").expect("the run finishes");
    Count::reached(&count.dropped, 1).await;
    assert_eq!(
        (result.calls[0].result.status, count.begun()),
        (Status::Truncated, 1)
    );
}

#[tokio::test]
async fn early_call_is_dropped_when_the_run_is_cancelled() {
    let (gate, count) = (Gate::default(), Count::new());
    let (_, agent) = agent([held(&gate)]);
    let agent = agent
        .calls(|calls| calls.early = true)
        .tool(count.tool(look(), true));
    let running = agent.run("Go.").stream().expect("the session is free");
    let stopper = running.stopper();
    let task = tokio::spawn(running.finish());
    gate.wait_until_reached().await;
    Count::reached(&count.begun, 1).await;
    stopper.stop(CancelBy::User);
    task.await.expect("no panic").expect("a cancel is no error");
    Count::reached(&count.dropped, 1).await;
}

#[tokio::test(start_paused = true)]
async fn no_more_calls_begin_early_than_may_run_together() {
    let (gate, count) = (Gate::default(), Count::new());
    let script = (0..5).fold(Script::new(), |script, n| {
        script.call("look", json!({"n": n}))
    });
    let (_, agent) = agent([script.wait_at(1_000, &gate), Script::new().text("Done.")]);
    let agent = agent
        .calls(|calls| calls.early = true)
        .limits(Limits {
            max_parallel_tools: 2,
            ..Limits::default()
        })
        .tool(count.tool(look(), false));
    let task = tokio::spawn(
        agent
            .run("Go.")
            .stream()
            .expect("the session is free")
            .finish(),
    );
    gate.wait_until_reached().await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    let early = count.begun();
    gate.open();
    let result = task.await.expect("no panic").expect("the run finishes");
    assert_eq!((early, count.begun(), result.calls.len()), (2, 5, 5));
}

//! A wish to stop, at every stage of a run: what was said stays, every call is closed, and the session goes on.

#[path = "loop_rules/stage.rs"]
mod stage;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use adjutant_agent::{Agent, CancelBy, EventKind, Limits, Outcome, RunResult, Running};
use adjutant_llm::{
    CallResult, Chunk, Entry, FinishReason, Gate, ModelInfo, Script, ScriptedModel, Status,
    model_fn,
};
use adjutant_tool::{
    CallContext, Cancel, ErasedTool, Identity, Progress, Replay, ToolError, ToolErrorKind,
    ToolSpec, Toolbox, Toolset, tool_fn,
};
use futures_util::{StreamExt, stream};
use serde_json::json;
use stage::{agent, calls, events, spec, tool};
use tokio::{sync::Notify, time::Instant};

const BY_USER: Outcome = Outcome::Cancelled { by: CancelBy::User };

/// Reads events until one is as wanted.
async fn until(running: &mut Running, wanted: impl Fn(&EventKind) -> bool) {
    while let Some(event) = running.next().await {
        if wanted(&event.kind) {
            return;
        }
    }
    unreachable!("the run ended too early");
}

/// The session goes on: the next request shows closed turns only, and ends with the new prompt.
async fn check_next_run(agent: &Agent) {
    let model = Arc::new(ScriptedModel::new([Script::new().text("Here.")]));
    let result = agent
        .run("Still there?")
        .model(Arc::clone(&model))
        .await
        .expect("the session goes on");
    assert_eq!(result.text(), "Here.");
    let request = model.requests().remove(0);
    let open = request.entries.iter().filter(|stored| match &stored.entry {
        Entry::Turn(turn) => turn.pairs().count() != turn.reply().calls().count(),
        _ => false,
    });
    assert_eq!(open.count(), 0);
    assert_eq!(
        request.entries.last().map(|it| it.entry.clone()),
        Some(Entry::User("Still there?".into()))
    );
}

async fn end(running: Running, agent: &Agent) -> RunResult {
    let result = running.finish().await.expect("a cancel is no error");
    check_next_run(agent).await;
    result
}

#[tokio::test]
async fn model_is_not_asked_when_the_run_is_cancelled_first() {
    let (model, agent) = agent([Script::new().text("Never.")]);
    let running = agent.run("Go.").stream().expect("the session is free");
    running.cancel();
    let result = end(running, &agent).await;
    assert_eq!(
        (result.outcome, result.entries.len(), model.requests().len()),
        (BY_USER, 1, 0)
    );
}

#[tokio::test]
async fn model_is_not_asked_when_the_token_was_cancelled_before() {
    let (model, agent) = agent([Script::new().text("Never.")]);
    let cancel = Cancel::new();
    cancel.cancel();
    let result = agent
        .run("Go.")
        .cancel(cancel)
        .await
        .expect("a cancel is no error");
    assert_eq!((result.outcome, model.requests().len()), (BY_USER, 0));
}

/// A toolbox that answers when the second run comes.
struct Stuck(Arc<AtomicUsize>);

#[async_trait::async_trait]
impl Toolbox for Stuck {
    fn name(&self) -> &str {
        "stuck"
    }

    async fn resolve(&self, _: &Identity) -> Result<Toolset, ToolError> {
        if self.0.fetch_add(1, Ordering::SeqCst) == 0 {
            std::future::pending::<()>().await;
        }
        Ok(Toolset::default())
    }
}

#[tokio::test(start_paused = true)]
async fn run_ends_when_it_is_cancelled_while_a_toolbox_hangs() {
    let (model, agent) = agent([Script::new().text("Never.")]);
    let asked = Arc::new(AtomicUsize::new(0));
    let agent = agent.toolbox(Stuck(Arc::clone(&asked)));
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, |event| {
        matches!(event, EventKind::TurnStarted)
    })
    .await;
    let stopper = running.stopper();
    let task = tokio::spawn(running.finish());
    // Time passes only when nothing else can move: the toolbox hangs.
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    stopper.stop(CancelBy::User);
    let result = task.await.expect("no panic").expect("a cancel is no error");
    assert_eq!((result.outcome, model.requests().len()), (BY_USER, 0));
    check_next_run(&agent).await;
}

#[tokio::test]
async fn run_ends_when_it_is_cancelled_before_the_model_says_anything() {
    let asked = Arc::new(Notify::new());
    let asks = Arc::clone(&asked);
    let agent = Agent::new(model_fn(ModelInfo::new("test/silent"), move |_| {
        asks.notify_one();
        Box::pin(stream::pending())
    }));
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, |event| {
        matches!(event, EventKind::TurnStarted)
    })
    .await;
    let stopper = running.stopper();
    let task = tokio::spawn(running.finish());
    asked.notified().await;
    stopper.stop(CancelBy::User);
    let result = task.await.expect("no panic").expect("a cancel is no error");
    assert_eq!(
        (result.outcome, result.entries.len(), result.reply),
        (BY_USER, 1, None)
    );
    check_next_run(&agent).await;
}

#[tokio::test]
async fn run_ends_when_it_is_cancelled_while_a_stream_never_rests() {
    let start = Chunk::Start {
        attempt: 0,
        model: "test/loud".into(),
        limits: Box::default(),
        warnings: Vec::new(),
    };
    let heard = Arc::new(Notify::new());
    let loud = Arc::clone(&heard);
    let agent = Agent::new(model_fn(ModelInfo::new("test/loud"), move |_| {
        let loud = Arc::clone(&loud);
        let usage = move || {
            loud.notify_one();
            Ok(Chunk::Usage {
                usage: Default::default(),
                raw: Default::default(),
            })
        };
        Box::pin(stream::iter([Ok(start.clone())]).chain(stream::repeat_with(usage)))
    }));
    let running = agent.run("Go.").stream().expect("the session is free");
    let stopper = running.stopper();
    let task = tokio::spawn(running.finish());
    heard.notified().await;
    stopper.stop(CancelBy::User);
    assert_eq!(
        task.await
            .expect("no panic")
            .expect("a cancel is no error")
            .outcome,
        BY_USER
    );
    check_next_run(&agent).await;
}

#[tokio::test]
async fn text_stays_when_the_run_is_cancelled_in_the_middle_of_it() {
    let gate = Gate::default();
    let (_, agent) = agent([Script::new()
        .text("one two three")
        .delta_chars(4)
        .wait_at(2, &gate)]);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, |event| {
        *event
            == EventKind::TextDelta {
                block: 0,
                text: "two ".into(),
            }
    })
    .await;
    running.cancel();
    let end = events(running).await;
    let [
        EventKind::CancelAsked { by: CancelBy::User },
        EventKind::ReplyFinished { reply, .. },
        EventKind::TurnFinished,
        EventKind::RunFinished { result },
    ] = &end[..]
    else {
        unreachable!("{end:?}")
    };
    assert_eq!(
        (reply.stop, reply.text().as_str()),
        (FinishReason::Interrupted, "one two ")
    );
    assert_eq!(
        (&result.outcome, result.reply.as_ref(), result.entries.len()),
        (&BY_USER, Some(reply), 2)
    );
    check_next_run(&agent).await;
}

#[tokio::test]
async fn call_never_runs_when_the_run_is_cancelled_after_its_block() {
    let gate = Gate::default();
    let (_, agent) = agent([Script::new().call("echo", json!({})).wait_at(9, &gate)]);
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ran);
    let agent = agent.tool(tool("echo", move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok(CallResult::ok("")) }
    }));
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, |event| {
        matches!(event, EventKind::BlockFinished { .. })
    })
    .await;
    running.cancel();
    let result = end(running, &agent).await;
    let told = "not executed: the run was ended first".to_owned();
    assert_eq!(calls(&result), [("echo".into(), Status::Cancelled, told)]);
    assert_eq!((result.outcome, ran.load(Ordering::SeqCst)), (BY_USER, 0));
}

/// Ends well when it is asked to.
fn polite() -> impl ErasedTool + 'static {
    tool("polite", |_, cx: CallContext| async move {
        cx.progress(Progress::text("here"));
        cx.cancel.cancelled().await;
        Err(ToolError::new(
            ToolErrorKind::Cancelled,
            "stopped in good order",
        ))
    })
}

/// Counts how often a stubborn body was dropped.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn stubborn(name: &str, replay: Replay, dropped: &Arc<AtomicUsize>) -> impl ErasedTool + 'static {
    let dropped = Arc::clone(dropped);
    tool_fn(
        ToolSpec {
            replay,
            ..spec(name)
        },
        move |_, cx: CallContext| {
            let guard = Dropped(Arc::clone(&dropped));
            async move {
                let _guard = guard;
                cx.progress(Progress::text("here"));
                std::future::pending().await
            }
        },
    )
}

/// Cancels a batch once `started` of its calls are at work; gives the result and how long the end took.
async fn cancel_batch(
    names: &[&str],
    started: usize,
    limits: Limits,
) -> (RunResult, Duration, usize) {
    let script = names
        .iter()
        .fold(Script::new(), |script, name| script.call(*name, json!({})));
    let (_, agent) = agent([script]);
    let dropped = Arc::new(AtomicUsize::new(0));
    let agent =
        agent
            .limits(limits)
            .tool(polite())
            .tool(stubborn("stubborn", Replay::Once, &dropped));
    let agent = agent.tool(stubborn("looking", Replay::Pure, &dropped));
    let mut running = agent.run("Go.").stream().expect("the session is free");
    for _ in 0..started {
        until(&mut running, |event| {
            matches!(event, EventKind::ToolProgress { .. })
        })
        .await;
    }
    let begun = Instant::now();
    running.cancel();
    let result = running.finish().await.expect("a cancel is no error");
    let took = begun.elapsed();
    check_next_run(&agent).await;
    assert_eq!(result.outcome, BY_USER);
    // A body on a task of its own is dropped when the runtime comes to it; time passes only after that.
    tokio::time::sleep(Duration::from_millis(1)).await;
    (result, took, dropped.load(Ordering::SeqCst))
}

const WELL: &str = "stopped in good order";
const ABORTED: &str = "cancelled: the call was stopped; it may have taken effect";
const NEVER: &str = "not executed: the run was ended first";

#[track_caller]
fn check_told(result: &RunResult, expect: &[&str]) {
    let expect: Vec<_> = expect
        .iter()
        .map(|text| (Status::Cancelled, (*text).to_owned()))
        .collect();
    let told: Vec<_> = calls(result)
        .into_iter()
        .map(|(_, status, text)| (status, text))
        .collect();
    assert_eq!(told, expect);
}

#[tokio::test(start_paused = true)]
async fn batch_ends_well_when_its_tools_hear_the_cancel() {
    let limits = Limits {
        max_parallel_tools: 2,
        ..Limits::default()
    };
    let (result, took, _) = cancel_batch(&["polite", "polite", "polite"], 2, limits).await;
    check_told(&result, &[WELL, WELL, NEVER]);
    assert_eq!(took, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn batch_is_aborted_after_the_grace_when_a_tool_is_stubborn() {
    let (result, took, dropped) = cancel_batch(&["polite", "stubborn"], 2, Limits::default()).await;
    check_told(&result, &[WELL, ABORTED]);
    assert!(
        (Duration::from_secs(2)..Duration::from_millis(2_010)).contains(&took),
        "{took:?}"
    );
    assert_eq!(dropped, 1);
}

#[tokio::test(start_paused = true)]
async fn batch_is_dropped_at_once_when_its_tools_only_look() {
    let (result, took, dropped) = cancel_batch(&["looking", "looking"], 2, Limits::default()).await;
    check_told(&result, &[ABORTED, ABORTED]);
    assert_eq!((took, dropped), (Duration::ZERO, 2));
}

#[tokio::test(start_paused = true)]
async fn batch_closes_what_waits_when_it_runs_one_by_one() {
    let (result, took, _) = cancel_batch(
        &["polite", "polite", "looking"],
        1,
        Limits {
            sequential: true,
            ..Limits::default()
        },
    )
    .await;
    check_told(&result, &[WELL, NEVER, NEVER]);
    assert_eq!(took, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn grace_is_the_agents_when_it_sets_one() {
    let (_, agent) = agent([Script::new().call("stubborn", json!({}))]);
    let dropped = Arc::new(AtomicUsize::new(0));
    let agent = agent
        .calls(|calls| calls.grace = Duration::from_secs(7))
        .tool(stubborn("stubborn", Replay::Once, &dropped));
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, |event| {
        matches!(event, EventKind::ToolStarted { .. })
    })
    .await;
    let begun = Instant::now();
    running.cancel();
    assert_eq!(dropped.load(Ordering::SeqCst), 0);
    end(running, &agent).await;
    assert_eq!(
        (begun.elapsed().as_secs(), dropped.load(Ordering::SeqCst)),
        (7, 1)
    );
}

#[tokio::test]
async fn result_stays_when_a_tool_succeeds_within_the_grace() {
    let (_, agent) = agent([Script::new().call("save", json!({}))]);
    let agent = agent.tool(tool("save", |_, cx: CallContext| async move {
        cx.cancel.cancelled().await;
        Ok(CallResult::ok("saved"))
    }));
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, |event| {
        matches!(event, EventKind::ToolStarted { .. })
    })
    .await;
    running.cancel();
    let result = end(running, &agent).await;
    assert_eq!(
        calls(&result),
        [("save".into(), Status::Ok, "saved".into())]
    );
    assert_eq!(result.outcome, BY_USER);
}

#[tokio::test]
async fn first_wish_counts_when_a_run_is_cancelled_again() {
    let gate = Gate::default();
    let (_, agent) = agent([Script::new().text("Hello").wait_at(1, &gate)]);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, |event| {
        matches!(event, EventKind::TextDelta { .. })
    })
    .await;
    running.stopper().stop(CancelBy::Parent);
    (0..1_000).for_each(|_| running.cancel());
    let end = events(running).await;
    let asked: Vec<_> = end
        .iter()
        .filter(|event| matches!(event, EventKind::CancelAsked { .. }))
        .collect();
    assert_eq!(
        asked,
        [&EventKind::CancelAsked {
            by: CancelBy::Parent
        }]
    );
    let Some(EventKind::RunFinished { result }) = end.last() else {
        unreachable!("the run ends")
    };
    assert_eq!(
        result.outcome,
        Outcome::Cancelled {
            by: CancelBy::Parent
        }
    );
    check_next_run(&agent).await;
}

#[tokio::test]
async fn nothing_happens_when_a_run_is_cancelled_after_its_end() {
    let (_, agent) = agent([Script::new().text("Hello"), Script::new().text("Again")]);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let stopper = running.stopper();
    until(&mut running, |event| {
        matches!(event, EventKind::RunFinished { .. })
    })
    .await;
    running.cancel();
    stopper.stop(CancelBy::User);
    assert_eq!(running.next().await, None);
    drop(running);
    assert_eq!(
        agent.run("Go.").await.expect("the run finishes").text(),
        "Again"
    );
}

#[tokio::test(start_paused = true)]
async fn turn_is_closed_when_the_stream_is_dropped_within_a_batch() {
    let (_, agent) = agent([Script::new()
        .call("polite", json!({}))
        .call("stubborn", json!({}))]);
    let dropped = Arc::new(AtomicUsize::new(0));
    let agent = agent
        .tool(polite())
        .tool(stubborn("stubborn", Replay::Once, &dropped));
    let mut running = agent.run("Go.").stream().expect("the session is free");
    for _ in 0..2 {
        until(&mut running, |event| {
            matches!(event, EventKind::ToolProgress { .. })
        })
        .await;
    }
    drop(running);
    check_next_run(&agent).await;
    let Entry::Turn(turn) = &agent.log().transcript()[1] else {
        unreachable!("a turn follows the prompt")
    };
    let told: Vec<String> = turn.results().iter().map(|result| result.text()).collect();
    assert_eq!(told, [WELL, ABORTED]);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

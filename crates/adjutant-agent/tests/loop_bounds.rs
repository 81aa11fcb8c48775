//! What tools, toolboxes, models and journals may do to a run: nothing that ends it badly or lets it grow.

#[path = "loop_rules/stage.rs"]
mod stage;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use adjutant_agent::{
    ActivityId, Agent, CancelBy, ErrorKind, EventKind, Failure, Flush, Head, Journal, JournalError,
    JournalErrorKind, Log, LogId, MemoryJournal, Outcome, Owner, RecordStream, Seq, Stamped,
    TurnNo,
};
use adjutant_llm::{
    Block, BlockKind, Call, CallId, CallResult, Chunk, Entry, Error, FinishReason, FixedWorld,
    ModelInfo, Reply, Script, ScriptedModel, Status, Warning, WarningKind, model_fn,
};
use adjutant_tool::{
    CallContext, Identity, Progress, ToolError, ToolSpec, Toolbox, Tools, Toolset, tool_fn,
};
use futures_util::{StreamExt, stream};
use serde_json::json;
use stage::{agent, calls, events, spec, tool};

fn once(name: &str) -> [Script; 2] {
    [
        Script::new().call(name, json!({})),
        Script::new().text("Done."),
    ]
}

#[tokio::test(start_paused = true)]
async fn call_times_out_when_a_tool_takes_too_long() {
    let script = Script::new()
        .call("slow", json!({}))
        .call("quick", json!({}));
    let (_, agent) = agent([script, Script::new().text("Done.")]);
    let hang = |_, _| std::future::pending();
    let agent = agent
        .calls(|calls| calls.timeout = Some(Duration::from_secs(60)))
        .tool(tool("slow", hang));
    let agent = agent.tool(tool_fn(
        ToolSpec {
            timeout: Some(Duration::from_secs(3)),
            ..spec("quick")
        },
        hang,
    ));
    let begun = tokio::time::Instant::now();
    let result = agent.run("Go.").await.expect("the run finishes");
    let told = |seconds: u32| {
        format!("the tool did not end within {seconds}s and was given up; it may have taken effect")
    };
    let slow = ("slow".into(), Status::TimedOut, told(60));
    assert_eq!(
        calls(&result),
        [slow, ("quick".into(), Status::TimedOut, told(3))]
    );
    assert_eq!(
        (begun.elapsed().as_secs(), result.text().as_str()),
        (60, "Done.")
    );
}

#[tokio::test]
async fn model_is_told_when_a_tool_fails_or_panics() {
    let script = Script::new()
        .call("fails", json!({}))
        .call("panics", json!({}));
    let (_, agent) = agent([script, Script::new().text("Done.")]);
    let agent = agent.tool(tool("fails", |_, _| async {
        Err(ToolError::failed("the file could not be read")
            .with_source(std::io::Error::other("no such file")))
    }));
    let agent = agent.tool(tool("panics", |_, _| async {
        std::panic::resume_unwind(Box::new("on purpose"))
    }));
    let result = agent.run("Go.").await.expect("the run finishes");
    let expect = [
        (
            "fails".into(),
            Status::Failed,
            "the file could not be read: no such file".into(),
        ),
        (
            "panics".into(),
            Status::Panicked,
            "the tool panicked: on purpose".into(),
        ),
    ];
    assert_eq!(calls(&result), expect);
}

#[tokio::test]
async fn panic_is_contained_when_it_happens_before_the_first_await() {
    let (_, agent) = agent(once("panics"));
    let agent = agent.tool(tool("panics", |_, _| {
        if true {
            std::panic::resume_unwind(Box::new("at once".to_owned()));
        }
        async { Ok(CallResult::ok("")) }
    }));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(calls(&result)[0].2, "the tool panicked: at once");
}

/// What the model was shown of the first result.
fn shown(model: &ScriptedModel) -> String {
    let Entry::Turn(turn) = &model.requests()[1].entries[1] else {
        unreachable!("a turn follows the prompt")
    };
    turn.results()[0].text()
}

#[tokio::test]
async fn output_is_cut_with_a_notice_when_it_is_large() {
    let (model, agent) = agent(once("big"));
    let agent = agent.tool(tool("big", |_, _| async {
        Ok(CallResult::ok("ö".repeat(5_000_000)))
    }));
    let result = agent.run("Go.").await.expect("the run finishes");
    let text = shown(&model);
    let (kept, notice) = text.split_at(100_000);
    assert_eq!(kept, "ö".repeat(50_000));
    assert_eq!(
        notice,
        "\n[output cut: the first 100000 of 10000000 bytes are shown]"
    );
    let whole = result.calls[0].result.text();
    let (kept, notice) = whole.split_at(4 * 1024 * 1024);
    assert_eq!(kept, "ö".repeat(2 * 1024 * 1024));
    assert_eq!(
        notice,
        "\n[output cut: the first 4194304 of 10000000 bytes are kept]"
    );
}

#[tokio::test]
async fn error_is_cut_with_a_notice_when_it_is_large() {
    let (model, agent) = agent(once("big"));
    let agent = agent.calls(|calls| calls.max_result_bytes = 4);
    let agent = agent.tool(tool("big", |_, _| async {
        Err(ToolError::failed("x".repeat(1_000)))
    }));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        shown(&model),
        "xxxx\n[output cut: the first 4 of 1000 bytes are shown]"
    );
    assert_eq!(
        calls(&result),
        [("big".into(), Status::Failed, "x".repeat(1_000))]
    );
}

#[tokio::test]
async fn progress_is_shown_during_a_call_and_never_after_it() {
    let script = || Script::new().call("talks", json!({}));
    let (_, agent) = agent([script(), script(), Script::new().text("Done.")]);
    let kept: Arc<Mutex<Vec<CallContext>>> = Arc::default();
    let agent = agent.tool(tool("talks", move |_, cx| {
        let kept = Arc::clone(&kept);
        async move {
            // A second call speaks through the first one's door, which is shut.
            kept.lock()
                .expect("nobody panics inside")
                .iter()
                .for_each(|cx| cx.progress(Progress::text("late")));
            cx.progress(Progress::text("on time"));
            tokio::task::yield_now().await;
            cx.progress(Progress::text("still on time"));
            kept.lock().expect("nobody panics inside").push(cx);
            Ok(CallResult::ok(""))
        }
    }));
    let events = events(agent.run("Go.").stream().expect("the session is free")).await;
    let said = events.iter().filter_map(|event| match event {
        EventKind::ToolStarted { call, .. } => Some((call.turn, "started".to_owned())),
        EventKind::ToolProgress { call, progress } => Some((
            call.turn,
            progress.content[0].as_text().unwrap_or_default().to_owned(),
        )),
        EventKind::ToolFinished { call, .. } => Some((call.turn, "finished".to_owned())),
        _ => None,
    });
    let said: Vec<_> = said.collect();
    let each = ["started", "on time", "still on time", "finished"];
    let expect: Vec<_> = [1, 2]
        .iter()
        .flat_map(|turn| each.map(|text| (*turn, text.to_owned())))
        .collect();
    assert_eq!(said, expect);
}

#[tokio::test]
async fn progress_is_thinned_out_when_it_floods() {
    let (_, agent) = agent(once("talks"));
    let agent = agent.tool(tool("talks", |_, cx: CallContext| async move {
        (0..100_000).for_each(|n| cx.progress(Progress::text(n.to_string())));
        Ok(CallResult::ok(""))
    }));
    let events = events(agent.run("Go.").stream().expect("the session is free")).await;
    let shown = events.iter().filter_map(|event| match event {
        EventKind::ToolProgress { progress, .. } => progress.content[0].as_text(),
        _ => None,
    });
    let shown: Vec<&str> = shown.collect();
    assert!(shown.len() <= 64, "{} events waited", shown.len());
    assert_eq!((shown.first(), shown.last()), (Some(&"0"), Some(&"99999")));
}

#[tokio::test]
async fn warning_is_shown_once_when_every_reply_repeats_it() {
    let warning = Warning {
        kind: WarningKind::OptionDropped,
        message: "temperature was dropped".into(),
    };
    let scripts =
        once("nobody").map(|script| script.warning(warning.clone()).warning(warning.clone()));
    let (_, agent) = agent(scripts);
    let events = events(agent.run("Go.").stream().expect("the session is free")).await;
    let shown: Vec<_> = events
        .iter()
        .filter(|event| matches!(event, EventKind::Warning { .. }))
        .collect();
    assert_eq!(shown, [&EventKind::Warning { warning }]);
}

#[tokio::test(start_paused = true)]
async fn run_is_cancelled_when_its_deadline_passes() {
    let (_, agent) = agent(once("slow"));
    let agent =
        agent
            .world(FixedWorld::at_ms(5_000))
            .tool(tool("slow", |_, cx: CallContext| async move {
                cx.cancel.cancelled().await;
                Ok(CallResult::ok("heard"))
            }));
    let begun = tokio::time::Instant::now();
    let result = agent
        .run("Go.")
        .deadline(Duration::from_millis(250))
        .await
        .expect("a cancel is no error");
    assert_eq!(
        result.outcome,
        Outcome::Cancelled {
            by: CancelBy::Deadline
        }
    );
    assert_eq!(
        calls(&result),
        [("slow".into(), Status::Ok, "heard".into())]
    );
    assert!(
        (250..=252).contains(&begun.elapsed().as_millis()),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn run_is_cancelled_when_its_deadline_passes_while_nothing_ever_waits() {
    let (_, agent) = agent((0..10_000).map(|_| Script::new().call("nobody", json!({}))));
    let agent = agent
        .world(FixedWorld::at_ms(5_000))
        .limits(adjutant_agent::Limits {
            max_turns: None,
            ..adjutant_agent::Limits::default()
        });
    let result = agent
        .run("Go.")
        .deadline(Duration::ZERO)
        .await
        .expect("a cancel is no error");
    assert_eq!(
        result.outcome,
        Outcome::Cancelled {
            by: CancelBy::Deadline
        }
    );
}

fn start() -> Chunk {
    Chunk::Start {
        attempt: 0,
        model: "test/model".into(),
        limits: Box::default(),
        warnings: Vec::new(),
    }
}

fn call(turn: u64, block: u32) -> Arc<Block> {
    let id = CallId {
        turn,
        attempt: 0,
        block,
    };
    Arc::new(Block::Call(Call {
        id,
        wire_id: None,
        name: "nobody".into(),
        args: "{}".into(),
        extra: Default::default(),
    }))
}

/// An agent whose model streams these chunks at its first request, and panics at their end if told so.
fn streaming(chunks: Vec<Chunk>, panics: bool) -> Agent {
    let chunks = Mutex::new(Some(chunks));
    Agent::new(model_fn(ModelInfo::new("test/model"), move |_| {
        let chunks = chunks.lock().expect("nobody panics inside").take();
        let done = || {
            vec![
                start(),
                Chunk::Done(Arc::new(Reply::new("test/model".into(), FinishReason::End))),
            ]
        };
        let end = stream::once(async move {
            if panics {
                std::panic::resume_unwind(Box::new("in the stream"));
            }
        });
        let chunks = chunks.unwrap_or_else(done).into_iter().map(Ok::<_, Error>);
        Box::pin(stream::iter(chunks).chain(end.filter_map(|()| async { None })))
    }))
}

async fn failure(agent: &Agent) -> (Failure, Vec<Entry>) {
    let error = agent.run("Go.").await.expect_err("the run fails");
    assert_eq!(error.kind(), ErrorKind::Failed);
    let result = error.result().expect("the run has a result").clone();
    let Outcome::Failed { failure } = result.outcome else {
        unreachable!("the run fails")
    };
    (failure, result.entries)
}

#[track_caller]
fn check_protocol(failure: &Failure, expect: &str) {
    let Failure::Model { error } = failure else {
        unreachable!("the model failed: {failure:?}")
    };
    assert_eq!(
        (error.kind(), error.message()),
        (adjutant_llm::ErrorKind::Protocol, expect)
    );
}

fn half() -> Vec<Chunk> {
    let delta = Chunk::Delta {
        block: 0,
        text: "half an ans".into(),
    };
    vec![
        start(),
        Chunk::Open {
            block: 0,
            kind: BlockKind::Text,
        },
        delta,
    ]
}

fn said(entries: &[Entry]) -> Option<(FinishReason, String)> {
    match entries.last() {
        Some(Entry::Turn(turn)) => Some((turn.reply().stop, turn.reply().text())),
        _ => None,
    }
}

#[tokio::test]
async fn text_stays_when_the_model_panics_in_its_stream() {
    let (failure, entries) = failure(&streaming(half(), true)).await;
    let message = "Ask(TurnNo(1)) panicked: in the stream".into();
    assert_eq!(
        failure,
        Failure::Activity {
            act: ActivityId::Ask(TurnNo(1)),
            message
        }
    );
    assert_eq!(
        said(&entries),
        Some((FinishReason::Interrupted, "half an ans".into()))
    );
}

#[tokio::test]
async fn run_fails_when_the_model_panics_before_its_stream() {
    let agent = Agent::new(model_fn(ModelInfo::new("test/model"), |_| {
        std::panic::resume_unwind(Box::new("at once"))
    }));
    let (failure, entries) = failure(&agent).await;
    let message = "Ask(TurnNo(1)) panicked: at once".into();
    assert_eq!(
        (failure, entries.len()),
        (
            Failure::Activity {
                act: ActivityId::Ask(TurnNo(1)),
                message
            },
            1
        )
    );
}

#[tokio::test]
async fn text_stays_when_the_stream_ends_without_a_reply() {
    let agent = streaming(half(), false);
    let (failure, entries) = failure(&agent).await;
    check_protocol(&failure, "the stream of the model ended without a reply");
    assert_eq!(
        said(&entries),
        Some((FinishReason::Interrupted, "half an ans".into()))
    );
    assert!(
        agent
            .run("Again.")
            .await
            .expect("the session goes on")
            .is_finished()
    );
}

#[tokio::test]
async fn run_fails_when_two_calls_have_one_id() {
    let mut reply = Reply::new("test/model".into(), FinishReason::Calls);
    reply.blocks = vec![call(1, 0), call(1, 0)];
    let (failure, entries) = failure(&streaming(
        vec![start(), Chunk::Done(Arc::new(reply))],
        false,
    ))
    .await;
    check_protocol(&failure, "two calls of a reply have one id");
    assert_eq!(entries.len(), 1);
}

#[tokio::test]
async fn run_fails_when_a_reply_has_too_many_blocks() {
    let blocks = (0..5_000).flat_map(|block| {
        let kind = BlockKind::Call {
            id: CallId {
                turn: 1,
                attempt: 0,
                block,
            },
            name: "nobody".into(),
        };
        [
            Chunk::Open { block, kind },
            Chunk::Close {
                block,
                content: call(1, block),
            },
        ]
    });
    let (failure, entries) = failure(&streaming(
        [start()].into_iter().chain(blocks).collect(),
        false,
    ))
    .await;
    check_protocol(
        &failure,
        "the stream of the model broke its grammar: more than 4,096 blocks",
    );
    let Some(Entry::Turn(turn)) = entries.last() else {
        unreachable!("what was said stays")
    };
    assert_eq!(turn.results().len(), 4_096);
}

#[tokio::test]
async fn run_goes_on_when_a_reply_has_thousands_of_calls() {
    let mut reply = Reply::new("test/model".into(), FinishReason::Calls);
    reply.blocks = (0..5_000).map(|block| call(1, block)).collect();
    let agent = streaming(vec![start(), Chunk::Done(Arc::new(reply))], false);
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!((result.calls.len(), result.turns), (5_000, 2));
    assert!(
        result
            .calls
            .iter()
            .zip(0..)
            .all(|(report, block)| report.call.block == block)
    );
}

/// A toolbox that cannot be opened.
struct Broken;

#[async_trait::async_trait]
impl Toolbox for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    async fn resolve(&self, _: &Identity) -> Result<Toolset, ToolError> {
        Err(ToolError::failed("the server is gone"))
    }
}

#[tokio::test]
async fn run_fails_when_a_toolbox_cannot_be_opened() {
    let (model, agent) = agent(once("echo"));
    let (failure, entries) = failure(&agent.toolbox(Broken)).await;
    let message = r#"toolbox "broken" could not be opened: the server is gone"#.into();
    assert_eq!(
        failure,
        Failure::Activity {
            act: ActivityId::Prepare(TurnNo(1)),
            message
        }
    );
    assert_eq!((entries.len(), model.requests().len()), (1, 0));
}

#[tokio::test]
async fn first_toolbox_wins_when_two_have_a_tool_of_one_name() {
    let (model, agent) = agent(once("echo"));
    let echo =
        |text: &'static str| tool("echo", move |_, _| async move { Ok(CallResult::ok(text)) });
    let agent = agent
        .toolbox(Tools::new("one").tool(echo("first")))
        .toolbox(Tools::new("two").tool(echo("second")));
    let events = events(agent.run("Go.").stream().expect("the session is free")).await;
    let message = "a second tool is called echo; only the first one is offered";
    let warning = Warning {
        kind: WarningKind::ToolShadowed,
        message: message.into(),
    };
    assert_eq!(
        events
            .iter()
            .filter(|event| **event
                == EventKind::Warning {
                    warning: warning.clone()
                })
            .count(),
        1
    );
    let Some(EventKind::RunFinished { result }) = events.last() else {
        unreachable!("the run ends")
    };
    assert_eq!(calls(result), [("echo".into(), Status::Ok, "first".into())]);
    assert_eq!(model.requests()[0].tools.len(), 1);
}

/// A journal whose logs take some batches and then no more.
#[derive(Debug)]
struct Filling(MemoryJournal, usize);

#[derive(Debug)]
struct Full(Box<dyn Log>, usize);

#[async_trait::async_trait]
impl Journal for Filling {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        Ok(Box::new(Full(self.0.own(log, owner).await?, self.1)))
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        self.0.read(log, after)
    }
}

#[async_trait::async_trait]
impl Log for Full {
    fn head(&self) -> Head {
        self.0.head()
    }

    async fn append(&mut self, batch: &[Arc<Stamped>], flush: Flush) -> Result<Head, JournalError> {
        let full = || JournalError::new(JournalErrorKind::Io, "the disk is full");
        self.1 = self.1.checked_sub(1).ok_or_else(full)?;
        self.0.append(batch, flush).await
    }
}

#[tokio::test]
async fn run_tells_of_itself_when_the_log_fails_at_any_batch() {
    let mut before = None;
    for batches in 0..20 {
        let (_, agent) = agent([Script::new().text("One."), Script::new().text("Two.")]);
        let agent = agent.journal(Filling(MemoryJournal::default(), batches));
        let first = agent.run("First.").await;
        let mut running = agent.run("Second.").stream().expect("the session is free");
        let mut last = None;
        while let Some(event) = running.next().await {
            last = Some(event.kind);
        }
        let Some(Err(error)) = running.result() else {
            break;
        };
        assert_eq!(error.kind(), ErrorKind::Journal, "{batches} batches");
        if let (Ok(_), Some(EventKind::RunFinished { result })) = (&first, &last) {
            let message = "the disk is full".into();
            assert_eq!(
                result.outcome,
                Outcome::Failed {
                    failure: Failure::Log { message }
                }
            );
            let told: Vec<_> = result.entries.iter().take(1).cloned().collect();
            assert!(
                told.is_empty() || told == [Entry::User("Second.".into())],
                "{told:?}"
            );
        }
        assert!(
            last.is_some(),
            "a run that ended without telling, after {batches} batches"
        );
        before = Some(batches);
    }
    assert!(
        before.is_some_and(|batches| batches > 2),
        "the log never failed in a second run"
    );
}

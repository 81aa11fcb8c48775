//! Runs of one agent: their options, their session, their prompts, and what they come to.

#[path = "loop_rules/stage.rs"]
mod stage;

use std::{sync::Arc, time::Duration};

use adjutant_agent::{Agent, ErrorKind, EventKind, Limit, Outcome, Prompt, RunResult};
use adjutant_llm::{
    CallResult, Content, Custom, Entry, FinishReason, FixedWorld, Gate, Image, ModelInfo, NanoUsd,
    Price, Reply, Script, ScriptedModel, Source, Summary, Turn, Usage, UserMessage, World,
};
use adjutant_tool::{CallContext, ToolSpec};
use serde_json::{Value, json};
use stage::{agent, calls, events, spec, tool};

fn echo() -> impl adjutant_tool::ErasedTool + 'static {
    tool("echo", |_, _| async { Ok(CallResult::ok("said")) })
}

fn calling() -> Script {
    Script::new().call("echo", json!({}))
}

#[tokio::test]
async fn options_count_for_one_run_when_they_are_set() {
    let (model, agent) = agent([calling(), calling(), Script::new().text("Mine.")]);
    let agent = agent.tool(echo()).max_turns(3);
    let other = Arc::new(ScriptedModel::new([
        calling(),
        Script::new().text("Never."),
    ]));
    let limited = agent
        .run("Go.")
        .model(Arc::clone(&other))
        .max_turns(1)
        .await
        .expect("a limit is no error");
    assert_eq!(
        limited.outcome,
        Outcome::Limit {
            limit: Limit::Turns
        }
    );
    assert_eq!((other.requests().len(), model.requests().len()), (1, 0));
    let own = agent.run("Go.").await.expect("the run finishes");
    assert_eq!((own.text().as_str(), own.turns), ("Mine.", 3));
}

#[tokio::test]
async fn options_free_a_run_when_the_agent_limits_it() {
    let (_, agent) = agent([calling(), Script::new().text("Done.")]);
    let result = agent
        .tool(echo())
        .max_turns(1)
        .run("Go.")
        .max_turns(None)
        .await;
    assert_eq!(result.expect("the run finishes").turns, 2);
}

#[tokio::test]
async fn instructions_are_the_whole_system_prompt_when_nothing_else_is_set() {
    let (model, agent) = agent([Script::new()]);
    agent
        .instructions("Be kind.")
        .run("Go.")
        .await
        .expect("the run finishes");
    let request = model.requests().remove(0);
    assert_eq!(
        (&*request.system, request.tools.len(), request.entries.len()),
        ("Be kind.", 0, 1)
    );
}

#[track_caller]
fn check_busy(agent: &Agent) {
    let error = agent
        .run("Me too.")
        .stream()
        .expect_err("the session is taken");
    assert_eq!(
        (error.kind(), error.is_retryable()),
        (ErrorKind::Busy, true)
    );
}

#[tokio::test]
async fn session_is_busy_when_it_runs() {
    let gate = Gate::default();
    let (_, agent) = agent([
        Script::new().text("One.").wait_at(0, &gate),
        Script::new().text("Two."),
    ]);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    check_busy(&agent);
    running.next().await.expect("a run begins");
    check_busy(&agent.clone());
    gate.open();
    while let Some(event) = running.next().await {
        if matches!(event.kind, EventKind::RunFinished { .. }) {
            break;
        }
    }
    // The last event was read, so the session is free although the handle still lives.
    assert_eq!(
        agent
            .run("Again.")
            .await
            .expect("the session is free")
            .text(),
        "Two."
    );
}

#[tokio::test(start_paused = true)]
async fn session_is_taken_once_when_a_run_was_left() {
    let gate = Gate::default();
    let (_, agent) = agent([
        Script::new().text("One.").wait_at(0, &gate),
        Script::new().text("Two."),
    ]);
    let mut left = agent.run("Go.").stream().expect("the session is free");
    assert_eq!(
        left.next().await.map(|event| event.kind),
        Some(EventKind::RunStarted)
    );
    drop(left);
    let next = agent.run("Again.").stream().expect("who left gives way");
    check_busy(&agent);
    // Time passes only when nothing else can move: the run that was left has ended.
    tokio::time::sleep(Duration::from_millis(1)).await;
    check_busy(&agent);
    assert_eq!(
        next.finish().await.expect("the run finishes").text(),
        "Two."
    );
    assert_eq!(agent.log().transcript().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn session_is_taken_once_when_a_run_was_left_before_it_was_read() {
    let (_, agent) = agent([Script::new().text("One.")]);
    drop(agent.run("Go.").stream().expect("the session is free"));
    tokio::time::sleep(Duration::from_millis(1)).await;
    let next = agent.run("Again.").stream().expect("who left gives way");
    check_busy(&agent);
    assert_eq!(
        next.finish().await.expect("the run finishes").text(),
        "One."
    );
}

#[tokio::test]
async fn session_can_be_left_again_when_the_next_run_waits() {
    let gate = Gate::default();
    let (_, agent) = agent([
        Script::new().text("One.").wait_at(0, &gate),
        Script::new().text("Two."),
    ]);
    let mut left = agent.run("Go.").stream().expect("the session is free");
    left.next().await.expect("a run begins");
    drop(left);
    drop(agent.run("Again.").stream().expect("who left gives way"));
    let result = agent.run("At last.").await.expect("who left gives way");
    assert_eq!(result.text(), "Two.");
}

#[tokio::test(start_paused = true)]
async fn run_goes_on_when_it_is_detached() {
    let gate = Gate::default();
    let (_, agent) = agent([
        Script::new().text("Done.").wait_at(0, &gate),
        Script::new().text("Two."),
    ]);
    let handle = agent
        .run("Go.")
        .stream()
        .expect("the session is free")
        .detach();
    gate.wait_until_reached().await;
    check_busy(&agent);
    gate.open();
    assert_eq!(
        handle
            .await
            .expect("no panic")
            .expect("the run finishes")
            .text(),
        "Done."
    );
    drop(
        agent
            .run("Again.")
            .stream()
            .expect("the session is free")
            .detach(),
    );
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(agent.log().transcript().len(), 4);
}

#[tokio::test]
async fn clones_share_a_session_and_new_sessions_are_empty() {
    let (model, agent) = agent(["One.", "Two.", "Three."].map(|text| Script::new().text(text)));
    let clone = agent.clone().instructions("Be brief.");
    agent.run("Go.").await.expect("the run finishes");
    clone.run("Go on.").await.expect("the run finishes");
    let fresh = agent.new_session();
    assert_eq!(
        (
            agent.log().transcript().len(),
            clone.log().transcript().len(),
            fresh.log().transcript().len()
        ),
        (5, 5, 0)
    );
    assert_ne!(fresh.session_id(), agent.session_id());
    fresh.run("Hello.").await.expect("the run finishes");
    let shown: Vec<usize> = model
        .requests()
        .iter()
        .map(|request| request.entries.len())
        .collect();
    assert_eq!((shown, agent.log().transcript().len()), (vec![1, 4, 1], 5));
}

async fn prompted(prompt: impl Into<Prompt>) -> Vec<Entry> {
    let (_, agent) = agent([Script::new()]);
    let mut entries = agent
        .run(prompt)
        .await
        .expect("the prompt is taken")
        .entries;
    entries.pop();
    entries
}

#[tokio::test]
async fn prompt_is_kept_when_it_says_something() {
    let user = |text: &str| Entry::User(UserMessage::text(text));
    assert_eq!(prompted("a").await, [user("a")]);
    assert_eq!(prompted("a".to_owned()).await, [user("a")]);
    assert_eq!(
        prompted(vec![UserMessage::text("a"), UserMessage::text("b")]).await,
        [user("a"), user("b")]
    );
    let source = Source::Url {
        url: "https://example.com/a.png".into(),
    };
    let image = UserMessage::from(vec![Content::Image(Image {
        media_type: "image/png".into(),
        source,
    })]);
    assert_eq!(prompted(image.clone()).await, [Entry::User(image)]);
    let turn = Turn::open(Arc::new(Reply::new("a/b".into(), FinishReason::End)))
        .close()
        .expect("no call is open");
    let custom = Custom {
        kind: "note".into(),
        value: Value::Null,
    };
    let entries = vec![
        user("a"),
        Entry::Turn(turn),
        Entry::Custom(custom),
        user("b"),
    ];
    assert_eq!(prompted(entries.clone()).await, entries);
}

#[track_caller]
fn check_refused(prompt: impl Into<Prompt>, expect: &str) {
    let (_, agent) = agent([]);
    let error = agent
        .run(prompt)
        .stream()
        .expect_err("the prompt is refused");
    assert_eq!(
        (error.kind(), error.to_string()),
        (
            ErrorKind::Prompt,
            format!("the prompt cannot be sent: {expect}")
        )
    );
    assert!(agent.run("The session is free.").stream().is_ok());
}

#[tokio::test]
async fn prompt_is_refused_when_it_says_nothing() {
    check_refused("", "it is empty");
    check_refused(" \n\t", "it is empty");
    check_refused(Vec::<UserMessage>::new(), "it is empty");
    check_refused(UserMessage::from(Vec::new()), "it is empty");
    check_refused(
        vec![Entry::Custom(Custom {
            kind: "note".into(),
            value: Value::Null,
        })],
        "it is empty",
    );
    let summary = Entry::Summary(Summary {
        text: "Once upon a time".into(),
        covers: 3,
    });
    check_refused(
        vec![summary, Entry::User("a".into())],
        "a summary belongs to a view, not to a prompt",
    );
}

/// A clock that a tool and the test may move.
#[derive(Debug, Clone)]
struct Clock(Arc<FixedWorld>);

impl World for Clock {
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

fn usage(input_uncached: u64, output: u64) -> Usage {
    Usage {
        input_uncached,
        output,
        ..Usage::default()
    }
}

#[tokio::test]
async fn result_tells_everything_when_the_run_ends() {
    let clock = Clock(Arc::new(FixedWorld::at_ms(10_000)));
    let info = ModelInfo {
        price: Some(Price::dollars(1.0, 10.0, 0.0, 0.0)),
        ..ModelInfo::new("test/priced")
    };
    let scripts = [
        Script::new()
            .call("work", json!({"ms": 30}))
            .call("nobody", json!({}))
            .usage(usage(100, 10)),
        Script::new().text("Done.").usage(usage(200, 20)),
    ];
    let moved = clock.clone();
    let work = tool("work", move |args, cx: CallContext| {
        let moved = moved.clone();
        async move {
            moved.0.advance_ms(args["ms"].as_u64().unwrap_or_default());
            cx.backend.charge(usage(1_000, 0));
            tokio::task::yield_now().await;
            cx.backend.charge(usage(0, 7));
            Ok(CallResult {
                details: json!({"n": 1}),
                ..CallResult::ok("worked")
            })
        }
    });
    let agent = Agent::new(ScriptedModel::new(scripts).info(info))
        .name("worker")
        .world(clock)
        .tool(work);
    let result = agent.run("Go.").await.expect("the run finishes");
    let told: Vec<_> = result
        .calls
        .iter()
        .map(|call| (call.name.as_str(), call.duration.as_millis()))
        .collect();
    assert_eq!(told, [("work", 30), ("nobody", 0)]);
    assert_eq!(result.calls[0].result.details, json!({"n": 1}));
    assert_eq!(
        (result.usage, result.total_usage),
        (usage(300, 30), usage(1_300, 37))
    );
    assert_eq!(result.cost, Some(NanoUsd(300 * 1_000 + 30 * 10_000)));
    assert_eq!(
        (result.turns, result.duration, result.run.0),
        (2, Duration::from_millis(30), 1)
    );
    assert_eq!(
        (
            &*result.agent.name,
            result.entries.len(),
            result.is_finished()
        ),
        ("worker", 3, true)
    );
    assert!(
        matches!(&result.outcome, Outcome::Finished { reply, .. } if Some(reply) == result.reply.as_ref())
    );
    let json = serde_json::to_string(&result).expect("a result is JSON");
    assert_eq!(
        serde_json::from_str::<RunResult>(&json).expect("a result reads back"),
        result
    );
}

#[tokio::test]
async fn charge_counts_when_the_tool_ends_at_once() {
    let (_, agent) = agent([
        Script::new().call("ask", json!({})),
        Script::new().text("Done.").usage(usage(0, 0)),
    ]);
    let agent = agent.tool(tool("ask", |_, cx: CallContext| async move {
        cx.backend.charge(usage(5, 5));
        Ok(CallResult::ok(""))
    }));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(result.total_usage, result.usage + usage(5, 5));
}

#[tokio::test]
async fn usage_and_cost_count_when_an_attempt_was_taken_back() {
    let broken = adjutant_llm::Error::new(adjutant_llm::ErrorKind::Network, "the connection broke");
    let void = Script::new().text("No").usage(usage(10, 1));
    let script = Script::new()
        .text("Yes")
        .usage(usage(10, 2))
        .after_retracted(void, broken);
    let info = ModelInfo {
        price: Some(Price::dollars(1.0, 10.0, 0.0, 0.0)),
        ..ModelInfo::new("test/priced")
    };
    let result = Agent::new(ScriptedModel::new([script]).info(info))
        .run("Go.")
        .await
        .expect("the run finishes");
    assert_eq!(
        (result.text().as_str(), result.usage),
        ("Yes", usage(20, 3))
    );
    assert_eq!(result.cost, Some(NanoUsd(20 * 1_000 + 3 * 10_000)));
}

#[tokio::test]
async fn result_can_be_had_when_all_events_were_read() {
    let (_, agent) = agent([Script::new().text("One."), Script::new().text("Two.")]);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    assert!(running.result().is_none());
    while running.next().await.is_some() {}
    assert_eq!(
        running.finish().await.expect("the run finishes").text(),
        "One."
    );
    let mut running = agent.run("Go on.").stream().expect("the session is free");
    while running.next().await.is_some() {}
    assert_eq!(
        running
            .detach()
            .await
            .expect("no panic")
            .expect("the run finishes")
            .text(),
        "Two."
    );
}

#[tokio::test]
async fn limits_of_time_hold_when_they_are_as_long_as_can_be() {
    let (_, agent) = agent([calling(), Script::new().text("Done.")]);
    let agent = agent
        .tool(echo())
        .calls(|calls| calls.timeout = Some(Duration::MAX))
        .calls(|calls| calls.grace = Duration::MAX);
    let result = agent.run("Go.").deadline(Duration::MAX).await;
    assert_eq!(result.expect("the run finishes").text(), "Done.");
}

#[tokio::test]
async fn results_tell_of_their_own_run_when_there_are_several() {
    let (_, agent) = agent([
        calling(),
        Script::new().text("One."),
        Script::new().text("Two."),
    ]);
    let agent = agent.tool(echo());
    let first = agent.run("Go.").await.expect("the run finishes");
    let second = agent.run("Go on.").await.expect("the run finishes");
    assert_eq!(
        (
            first.run.0,
            first.turns,
            first.entries.len(),
            calls(&first).len()
        ),
        (1, 2, 3, 1)
    );
    assert_eq!(
        (
            second.run.0,
            second.turns,
            second.entries.len(),
            calls(&second).len()
        ),
        (2, 1, 2, 0)
    );
}

#[tokio::test]
async fn steps_are_done_once_when_a_body_asks_for_them_twice() {
    let (_, agent) = agent([
        Script::new().call("steps", json!({})),
        Script::new().text("Done."),
    ]);
    let steps = adjutant_tool::tool_fn(
        ToolSpec {
            replay: adjutant_tool::Replay::Resumable,
            ..spec("steps")
        },
        |_, cx| async move {
            let step = || cx.once("pay", || async { Ok(1) });
            let (one, other) = tokio::join!(step(), step());
            let again: u32 = step().await?;
            Ok(CallResult::ok(format!(
                "{} {} {again}",
                one.is_ok(),
                other.is_ok()
            )))
        },
    );
    let events = events(
        agent
            .tool(steps)
            .run("Go.")
            .stream()
            .expect("the session is free"),
    )
    .await;
    let Some(EventKind::RunFinished { result }) = events.last() else {
        unreachable!("the run ends")
    };
    assert_eq!(calls(result)[0].2, "true false 1");
}

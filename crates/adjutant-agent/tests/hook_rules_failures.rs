//! Hooks that fail: what a panic means at each point, what is told of it, and that the session stays usable.

#[path = "loop_rules/stage.rs"]
#[expect(dead_code, reason = "the rest is for other tests")]
mod stage;

use std::sync::{Arc, Mutex};

use adjutant_agent::{
    Agent, Event, EventKind, Fail, Failure, HookContext, Hooks, Lane, Outcome, Point, RunResult,
    Verdict, points,
};
use adjutant_llm::{
    Block, Call, CallId, CallResult, Entry, Error, ErrorKind, FinishReason, Reply, Script,
    ScriptedModel, Status, WarningKind,
};
use adjutant_tool::{Answer, Approval, ToolError, ToolSpec, tool_fn};
use futures_util::StreamExt;
use serde_json::{Value, json};

async fn all(agent: &Agent, prompt: &str) -> Vec<Event> {
    agent
        .run(prompt)
        .stream()
        .expect("the session is free")
        .collect()
        .await
}

/// What the last event tells.
#[track_caller]
fn end(events: &[Event]) -> RunResult {
    match &events.last().expect("there are events").kind {
        EventKind::RunFinished { result } | EventKind::RunPaused { result } => {
            RunResult::clone(result)
        }
        other => unreachable!("no end: {other:?}"),
    }
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

/// An agent whose run reaches every point but that of a failing model: a message waits, and a call that needs a word fails.
fn eventful() -> Agent {
    let call = Script::new().call("work", json!({}));
    let (_, agent) = stage::agent([
        call,
        Script::new().text("Done."),
        Script::new().text("Done."),
    ]);
    agent.queue().steer("Also.").expect("there is room");
    agent
        .tool(tool_fn(
            ToolSpec {
                approval: Approval::Always,
                ..stage::spec("work")
            },
            |_: Value, _| async { Err(ToolError::failed("it broke")) },
        ))
        .responder(|_, _| async { Some(Answer::approve()) })
}

/// An agent whose model fails.
fn broken() -> Agent {
    stage::agent([Script::new()
        .text("Half")
        .fail(Error::new(ErrorKind::Auth, "no key"))])
    .1
}

/// The session goes on, and shows closed turns only.
async fn check_next_run(agent: &Agent, point: &str) {
    let model = Arc::new(ScriptedModel::new([Script::new().text("Here.")]));
    drop(agent.queue().clear(&[Lane::Steering, Lane::FollowUp]));
    let result = Agent::new(Arc::clone(&model))
        .in_session_of(agent)
        .run("Still there?")
        .await
        .expect(point);
    assert_eq!(result.text(), "Here.", "{point}");
    let open = model.requests()[0]
        .entries
        .iter()
        .any(|stored| match &stored.entry {
            Entry::Turn(turn) => turn.pairs().count() != turn.reply().calls().count(),
            _ => false,
        });
    assert!(!open, "{point}");
}

async fn check<P: Point>(agent: Agent, expect: &str) {
    let hooked = agent.clone().on(|_: HookContext, _: P| async {
        std::panic::resume_unwind(Box::new("it burst".to_owned())) as Verdict<P>
    });
    let events = all(&hooked, "Go.").await;
    let result = end(&events);
    assert_eq!(result.outcome.kind(), expect, "{}", P::NAME);
    let passed = format!(
        "a hook of {0} failed and is passed over: a hook of {0} panicked: it burst",
        P::NAME
    );
    let denied = events
        .iter()
        .any(|event| matches!(&event.kind, EventKind::Denied { point, .. } if **point == *P::NAME));
    match P::FAIL {
        Fail::Open => assert_eq!(
            (warnings(&events), denied),
            (vec![passed], false),
            "{}",
            P::NAME
        ),
        Fail::Closed => assert_eq!((warnings(&events), denied), (vec![], true), "{}", P::NAME),
    }
    if matches!(result.outcome, Outcome::Paused { .. }) {
        hooked.cancel_paused().await.expect("it is given up");
    }
    check_next_run(&agent, P::NAME).await;
}

#[tokio::test]
async fn panic_of_any_hook_leaves_a_valid_session_when_it_happens() {
    check::<points::BeforeRun>(eventful(), "finished").await;
    check::<points::UserMessage>(eventful(), "failed").await;
    check::<points::BeforeAgent>(eventful(), "failed").await;
    check::<points::MessageQueued>(eventful(), "finished").await;
    check::<points::MessagePlaced>(eventful(), "finished").await;
    check::<points::BeforeModel>(eventful(), "failed").await;
    check::<points::AfterModel>(eventful(), "finished").await;
    check::<points::ModelError>(broken(), "failed").await;
    check::<points::BeforeTool>(eventful(), "finished").await;
    check::<points::Pausing>(eventful(), "finished").await;
    check::<points::PauseAnswered>(eventful(), "paused").await;
    check::<points::ToolError>(eventful(), "finished").await;
    check::<points::AfterTool>(eventful(), "finished").await;
    check::<points::NextTurn>(eventful(), "failed").await;
    check::<points::AfterTurn>(eventful(), "failed").await;
    check::<points::AfterAgent>(eventful(), "finished").await;
    check::<points::AfterRun>(eventful(), "finished").await;
}

#[tokio::test]
async fn after_point_of_a_turn_is_a_warning_when_its_hook_fails() {
    let (_, agent) = stage::agent([
        Script::new().call("fails", json!({})),
        Script::new().text("Hi."),
    ]);
    let agent = agent
        .tool(stage::tool("fails", |_, _| async {
            Err(ToolError::failed("it broke"))
        }))
        .on(|_: HookContext, _: points::AfterModel| async {
            Err::<Verdict<points::AfterModel>, _>("one")
        })
        .on(|_: HookContext, _: points::ToolError| async {
            Err::<Verdict<points::ToolError>, _>("two")
        })
        .on(|_: HookContext, _: points::AfterTool| async {
            Err::<Verdict<points::AfterTool>, _>("three")
        });
    let events = all(&agent, "Go.").await;
    let expect = [
        ("after_model", "one"),
        ("tool_error", "two"),
        ("after_tool", "three"),
    ]
    .map(|(point, why)| format!("a hook of {point} failed and is passed over: {why}"));
    assert_eq!(
        warnings(&events),
        expect,
        "each is told once, however often it fails"
    );
    let result = end(&events);
    assert_eq!(
        stage::calls(&result),
        [("fails".to_owned(), Status::Failed, "it broke".to_owned())]
    );
    assert_eq!(result.text(), "Hi.");
}

#[tokio::test]
async fn observer_is_a_warning_when_it_panics_within_a_turn() {
    for (point, agent) in [
        ("before_model", eventful()),
        ("after_model", eventful()),
        ("model_error", broken()),
        ("before_tool", eventful()),
        ("tool_error", eventful()),
        ("after_tool", eventful()),
        ("next_turn", eventful()),
        ("after_turn", eventful()),
        ("message_queued", eventful()),
        ("message_placed", eventful()),
        ("pausing", eventful()),
        ("pause_answered", eventful()),
    ] {
        let kind = if point == "model_error" {
            "failed"
        } else {
            "finished"
        };
        let hooks = Hooks::default().observe(move |seen| assert_ne!(seen.point, point, "it burst"));
        let events = all(&agent.hooks(hooks), "Go.").await;
        let warning = format!("an observer of {point} panicked and is passed over");
        assert_eq!(
            (warnings(&events), end(&events).outcome.kind()),
            (vec![warning], kind),
            "{point}"
        );
    }
}

#[tokio::test]
async fn model_error_is_told_once_when_a_stream_breaks() {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let (errors, replies) = (Arc::clone(&told), Arc::clone(&told));
    let cut = || Error::new(ErrorKind::Network, "the line is dead");
    let (_, agent) = stage::agent([Script::new()
        .text("Half an answer")
        .delta_chars(4)
        .fail(cut())]);
    let agent = agent
        .on(move |_: HookContext, point: points::ModelError| {
            errors
                .lock()
                .expect("no panic inside")
                .push(point.error.to_string());
            async { Verdict::Pass(point) }
        })
        .on(move |_: HookContext, point: points::AfterModel| {
            replies
                .lock()
                .expect("no panic inside")
                .push(point.reply.text());
            async { Verdict::Pass(point) }
        });
    let events = all(&agent, "Go.").await;
    assert_eq!(
        end(&events).outcome,
        Outcome::Failed {
            failure: Failure::Model { error: cut() }
        }
    );
    assert!(
        events
            .iter()
            .filter(|event| matches!(event.kind, EventKind::TextDelta { .. }))
            .count()
            > 1
    );
    assert_eq!(
        *told.lock().expect("no panic inside"),
        ["the line is dead"],
        "no reply, so nothing comes after it"
    );
}

fn ok(name: &str) -> impl adjutant_tool::ErasedTool + 'static {
    stage::tool(name, |_, _| async { Ok(CallResult::ok("ran")) })
}

#[tokio::test]
async fn before_model_may_change_entries_alone_when_it_leaves_the_tools() {
    let (model, agent) = stage::agent([Script::new().text("Hi.")]);
    let agent = agent
        .tool(ok("work"))
        .on(|_: HookContext, mut point: points::BeforeModel| async {
            point.once.push(adjutant_llm::Edit::Append {
                entry: Entry::User("Mind.".into()),
            });
            Verdict::Pass(point)
        });
    agent.run("Go.").await.expect("the run finishes");
    let request = model.requests().remove(0);
    let tools: Vec<&str> = request
        .tools
        .iter()
        .map(|decl| decl.name.as_str())
        .collect();
    assert_eq!((request.entries.len(), tools), (2, vec!["work"]));
}

#[tokio::test]
async fn tools_of_before_model_can_be_called_when_it_offered_them() {
    let batch = Script::new()
        .call("more", json!({}))
        .call("work", json!({}));
    let (model, agent) = stage::agent([batch, Script::new().text("Done.")]);
    let more = adjutant_tool::Toolset::new([adjutant_tool::Bound::new(ok("more"))]);
    let agent = agent
        .tool(ok("work"))
        .on(move |_: HookContext, mut point: points::BeforeModel| {
            point.hidden.push("work".into());
            point.offered.push(more.clone());
            async { Verdict::Pass(point) }
        });
    let result = agent.run("Go.").await.expect("the run finishes");
    let shown: Vec<String> = model.requests()[0]
        .tools
        .iter()
        .map(|decl| decl.name.to_string())
        .collect();
    assert_eq!(shown, ["more"]);
    let calls = stage::calls(&result);
    assert_eq!(calls[0], ("more".to_owned(), Status::Ok, "ran".to_owned()));
    let hidden = "not executed: tool \"work\" is not available in this turn";
    assert_eq!(
        calls[1],
        ("work".to_owned(), Status::Denied, hidden.to_owned())
    );
}

#[tokio::test]
async fn loop_goes_on_when_a_failure_is_mended_with_calls() {
    let broken = Script::new()
        .text("Half")
        .fail(Error::new(ErrorKind::Network, "the line is dead"));
    let (model, agent) = stage::agent([broken, Script::new().text("Done.")]);
    let agent = agent
        .tool(ok("work"))
        .on(|_: HookContext, mut point: points::ModelError| async {
            let mut reply = Reply::new("scripted/model".into(), FinishReason::Calls);
            reply.blocks = vec![Arc::new(Block::Call(Call::new(
                CallId {
                    turn: 1,
                    attempt: 0,
                    block: 0,
                },
                "work",
                "{}",
            )))];
            point.reply = Some(Arc::new(reply));
            Verdict::Pass(point)
        });
    let events = all(&agent, "Go.").await;
    let result = end(&events);
    assert_eq!(
        stage::calls(&result),
        [("work".to_owned(), Status::Ok, "ran".to_owned())]
    );
    assert_eq!(
        (result.text().as_str(), model.requests().len()),
        ("Done.", 2)
    );
    let taken_back = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::ReplyRetracted { .. }))
        .count();
    assert_eq!(taken_back, 1, "what was shown of the broken reply");
}

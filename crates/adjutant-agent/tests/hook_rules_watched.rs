//! What observers of all points see of a run, and that looking changes nothing.

#[path = "loop_rules/stage.rs"]
#[expect(dead_code, reason = "the rest is for other tests")]
mod stage;

use std::sync::{Arc, Mutex};

use adjutant_agent::{
    Agent, Event, HookContext, Hooks, Journal, LogId, MemoryJournal, Observed, Outcome, Point,
    Record, Seq, Verdict,
    points::{
        AfterAgent, AfterModel, AfterRun, AfterTool, BeforeAgent, BeforeModel, BeforeRun,
        BeforeTool, Handoff, ModelError, SubagentStarted, SubagentStopped, TeamMessage,
        TeammateCompleted, TeammateFailed, TeammateJoined, TeammateLeft, ToolError as Failed,
        UserMessage,
    },
};
use adjutant_llm::{CallResult, Error, ErrorKind, FixedWorld, Script, Status, Usage};
use adjutant_tool::ToolError;
use futures_util::StreamExt;
use serde_json::json;

type Lines = Arc<Mutex<Vec<String>>>;

fn told(lines: &Lines) -> Vec<String> {
    std::mem::take(&mut *lines.lock().expect("no panic inside"))
}

/// Hooks that only look, and write down a line for each point.
fn watching(lines: &Lines, line: fn(&Observed<'_>) -> String) -> Hooks {
    let lines = Arc::clone(lines);
    Hooks::default().observe(move |seen| lines.lock().expect("no panic inside").push(line(&seen)))
}

fn name(seen: &Observed<'_>) -> String {
    seen.point.to_owned()
}

/// A reply that calls a tool, and an answer.
fn scripts() -> [Script; 2] {
    [
        Script::new().call("work", json!({"n": 1})),
        Script::new().text("Done."),
    ]
}

/// An agent with one tool that works and one that fails, at a time that stands still.
fn working(scripts: impl IntoIterator<Item = Script>) -> Agent {
    stage::agent(scripts)
        .1
        .name("scout")
        .world(FixedWorld::at_ms(7))
        .tool(stage::tool("work", |_, _| async {
            Ok(CallResult::ok("worked"))
        }))
        .tool(stage::tool("fails", |_, _| async {
            Err(ToolError::failed("it broke"))
        }))
}

async fn all(agent: &Agent, prompt: &str) -> Vec<Event> {
    agent
        .run(prompt)
        .stream()
        .expect("the session is free")
        .collect()
        .await
}

#[tokio::test]
async fn observer_sees_each_point_once_when_a_run_has_them_all() {
    let lines = Lines::default();
    let whole = [
        "before_run",
        "user_message",
        "before_agent",
        "before_model",
        "after_model",
        "before_tool",
        "after_tool",
        "next_turn",
        "after_turn",
        "before_model",
        "after_model",
        "next_turn",
        "after_turn",
        "after_agent",
        "after_run",
    ];
    let agent = working(scripts().into_iter().chain(scripts())).hooks(watching(&lines, name));
    agent.run("Go.").await.expect("the run finishes");
    assert_eq!(told(&lines), whole);
    all(&agent, "Go.").await;
    assert_eq!(told(&lines), whole, "the same in a stream");

    let fails = working([
        Script::new().call("fails", json!({})),
        Script::new().text("Done."),
    ]);
    fails
        .hooks(watching(&lines, name))
        .run("Go.")
        .await
        .expect("the run finishes");
    assert_eq!(
        told(&lines)[5..8],
        ["before_tool", "tool_error", "after_tool"]
    );

    let broken = working([Script::new().fail(Error::new(ErrorKind::Auth, "no key"))]);
    broken
        .hooks(watching(&lines, name))
        .run("Go.")
        .await
        .expect_err("the model fails");
    assert_eq!(
        told(&lines)[3..],
        ["before_model", "model_error", "after_agent", "after_run"]
    );
}

/// What is known at a point, in words.
fn facts(seen: &Observed<'_>) -> String {
    let place = format!(
        "{} {} {} {} {}",
        seen.point, seen.cx.who.path, seen.cx.run, seen.cx.turn, seen.cx.at_ms
    );
    let call = seen
        .call
        .as_ref()
        .map(|(id, tool)| format!(" {id} {tool}"))
        .unwrap_or_default();
    let value = seen.value;
    let more = if let Some(point) = value.downcast_ref::<BeforeRun>() {
        format!("{} prompts", point.prompts.len())
    } else if let Some(point) = value.downcast_ref::<UserMessage>() {
        point.message.content[0]
            .as_text()
            .unwrap_or_default()
            .to_owned()
    } else if let Some(point) = value.downcast_ref::<BeforeAgent>() {
        format!(
            "{} prompts, answered: {}",
            point.prompts.len(),
            point.answer.is_some()
        )
    } else if let Some(point) = value.downcast_ref::<BeforeModel>() {
        format!("{} entries, {} tools", point.view.len(), point.tools.len())
    } else if let Some(point) = value.downcast_ref::<AfterModel>() {
        format!("{} tokens, {:?}", point.reply.usage.total(), point.duration)
    } else if let Some(point) = value.downcast_ref::<ModelError>() {
        point.error.to_string()
    } else if let Some(point) = value.downcast_ref::<BeforeTool>() {
        point.args.to_string()
    } else if let Some(point) = value.downcast_ref::<Failed>() {
        format!(
            "{} {:?} {}",
            point.args,
            point.result.status,
            point.result.text()
        )
    } else if let Some(point) = value.downcast_ref::<AfterTool>() {
        format!(
            "{} {} {} {:?}",
            point.args,
            point.result.is_error(),
            point.result.text(),
            point.duration
        )
    } else if let Some(point) = value.downcast_ref::<AfterAgent>() {
        format!(
            "{} {:?}",
            point.outcome.kind(),
            point.reply.as_ref().map(|reply| reply.text())
        )
    } else if let Some(point) = value.downcast_ref::<AfterRun>() {
        let failure = match &point.result.outcome {
            Outcome::Failed { failure } => failure.to_string(),
            other => other.kind().to_owned(),
        };
        format!(
            "{failure}, {:?}, {} tokens",
            point.result.duration,
            point.result.total_usage.total()
        )
    } else {
        String::new()
    };
    format!("{place}{call}: {more}")
}

#[tokio::test]
async fn observer_sees_the_facts_when_a_point_fires() {
    let lines = Lines::default();
    let spent = || Usage {
        input_uncached: 3,
        output: 2,
        ..Usage::default()
    };
    let agent = working([
        Script::new()
            .call("work", json!({"n": 1}))
            .call("fails", json!({"n": 2}))
            .usage(spent()),
        Script::new()
            .fail(Error::new(ErrorKind::Auth, "no key"))
            .usage(Usage::default()),
    ]);
    agent
        .limits(adjutant_agent::Limits {
            sequential: true,
            ..adjutant_agent::Limits::default()
        })
        .hooks(watching(&lines, facts))
        .run("Go.")
        .await
        .expect_err("the model fails");
    let seen: Vec<String> = told(&lines)
        .into_iter()
        .filter(|line| !line.contains("_turn "))
        .collect();
    let expect = [
        "before_run scout 1 0 7: 1 prompts",
        "user_message scout 1 0 7: Go.",
        "before_agent scout 1 0 7: 1 prompts, answered: false",
        "before_model scout 1 1 7: 1 entries, 2 tools",
        "after_model scout 1 1 7: 5 tokens, 0ns",
        r#"before_tool scout 1 1 7 c1_0_0 work: {"n":1}"#,
        r#"before_tool scout 1 1 7 c1_0_1 fails: {"n":2}"#,
        r#"after_tool scout 1 1 7 c1_0_0 work: {"n":1} false worked 0ns"#,
        r#"tool_error scout 1 1 7 c1_0_1 fails: {"n":2} Failed it broke"#,
        r#"after_tool scout 1 1 7 c1_0_1 fails: {"n":2} true it broke 0ns"#,
        "before_model scout 1 2 7: 2 entries, 2 tools",
        "model_error scout 1 2 7: no key",
        "after_agent scout 1 2 7: failed Some(\"\")",
        "after_run scout 1 2 7: no key, 0ns, 5 tokens",
    ];
    assert_eq!(seen, expect);
}

/// A point and why it was denied, in words.
fn denials(seen: &Observed<'_>) -> String {
    let call = seen
        .call
        .as_ref()
        .map(|(_, tool)| format!(" {tool}"))
        .unwrap_or_default();
    let value = match (
        seen.value.downcast_ref::<BeforeTool>(),
        seen.value.downcast_ref::<UserMessage>(),
    ) {
        (Some(point), _) => format!(" with {}", point.args),
        (_, Some(point)) => format!(
            " with {}",
            point.message.content[0].as_text().unwrap_or_default()
        ),
        _ => String::new(),
    };
    let denied = seen
        .denied
        .as_ref()
        .map(|reason| format!("{value}: {reason}"))
        .unwrap_or_default();
    format!("{}{call}{denied}", seen.point)
}

#[tokio::test]
async fn observer_sees_denials_and_errors_when_a_chain_ends_early() {
    let lines = Lines::default();
    let doubles = |_: HookContext, mut point: BeforeTool| async {
        point.args = json!({"n": 2});
        Verdict::Pass(point)
    };
    let deny = |_: HookContext, _: BeforeTool| async {
        Verdict::<BeforeTool>::Deny("it is Friday".into())
    };
    let later = |_: HookContext, _: BeforeTool| async {
        panic!("it is not reached") as Verdict<BeforeTool>
    };
    let agent = working(scripts())
        .hooks(watching(&lines, denials))
        .on(doubles)
        .on(deny)
        .on::<BeforeTool>(later);
    agent.run("Go.").await.expect("the run finishes");
    // As the hook before the one that denied it left it.
    assert_eq!(
        told(&lines)[5],
        "before_tool work with {\"n\":2}: it is Friday"
    );

    let fails =
        |_: HookContext, _: UserMessage| async { Err::<Verdict<UserMessage>, _>("no such file") };
    let agent = working([]).hooks(watching(&lines, denials)).on(fails);
    agent.run("Go.").await.expect_err("it is denied");
    assert_eq!(
        told(&lines),
        [
            "before_run",
            "user_message with Go.: no such file",
            "after_run"
        ]
    );
}

/// The records and the events of two runs, the second of which fails.
async fn traces(with: impl FnOnce(Agent) -> Agent) -> (Vec<Record>, Vec<Event>) {
    let batch = Script::new()
        .call("work", json!({"n": 1}))
        .call("fails", json!({}));
    let broken = Script::new()
        .text("Half")
        .fail(Error::new(ErrorKind::Network, "the line is dead"));
    let journal = MemoryJournal::default();
    let agent =
        working([batch, Script::new().text("Done."), broken]).limits(adjutant_agent::Limits {
            sequential: true,
            ..adjutant_agent::Limits::default()
        });
    let agent = with(agent.journal(journal.clone()).session(LogId("log".into())));
    let mut events = all(&agent, "Go.").await;
    events.extend(all(&agent, "Again.").await);
    let records = journal.read(agent.session_id(), Seq(0));
    (
        records
            .map(|stamped| stamped.expect("memory does not fail").record.clone())
            .collect()
            .await,
        events,
    )
}

#[tokio::test]
async fn observer_changes_nothing_when_it_only_looks() {
    let lines = Lines::default();
    let (plain, watched) = (
        traces(|agent| agent).await,
        traces(|agent| agent.hooks(watching(&lines, name))).await,
    );
    assert_eq!(plain, watched);
    assert!(told(&lines).len() > 20);
}

#[tokio::test]
async fn run_is_the_same_when_no_hook_is_set() {
    let plain = traces(|agent| agent).await;
    assert_eq!(plain, traces(|agent| agent.hooks(Hooks::default())).await);
    let one =
        traces(|agent| agent.on(|_: HookContext, point: AfterTool| async { Verdict::Pass(point) }))
            .await;
    assert_eq!(plain, one, "one point alone, and a hook that allows");
    let other = traces(|agent| {
        agent.on(|_: HookContext, point: BeforeTool| async { Verdict::Pass(point) })
    })
    .await;
    assert_eq!(plain, other);
    let fails = |record: &&Record| matches!(record, Record::Returned { result, .. } if result.status == Status::Failed);
    assert_eq!(
        plain.0.iter().filter(fails).count(),
        1,
        "without an override a result stays"
    );
}

#[test]
fn points_of_upper_crates_are_declared_when_their_names_are_asked() {
    let names = [
        SubagentStarted::NAME,
        SubagentStopped::NAME,
        Handoff::NAME,
        TeammateJoined::NAME,
        TeammateLeft::NAME,
        TeamMessage::NAME,
        TeammateCompleted::NAME,
        TeammateFailed::NAME,
    ];
    let expect = [
        "subagent_started",
        "subagent_stopped",
        "handoff",
        "teammate_joined",
        "teammate_left",
        "team_message",
        "teammate_completed",
        "teammate_failed",
    ];
    assert_eq!(names, expect);
}

#[tokio::test]
async fn observer_hears_of_a_point_when_an_upper_crate_fires_it() {
    let lines = Lines::default();
    let hooks = watching(&lines, denials).on(|_: HookContext, point: TeamMessage| async move {
        if &*point.to == "*" {
            Verdict::Deny("too loud".into())
        } else {
            Verdict::Pass(point)
        }
    });
    let cx = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&cx);
    let agent = working(scripts()).on(move |cx: HookContext, point: BeforeRun| {
        *keep.lock().expect("no panic inside") = Some(cx);
        async { Verdict::Pass(point) }
    });
    agent.run("Go.").await.expect("the run finishes");
    let cx = cx
        .lock()
        .expect("no panic inside")
        .take()
        .expect("a point was reached");
    let message = |to: &str| TeamMessage::new("blue".into(), "a".into(), to.into(), "Hi.".into());
    assert!(
        matches!(hooks.pass(&cx, message("b")).await, Verdict::Pass(point) if &*point.content == "Hi.")
    );
    assert!(
        matches!(hooks.pass(&cx, message("*")).await, Verdict::Deny(reason) if &*reason == "too loud")
    );
    assert_eq!(told(&lines), ["team_message", "team_message: too loud"]);
}

//! The rules of a chain at the points within a turn: changes feed forward, before-points fail closed.

#[path = "loop_rules/stage.rs"]
#[expect(dead_code, reason = "the rest is for other tests")]
mod stage;

use std::sync::Arc;

use adjutant_agent::{
    Agent, AtLimit, Error as AgentError, Failure, HookContext, Hooks, Limits, Outcome, Verdict,
    points::{AfterModel, AfterTool, BeforeModel, BeforeTool, ModelError, ToolError as Failed},
};
use adjutant_llm::{
    Block, CallResult, Edit, Entry, Error, ErrorKind, FinishReason, Reply, Script, ScriptedModel,
    Status,
};
use adjutant_tool::{Answer, ToolError};
use serde_json::json;

/// A model that calls a tool with `n` 1 and then answers, and an agent whose tool shows its arguments.
fn working() -> (Arc<ScriptedModel>, Agent) {
    let (model, agent) = stage::agent([
        Script::new().call("work", json!({"n": 1})),
        Script::new().text("Done."),
    ]);
    (
        model,
        agent.tool(stage::tool("work", |args, _| async move {
            Ok(CallResult::ok(args["n"].to_string()))
        })),
    )
}

fn said(text: &str) -> Arc<Reply> {
    let mut reply = Reply::new("scripted/model".into(), FinishReason::End);
    reply.blocks = vec![Arc::new(Block::text(text))];
    Arc::new(reply)
}

#[tokio::test]
async fn changes_feed_forward_when_several_hooks_change_a_call() {
    let before = |mark: &'static str| {
        move |_: HookContext, mut point: BeforeTool| async move {
            point.args["n"] = json!(format!("{}{mark}", point.args["n"]));
            Verdict::Pass(point)
        }
    };
    let after = |mark: &'static str| {
        move |_: HookContext, mut point: AfterTool| async move {
            point.result = CallResult::ok(format!("{}{mark}", point.result.text()));
            Verdict::Pass(point)
        }
    };
    let (_, agent) = working();
    let result = agent
        .on(before("a"))
        .on(before("b"))
        .on(after("c"))
        .on(after("d"))
        .run("Go.")
        .await;
    assert_eq!(
        stage::calls(&result.expect("the run finishes"))[0].2,
        "\"\\\"1a\\\"b\"cd"
    );
}

#[tokio::test]
async fn changes_feed_forward_when_several_hooks_change_a_request_and_its_reply() {
    let before = |mark: &'static str| {
        move |_: HookContext, mut point: BeforeModel| async move {
            point.once.push(Edit::Append {
                entry: Entry::User(format!("{mark} {}", point.once.len()).into()),
            });
            Verdict::Pass(point)
        }
    };
    let after = |mark: &'static str| {
        move |_: HookContext, mut point: AfterModel| async move {
            point.reply = said(&format!("{}{mark}", point.reply.text()));
            Verdict::Pass(point)
        }
    };
    let (model, agent) = stage::agent([Script::new().text("Hi.")]);
    let result = agent
        .on(before("a"))
        .on(before("b"))
        .on(after("c"))
        .on(after("d"))
        .run("Go.")
        .await;
    assert_eq!(result.expect("the run finishes").text(), "Hi.cd");
    let texts: Vec<_> = model.requests()[0]
        .entries
        .iter()
        .filter_map(|stored| match &stored.entry {
            Entry::User(message) => message.content[0].as_text().map(str::to_owned),
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["Go.", "a 0", "b 1"]);
}

#[tokio::test]
async fn mended_failure_is_seen_by_the_next_hook_when_several_mend() {
    let mends = |mark: &'static str| {
        move |_: HookContext, mut point: ModelError| async move {
            let before = point
                .reply
                .as_ref()
                .map(|reply| reply.text())
                .unwrap_or_default();
            point.reply = Some(said(&format!("{before}{mark}")));
            Verdict::Pass(point)
        }
    };
    let (_, agent) = stage::agent([Script::new().fail(Error::new(ErrorKind::Auth, "no key"))]);
    assert_eq!(
        agent
            .on(mends("a"))
            .on(mends("b"))
            .run("Go.")
            .await
            .expect("it is mended")
            .text(),
        "ab"
    );
    let mends = |mark: &'static str| {
        move |_: HookContext, mut point: Failed| async move {
            point.result = CallResult::ok(format!("{}{mark}", point.result.text()));
            Verdict::Pass(point)
        }
    };
    let (_, agent) = stage::agent([
        Script::new().call("fails", json!({})),
        Script::new().text("Done."),
    ]);
    let agent = agent.tool(stage::tool("fails", |_, _| async {
        Err(ToolError::failed("it broke, "))
    }));
    let result = agent
        .on(mends("a"))
        .on(mends("b"))
        .run("Go.")
        .await
        .expect("the run finishes");
    assert_eq!(
        stage::calls(&result),
        [("fails".to_owned(), Status::Ok, "it broke, ab".to_owned())]
    );
}

fn failure(error: &AgentError) -> Option<&Failure> {
    match &error.result()?.outcome {
        Outcome::Failed { failure } => Some(failure),
        _ => None,
    }
}

#[tokio::test]
async fn before_point_of_a_turn_denies_when_its_hook_fails() {
    let (_, agent) = working();
    let fails =
        |_: HookContext, _: BeforeTool| async { Err::<Verdict<BeforeTool>, _>("no such file") };
    let result = agent.on(fails).run("Go.").await.expect("the run finishes");
    assert_eq!(
        stage::calls(&result)[0],
        (
            "work".into(),
            Status::Denied,
            "not executed: no such file".into()
        )
    );

    let (model, agent) = working();
    let fails =
        |_: HookContext, _: BeforeModel| async { Err::<Verdict<BeforeModel>, _>("no such file") };
    let error = agent
        .on(fails)
        .run("Go.")
        .await
        .expect_err("the request is denied");
    let expect = Failure::Denied {
        point: "before_model".into(),
        reason: "no such file".into(),
    };
    assert_eq!(
        (failure(&error), model.requests().len()),
        (Some(&expect), 0)
    );
}

#[tokio::test]
async fn failure_stays_when_a_hook_that_should_mend_it_fails() {
    let (_, agent) = stage::agent([
        Script::new().call("fails", json!({})),
        Script::new().text("Done."),
    ]);
    let agent = agent
        .tool(stage::tool("fails", |_, _| async {
            Err(ToolError::failed("it broke"))
        }))
        .on(|_: HookContext, _: Failed| async { Err::<Verdict<Failed>, _>("no idea") });
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        stage::calls(&result),
        [("fails".to_owned(), Status::Failed, "it broke".to_owned())]
    );
}

#[tokio::test]
async fn hooks_are_passed_when_the_last_request_follows_a_declined_limit() {
    let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let (model, agent) = working();
    let agent = agent
        .hooks(Hooks::default().observe(move |it| {
            if matches!(it.point, "before_model" | "after_model") {
                seen.lock().expect("no panic inside").push(it.point);
            }
        }))
        .limits(Limits {
            max_turns: Some(1),
            at_limit: AtLimit::Ask,
            ..Limits::default()
        })
        .responder(|_, _| async { Some(Answer::Decline { message: None }) });
    agent.run("Go.").await.expect("the run ends");
    assert_eq!(model.requests().len(), 2);
    let each = ["before_model", "after_model", "before_model", "after_model"];
    assert_eq!(*asked.lock().expect("no panic inside"), each);
}

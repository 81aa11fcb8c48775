//! What is set counts for the next run, and a run can be stopped from anywhere.

use std::{sync::Arc, time::Duration};

use adjutant_agent::{Agent, CancelBy, EventKind, Limits, Outcome};
use adjutant_llm::{CallResult, Effort, Gate, Options, Request, Script, ScriptedModel};
use adjutant_tool::Tools;
use serde_json::json;

use super::stage::{agent, tool};

fn named(name: &str) -> impl adjutant_tool::ErasedTool + 'static {
    tool(name, |_, _| async { Ok(CallResult::ok("ok")) })
}

fn facts(request: &Request) -> (String, Option<Effort>, Vec<String>) {
    let tools = request
        .tools
        .iter()
        .map(|tool| tool.name.to_string())
        .collect();
    (request.system.to_string(), request.options.thinking, tools)
}

#[tokio::test]
async fn setters_count_for_the_next_run_when_one_is_going_on() {
    let gate = Gate::default();
    let scripts = [
        Script::new().call("one", json!({})).wait_at(0, &gate),
        Script::new().text("Done."),
    ];
    let (old, before) = agent(scripts);
    let before = before
        .instructions("Old.")
        .tools(Tools::new("own").tool(named("one")));
    let running = before.run("Go.").stream().expect("the session is free");
    let new = Arc::new(ScriptedModel::new([Script::new().text("New.")]));
    let tools = Tools::new("own").tool(named("two"));
    let after = before
        .clone()
        .instructions("New.")
        .model(Arc::clone(&new))
        .thinking(Effort::High)
        .tools(tools.clone());
    let _ = tools.tool(named("never"));
    gate.open();
    running.finish().await.expect("the run finishes");
    let old_facts = ("Old.".to_owned(), None, vec!["one".to_owned()]);
    assert_eq!(
        old.requests().iter().map(facts).collect::<Vec<_>>(),
        [old_facts.clone(), old_facts]
    );
    after.run("Again.").await.expect("the run finishes");
    let expected = (
        "Old.".to_owned(),
        Some(Effort::High),
        vec!["two".to_owned()],
    );
    assert_eq!(
        new.requests().iter().map(facts).collect::<Vec<_>>(),
        [expected]
    );
}

/// How many calls were at work together.
async fn together(agent: impl FnOnce(Agent) -> Agent) -> usize {
    let at_work = Arc::new(std::sync::Mutex::new((0_usize, 0_usize)));
    let seen = Arc::clone(&at_work);
    let body = tool("work", move |_, _| {
        let seen = Arc::clone(&seen);
        async move {
            {
                let mut seen = seen.lock().expect("no panic inside");
                seen.0 += 1;
                seen.1 = seen.1.max(seen.0);
            }
            // Time passes only when nothing else can move: whatever may begin beside this has begun.
            tokio::time::sleep(Duration::from_millis(1)).await;
            seen.lock().expect("no panic inside").0 -= 1;
            Ok(CallResult::ok("ok"))
        }
    });
    let calls = Script::new()
        .call("work", json!({}))
        .call("work", json!({}));
    let model = ScriptedModel::new([calls, Script::new().text("Done.")]);
    agent(Agent::new(model).tool(body))
        .run("Go.")
        .await
        .expect("the run finishes");
    at_work.lock().expect("no panic inside").1
}

#[tokio::test(start_paused = true)]
async fn calls_run_one_by_one_when_the_agent_says_so() {
    assert_eq!(together(|agent| agent).await, 2);
    assert_eq!(
        together(|agent| agent.limits(Limits {
            sequential: true,
            ..Limits::default()
        }))
        .await,
        1
    );
}

#[tokio::test]
async fn thinking_reaches_the_request_when_the_agent_sets_it() {
    let (model, agent) = agent([Script::new().text("Done.")]);
    let mut options = Options::default();
    (options.thinking, options.temperature) = (Some(Effort::Low), Some(0.5));
    agent
        .options(options)
        .thinking(Effort::Max)
        .run("Go.")
        .await
        .expect("the run finishes");
    let request = model.requests().remove(0);
    assert_eq!(
        (request.options.thinking, request.options.temperature),
        (Some(Effort::Max), Some(0.5))
    );
}

#[tokio::test]
async fn options_reach_every_request_when_the_agent_sets_them() {
    let (model, agent) = agent([
        Script::new().call("work", json!({})),
        Script::new().text("Done."),
    ]);
    let mut options = Options::default();
    (options.temperature, options.max_output_tokens) = (Some(0.1), Some(99));
    options.headers.insert("x-team".into(), "blue".into());
    agent
        .options(options.clone())
        .tool(named("work"))
        .run("Go.")
        .await
        .expect("the run finishes");
    assert_eq!(
        model
            .requests()
            .iter()
            .map(|it| (*it.options).clone())
            .collect::<Vec<_>>(),
        [options.clone(), options]
    );
}

#[tokio::test]
async fn run_is_cancelled_when_the_agent_is_told_to_stop() {
    let gate = Gate::default();
    let (_, agent) = agent([
        Script::new()
            .text("One two")
            .delta_chars(4)
            .wait_at(1, &gate),
        Script::new().text("Two."),
    ]);
    assert_eq!((agent.abort(), agent.is_running()), (false, false));
    let mut running = agent.run("Go.").stream().expect("the session is free");
    while let Some(event) = running.next().await {
        if matches!(event.kind, EventKind::TextDelta { .. }) {
            break;
        }
    }
    assert!(agent.is_running());
    let (task, other) = (tokio::spawn(running.finish()), agent.clone());
    assert!(
        tokio::spawn(async move { other.abort() })
            .await
            .expect("no panic")
    );
    let result = task.await.expect("no panic").expect("a cancel is no error");
    assert_eq!(
        (result.outcome, agent.is_running()),
        (Outcome::Cancelled { by: CancelBy::User }, false)
    );
    assert!(!agent.abort());
    assert_eq!(
        agent.run("Again.").await.expect("the run finishes").text(),
        "Two."
    );
}

#[tokio::test]
async fn run_is_cancelled_when_the_agent_is_told_to_stop_before_it_is_read() {
    let (model, agent) = agent([Script::new().text("Never.")]);
    let running = agent.run("Go.").stream().expect("the session is free");
    assert!(agent.is_running() && agent.abort());
    let result = running.finish().await.expect("a cancel is no error");
    assert_eq!(
        (result.outcome, model.requests().len()),
        (Outcome::Cancelled { by: CancelBy::User }, 0)
    );
}

#[test]
fn session_id_is_unique_when_agents_are_made() {
    let (one, other) = (agent([]).1, agent([]).1);
    assert_ne!(one.session_id(), other.session_id());
    assert_ne!(one.identity().agent_id, other.identity().agent_id);
    assert_eq!(one.clone().session_id(), one.session_id());
}

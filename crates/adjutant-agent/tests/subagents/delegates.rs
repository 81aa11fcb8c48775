//! Agents as tools: a task in, an answer out.

use std::sync::Arc;

use adjutant_agent::{Agent, agent_tool};
use adjutant_llm::{CallResult, Script, ScriptedModel, Status};
use adjutant_tool::Replay;
use serde_json::{Value, json};

use super::desk::{calls, results, says, tool};

/// An agent that gives these orders to `research` and `write`, one reply each, and then is done.
fn boss(
    orders: &[(&'static str, Value)],
    research: Agent,
    write: Agent,
) -> (Arc<ScriptedModel>, Agent) {
    let order = |(name, order): &(&'static str, Value)| Script::new().call(*name, order.clone());
    let scripts: Vec<_> = orders.iter().map(order).chain([says("Done.")]).collect();
    let model = Arc::new(ScriptedModel::new(scripts));
    let agent = Agent::new(Arc::clone(&model))
        .tool(agent_tool("research", "Finds things out.", research))
        .tool(agent_tool("write", "Writes texts.", write));
    (model, agent)
}

#[tokio::test]
async fn subagent_answers_as_a_tool_when_the_model_calls_it() {
    let researcher = Arc::new(ScriptedModel::new([says("Found.")]));
    let writer = Arc::new(ScriptedModel::new([says("Written.")]));
    let orders = [
        ("research", json!({"task": "Find it."})),
        ("write", json!({"task": "Write it."})),
    ];
    let (model, agent) = boss(
        &orders,
        Agent::new(Arc::clone(&researcher)),
        Agent::new(Arc::clone(&writer)),
    );
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(results(&result), ["Found.", "Written."]);
    let shown: Vec<_> = model.requests()[0]
        .tools
        .iter()
        .map(|it| (it.name.to_string(), it.description.to_string()))
        .collect();
    let expected = [
        ("research", "Finds things out."),
        ("write", "Writes texts."),
    ];
    assert_eq!(
        shown,
        expected.map(|(name, text)| (name.to_owned(), text.to_owned()))
    );
    assert_eq!(researcher.requests()[0].entries.len(), 1, "the task only");
    assert_eq!(writer.requests()[0].entries.len(), 1, "the task only");
}

#[tokio::test]
async fn subagent_call_is_refused_when_its_task_is_missing_or_empty() {
    let researcher = Arc::new(ScriptedModel::new([]));
    let orders =
        [json!({}), json!({"task": ""}), json!({"task": "  "})].map(|order| ("research", order));
    let (_, agent) = boss(
        &orders,
        Agent::new(Arc::clone(&researcher)),
        Agent::inheriting("writer"),
    );
    let result = agent.run("Go.").await.expect("the run finishes");
    for call in &result.calls {
        assert_eq!(call.result.status, Status::InvalidArguments);
        assert!(
            call.result.text().contains("task"),
            "{}",
            call.result.text()
        );
    }
    assert_eq!((result.calls.len(), researcher.requests().len()), (3, 0));
}

#[tokio::test]
async fn subagent_keeps_to_its_turns_when_the_call_limits_them() {
    let step = tool("step", Replay::Pure, |_| async {
        Ok(CallResult::ok("stepped"))
    });
    let model = Arc::new(ScriptedModel::new((0..9).map(|_| calls(&["step"]))));
    let orders = [("research", json!({"task": "Find it.", "max_turns": 3}))];
    let (_, agent) = boss(
        &orders,
        Agent::new(Arc::clone(&model)).tool(step),
        Agent::inheriting("writer"),
    );
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        results(&result),
        ["the agent reached its limit of max turns"]
    );
    assert_eq!(model.requests().len(), 3);
}

#[tokio::test]
async fn subagent_keeps_to_its_own_turns_when_the_call_allows_more() {
    let step = tool("step", Replay::Pure, |_| async {
        Ok(CallResult::ok("stepped"))
    });
    let model = Arc::new(ScriptedModel::new((0..9).map(|_| calls(&["step"]))));
    let orders = [("research", json!({"task": "Find it.", "max_turns": 8}))];
    let research = Agent::new(Arc::clone(&model)).tool(step).max_turns(2);
    let (_, agent) = boss(&orders, research, Agent::inheriting("writer"));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        results(&result),
        ["the agent reached its limit of max turns"]
    );
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn subagent_can_be_reused_when_it_is_called_again() {
    let model = Arc::new(ScriptedModel::new([says("One."), says("Two.")]));
    let orders = ["First.", "Second."].map(|task| ("research", json!({ "task": task })));
    let (_, agent) = boss(
        &orders,
        Agent::new(Arc::clone(&model)),
        Agent::inheriting("writer"),
    );
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(results(&result), ["One.", "Two."]);
    assert_eq!(
        model
            .requests()
            .iter()
            .map(|it| it.entries.len())
            .collect::<Vec<_>>(),
        [1, 1]
    );
}

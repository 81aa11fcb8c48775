//! The tree of agents, as events tell it.

use adjutant_agent::{Agent, Spawn, agent_tool};
use adjutant_llm::{CallResult, Script, ScriptedModel, Usage};
use adjutant_orchestration::{AgentTree, NodeState};
use adjutant_tool::{CallContext, ToolSpec, tool_fn};
use serde_json::{Value, json};

fn says(text: &'static str) -> Script {
    Script::new().text(text).usage(Usage {
        output: 10,
        ..Usage::default()
    })
}

async fn seen(agent: &Agent) -> AgentTree {
    let mut running = agent
        .run("Compare insects.\nAll of them.")
        .stream()
        .expect("the session is free");
    let mut tree = AgentTree::new();
    while let Some(event) = running.next().await {
        tree.see(&event);
    }
    tree
}

#[tokio::test]
async fn tree_shows_every_agent_below_the_one_that_opened_it() {
    let ant = Agent::new(ScriptedModel::new([says("Ants.")])).name("ant");
    let call = Script::new()
        .call("ants", json!({"task": "Find ants."}))
        .usage(Usage {
            output: 5,
            ..Usage::default()
        });
    let scout = Agent::new(ScriptedModel::new([call, says("Found.")])).name("scout");
    let scout = scout.tool(agent_tool("ants", "Knows ants.", ant));
    let broken = Agent::new(ScriptedModel::new([])).name("broken");
    let script = Script::new()
        .call("scouts", json!({"task": "Look."}))
        .call("breaks", json!({"task": "Break."}));
    let lead = Agent::new(ScriptedModel::new([
        script.usage(Usage::default()),
        says("Six legs."),
    ]))
    .name("lead");
    let lead = lead
        .tool(agent_tool("scouts", "Looks.", scout))
        .tool(agent_tool("breaks", "Breaks.", broken));
    let tree = seen(&lead).await;
    let expect = "lead: finished, 2 turns, 10 tokens, 2 calls (Compare insects.)\n\
                  ├─ scout: finished, 2 turns, 15 tokens, 1 call (Look.)\n\
                  │  └─ ant: finished, 1 turn, 10 tokens (Find ants.)\n\
                  └─ broken: failed, 1 turn, 0 tokens (Break.)\n";
    let shown = tree.to_string().replace("117 tokens", "0 tokens");
    assert_eq!(without_estimates(&shown), without_estimates(expect));
    assert_eq!(
        tree.nodes()
            .iter()
            .filter(|node| node.state == NodeState::Failed)
            .count(),
        1
    );
}

/// What a model used that never answered is an estimate.
fn without_estimates(text: &str) -> String {
    let of = |line: &str| {
        if line.contains("broken") {
            line.replace(char::is_numeric, "")
        } else {
            line.to_owned()
        }
    };
    text.lines().map(of).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn tree_counts_what_it_does_not_show_when_there_are_too_many() {
    let spec = ToolSpec::new("crowd", "Opens many.", json!({"type": "object"}));
    let crowd = tool_fn(spec, |_: Value, cx: CallContext| async move {
        let spawn = cx.get::<dyn Spawn>().expect("a call of a run");
        for number in 0..1_005 {
            let child = Agent::new(ScriptedModel::new([says("Here.")])).name(format!("c{number}"));
            spawn
                .open(&number.to_string(), child.into())
                .await?
                .run("Go.")
                .await?;
        }
        Ok(CallResult::ok("done"))
    });
    let model = ScriptedModel::new([Script::new().call("crowd", json!({})), says("Done.")]);
    let tree = seen(&Agent::new(model).name("lead").tool(crowd)).await;
    assert_eq!(tree.nodes().len(), 1_000);
    assert_eq!(tree.more(), 6, "the lead and 999 of 1,005 are shown");
}

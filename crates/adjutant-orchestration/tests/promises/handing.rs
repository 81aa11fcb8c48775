//! Handoffs: who is asked, who may be handed to, and what hands nothing over.

use std::sync::{Arc, Mutex};

use adjutant_agent::{Agent, Pause};
use adjutant_llm::{CallResult, Script, ScriptedModel, Status};
use adjutant_orchestration::{HandoffChain, HandoffTarget};
use adjutant_tool::{Answer, Approval, ErasedTool, Identity, ToolSpec, tool_fn};
use serde_json::json;

use super::says;

fn write() -> impl ErasedTool + 'static {
    let spec = ToolSpec {
        approval: Approval::Always,
        ..ToolSpec::new("write", "Writes.", json!({ "type": "object" }))
    };
    tool_fn(spec, |_, _| async { Ok(CallResult::ok("written")) })
}

fn relay(targets: impl IntoIterator<Item = HandoffTarget>) -> HandoffChain {
    HandoffChain::new(targets).expect("the names are good")
}

#[tokio::test]
async fn responder_of_the_target_is_asked_when_it_has_the_conversation() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let agent = |name: &'static str, script: Vec<Script>| {
        let asked = Arc::clone(&asked);
        let responder = move |who: Identity, _: Pause| {
            asked
                .lock()
                .expect("nobody panics inside")
                .push(format!("{name} of {}", who.name));
            async move {
                Some(if name == "b" {
                    Answer::approve()
                } else {
                    Answer::deny("no")
                })
            }
        };
        HandoffTarget::new(
            name,
            "",
            Agent::new(ScriptedModel::new(script))
                .tool(write())
                .responder(responder),
        )
    };
    let write = || Script::new().call("write", json!({}));
    let first = vec![write(), Script::new().call("transfer_to_b", json!({}))];
    let relay = relay([
        agent("a", first),
        agent("b", vec![write(), says("Written.")]),
    ]);
    let result = relay.run("Go.").await.expect("one answers");
    assert_eq!(result.handed_over[0].calls[0].result.status, Status::Denied);
    assert_eq!(
        (
            &*result.last.agent.name,
            result.last.calls[0].result.text().as_str()
        ),
        ("b", "written")
    );
    assert_eq!(
        *asked.lock().expect("nobody panics inside"),
        ["a of a", "b of b"]
    );
}

#[tokio::test]
async fn conversation_stays_when_an_ordinary_tool_is_called() {
    let spec = ToolSpec::new("transfer_money", "Transfers.", json!({ "type": "object" }));
    let tool = tool_fn(spec, |_, _| async { Ok(CallResult::ok("transferred")) });
    let model = ScriptedModel::new([
        Script::new().call("transfer_money", json!({})),
        says("It is paid."),
    ]);
    let nobody = HandoffTarget::new("b", "", Agent::new(ScriptedModel::new([])));
    let result = relay([
        HandoffTarget::new("a", "", Agent::new(model).tool(tool)),
        nobody,
    ])
    .run("Pay.")
    .await;
    let result = result.expect("one answers");
    assert_eq!(
        (&*result.last.agent.name, result.handed_over.len()),
        ("a", 0)
    );
    assert_eq!(result.text(), "It is paid.");
}

#[tokio::test]
async fn tools_tell_when_to_hand_over_and_only_to_whom_one_may() {
    let model = Arc::new(ScriptedModel::new([says("I answer.")]));
    let idle = |name: &'static str, about: &'static str| {
        HandoffTarget::new(name, about, Agent::new(ScriptedModel::new([])))
    };
    let desk = HandoffTarget::new("desk", "", Agent::new(Arc::clone(&model))).to(["billing"]);
    relay([
        desk,
        idle("billing", "Bills and refunds."),
        idle("legal", "Lawsuits."),
    ])
    .run("Hi.")
    .await
    .expect("it answers");
    let request = &model.requests()[0];
    let tools: Vec<_> = request.tools.iter().collect();
    let [tool] = tools.as_slice() else {
        unreachable!("one tool: {tools:?}")
    };
    assert_eq!(tool.name.as_str(), "transfer_to_billing");
    assert!(
        tool.description.contains("billing") && tool.description.ends_with("Bills and refunds.")
    );
    assert_eq!(
        tool.schema["required"],
        json!(null),
        "a reason may be left out"
    );
}

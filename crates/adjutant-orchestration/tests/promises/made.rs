//! What tools are called and say of themselves, and what members are made of.

use std::sync::Arc;

use adjutant_agent::Agent;
use adjutant_llm::{Script, ScriptedModel};
use adjutant_orchestration::{
    Background, BackgroundOptions, FanOutOptions, fan_out_tool, team::Team,
};
use serde_json::json;

use super::{says, told};

#[tokio::test]
async fn tools_have_the_names_and_descriptions_that_they_are_given() {
    let idle = || Agent::new(ScriptedModel::new([]));
    let model = Arc::new(ScriptedModel::new([says("Hello.")]));
    let background = Background::new(BackgroundOptions::new());
    let agent = Agent::new(Arc::clone(&model))
        .tool(fan_out_tool(
            "each",
            "Does each.",
            idle(),
            FanOutOptions::new(),
        ))
        .tool(background.tool("research", "Finds things out.", idle()));
    agent.run("Hi.").await.expect("it answers");
    let request = &model.requests()[0];
    let shown: Vec<(&str, &str)> = request
        .tools
        .iter()
        .map(|it| (it.name.as_str(), &*it.description))
        .collect();
    assert_eq!(
        shown,
        [("each", "Does each."), ("research", "Finds things out.")]
    );
}

#[tokio::test(start_paused = true)]
async fn member_has_instructions_and_a_briefing_when_it_is_made_of_nothing() {
    let spawn = Script::new().call(
        "spawn_teammate",
        json!({ "name": "scout", "task": "Look around." }),
    );
    // Whoever asks first, the member or the lead, gets the next reply.
    let either = || {
        Script::from_fn(|request| {
            match told(request).iter().any(|text| text.contains("Your task:")) {
                true => says(&format!("{}|{}", request.system, told(request).join("|"))),
                false => Script::new().call("wait_for_team", json!({})),
            }
        })
    };
    let read = Script::new().call("read_messages", json!({}));
    let model = ScriptedModel::new([spawn, either(), either(), read, says("Done.")]);
    let lead = Team::new("crew").install(Agent::new(model).instructions("You lead."));
    let result = lead.run("Go.").await.expect("the run finishes");
    let said = result.calls.last().expect("it reads").result.text();
    assert!(
        said.contains("You work in") && said.contains("crew") && !said.contains("You lead."),
        "{said}"
    );
    assert!(
        said.contains("send_message")
            && said.contains("read_messages")
            && said.contains("Look around."),
        "{said}"
    );
}

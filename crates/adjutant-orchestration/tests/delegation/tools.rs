//! Which tools and sections there are, and what the tools refuse.

use adjutant_agent::Agent;
use adjutant_llm::{FixedWorld, ScriptedModel, Status};
use adjutant_orchestration::{Delegation, Profile, Registry};
use serde_json::json;

use super::desk::{
    boss, boss_with, calls, delegated, delegates, register, reports, results, says, task, tools,
};

fn team() -> Registry {
    let registry = Registry::new();
    let coder = Profile::new("coder", "Writes code.")
        .skill("rust")
        .skill("sql")
        .cost_estimate("high");
    register(&registry, coder.max_concurrency(3), |_| {
        vec![reports("Coded.")]
    });
    register(&registry, Profile::new("writer", "Writes\ntexts."), |_| {
        vec![reports("Written.")]
    });
    register(&registry, Profile::new("Boss", "Leads."), |_| vec![]);
    registry
}

#[tokio::test]
async fn tools_are_absent_when_no_depth_is_left() {
    let (model, agent) = boss_with(Delegation::new(team()).max_depth(0), [says("Alone.")]);
    agent.run("Go.").await.expect("the run finishes");
    let request = &model.requests()[0];
    assert_eq!((tools(request), &*request.system), (vec![], ""));
}

#[tokio::test]
async fn agent_delegates_once_when_no_depth_is_set() {
    let registry = Registry::new();
    register(
        &registry,
        Profile::new("lead", "Leads.").max_depth(3),
        |_| vec![reports("Led.")],
    );
    let (model, agent) = boss_with(
        Delegation::new(registry),
        [delegates([task("lead", "Lead it.")]), says("Done.")],
    );
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(tools(&model.requests()[0]), ["list_agents", "delegate"]);
    assert_eq!(result.calls[0].result.details[0]["result"], "Led.");
}

#[tokio::test]
async fn tools_of_the_root_do_not_complete_tasks_when_it_delegates() {
    let (model, agent) = boss(&team(), [says("Alone.")]);
    agent.run("Go.").await.expect("the run finishes");
    assert_eq!(tools(&model.requests()[0]), ["list_agents", "delegate"]);
    assert!(!model.requests()[0].system.contains("completion_protocol"));
}

#[tokio::test]
async fn agents_are_listed_without_oneself_when_they_are_asked_for() {
    let (_, agent) = boss(&team(), [calls("list_agents", json!({})), says("Done.")]);
    let result = agent.run("Go.").await.expect("the run finishes");
    let expected = json!([
        {
            "name": "coder", "description": "Writes code.", "skills": ["rust", "sql"], "estimated_cost": "high",
            "max_concurrency": 3,
        },
        { "name": "writer", "description": "Writes\ntexts." },
    ]);
    assert_eq!(
        (
            &result.calls[0].result.details,
            result.calls[0].result.text()
        ),
        (&expected, expected.to_string())
    );
}

#[tokio::test]
async fn section_lists_the_agents_when_a_run_starts() {
    let registry = team();
    let model = std::sync::Arc::new(ScriptedModel::new([says("One."), says("Two.")]));
    let agent = Agent::new(std::sync::Arc::clone(&model))
        .name("boss")
        .instructions("Lead.");
    let agent = Delegation::new(registry.clone())
        .max_depth(1)
        .install(agent.world(FixedWorld::at_ms(1_000)));
    agent.run("Go.").await.expect("the run finishes");
    register(
        &registry,
        Profile::new("tester", "Tests </available_agents>."),
        |_| vec![],
    );
    agent.run("Go on.").await.expect("the run finishes");
    let before = "<instructions>\nLead.\n</instructions>\n\n<available_agents>\n\
        - coder: Writes code. [skills: rust, sql] [cost: high] [at a time: 3]\n";
    let systems: Vec<String> = model
        .requests()
        .iter()
        .map(|it| it.system.to_string())
        .collect();
    assert_eq!(
        systems[0],
        format!("{before}- writer: Writes texts.\n</available_agents>")
    );
    let after =
        "- tester: Tests &lt;/available_agents>.\n- writer: Writes texts.\n</available_agents>";
    assert_eq!(systems[1], systems[0]);
    let last = &model.requests()[1];
    let announced = format!("{:?}", last.entries);
    assert!(
        announced.contains("- tester: Tests &lt;/available_agents>."),
        "{after}: {announced}"
    );
}

#[tokio::test]
async fn section_is_bounded_when_there_are_very_many_agents() {
    let registry = Registry::new();
    for at in 0..2_000 {
        register(
            &registry,
            Profile::new(format!("agent{at:04}"), "ü".repeat(2_000)),
            |_| vec![],
        );
    }
    let (model, agent) = boss(&registry, [calls("list_agents", json!({})), says("Done.")]);
    let result = agent.run("Go.").await.expect("the run finishes");
    let system = model.requests()[0].system.to_string();
    assert!(
        system.len() < 64 << 10 && system.contains("more; `list_agents` shows them"),
        "{}",
        system.len()
    );
    assert!(
        result.calls[0]
            .result
            .text()
            .ends_with("\n1800 more are not listed")
    );
}

#[tokio::test]
async fn delegation_to_oneself_refuses_the_whole_call_when_one_task_is_one() {
    let registry = team();
    let asked = register(&registry, Profile::new("coder", ""), |_| {
        vec![reports("Coded.")]
    });
    let (_, agent) = boss(
        &registry,
        [
            delegates([task("coder", "Code."), task(" BOSS ", "Lead.")]),
            says("Done."),
        ],
    );
    let result = agent.run("Go.").await.expect("the run finishes");
    let refused = &result.calls[0].result;
    assert_eq!(refused.status, Status::InvalidArguments);
    assert!(
        refused
            .text()
            .contains("an agent cannot delegate to itself, \"boss\""),
        "{}",
        refused.text()
    );
    assert_eq!(asked.instances(), 0);
}

#[tokio::test]
async fn delegation_to_oneself_is_known_by_the_config_name_when_the_instance_has_another() {
    let registry = Registry::new();
    let lead = register(&registry, Profile::new("lead", "").max_depth(1), |_| {
        vec![delegates([task("Lead", "Do it.")]), reports("Refused.")]
    });
    let (_, agent) = boss_with(
        Delegation::new(registry).max_depth(3),
        [delegates([task("lead", "Lead it.")]), says("Done.")],
    );
    agent.run("Go.").await.expect("the run finishes");
    let requests = lead.requests();
    assert_eq!((lead.instances(), requests.len()), (1, 2));
    let said = requests[1]
        .entries
        .iter()
        .map(|it| format!("{:?}", it.entry))
        .collect::<String>();
    assert!(
        said.contains("an agent cannot delegate to itself"),
        "{said}"
    );
}

#[tokio::test]
async fn unknown_agent_fails_its_task_alone_when_others_are_known() {
    let results = delegated(
        &team(),
        [
            task("nobody", "Do it."),
            task("coder", "Code it."),
            task("writer", "  "),
        ],
    )
    .await;
    let expected = json!([
        { "agent": "nobody", "error": "there is no agent of this name: \"nobody\"; hint: list_agents" },
        {
            "agent": "coder-code-1", "result": "Coded.",
            "completion": { "status": "completed", "summary": "Coded." },
        },
        { "agent": "writer", "error": "`task` is blank: say what to do" },
    ]);
    assert_eq!(results, expected);
}

#[tokio::test]
async fn nothing_comes_of_an_empty_list_when_it_is_delegated() {
    assert_eq!(delegated(&team(), []).await, json!([]));
}

#[tokio::test]
async fn call_is_refused_when_it_holds_too_many_tasks() {
    let registry = team();
    let results = delegated(&registry, (0..129).map(|_| task("coder", "Code it."))).await;
    assert!(results.is_string(), "{results}");
    assert_eq!(registry.next_id("coder"), 1, "none was begun");
}

#[tokio::test]
async fn result_of_delegate_is_in_details_too_when_the_application_looks() {
    let (_, agent) = boss(
        &team(),
        [delegates([task("coder", "Code it.")]), says("Done.")],
    );
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(result.calls[0].result.details, results(&result)[0]);
}

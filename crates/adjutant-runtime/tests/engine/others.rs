//! Agents beside and below the one that is spoken to.

use std::sync::{Arc, Mutex};

use adjutant_agent::{ChildLink, ChildOrder, ChildRole, LogId, LogInfo, Outcome, Placement};
use adjutant_llm::{Script, Status};
use adjutant_runtime::Lead;
use adjutant_tool::ToolError;
use async_trait::async_trait;
use serde_json::{Value, json};

use crate::stage::{
    MODEL, OTHER, Stage, agents, calls, lead, preview, result, run, seen, still, tools, with,
};

fn chief(fields: Value) -> Value {
    with(json!({ "name": "chief", "model": MODEL }), fields)
}

fn helper(fields: Value) -> Value {
    with(
        json!({ "name": "helper", "description": "Helps.", "model": OTHER }),
        fields,
    )
}

fn task(agent: &str) -> Value {
    json!({ "tasks": [{ "agent": agent, "task": "Fix the parser.", "context": "It is in Rust." }] })
}

fn done() -> Script {
    Script::new().call(
        "task_complete",
        json!({ "status": "completed", "summary": "It is fixed." }),
    )
}

#[tokio::test]
async fn tasks_are_given_to_agents_of_the_manifest() {
    let stage = Stage::with(calls("delegate", task("helper")), [done()]);
    let manifest = agents([
        chief(json!({ "delegation": { "depth": 1 } })),
        helper(json!({ "instructions": "Be quick." })),
    ]);
    let engine = stage.engine(manifest).await;
    let ran = run(&engine).await;
    assert!(
        result(&ran, 0).contains("It is fixed."),
        "{}",
        result(&ran, 0)
    );
    assert!(stage.other.requests()[0].system.contains("Be quick."));
}

#[derive(Default)]
struct Orders(Arc<Mutex<Vec<ChildOrder>>>);

#[async_trait]
impl Placement for Orders {
    async fn begin(&self, order: ChildOrder) -> Result<ChildLink, ToolError> {
        let link = ChildLink::from(&order);
        self.0.lock().expect("no panic").push(order);
        Ok(link)
    }

    async fn stop(&self, _: &LogId) -> Result<(), ToolError> {
        Ok(())
    }
}

#[tokio::test]
async fn tasks_go_to_a_fleet_where_one_runs_the_manifest() {
    let stage = Stage::with(calls("delegate", task("helper")), [done()]);
    let chief = chief(json!({ "delegation": { "depth": 1, "on": "fleet" } }));
    let manifest = agents([
        chief,
        helper(json!({ "instructions": "Be quick.", "model": null })),
    ]);
    let wrong = stage.wrong(manifest.clone()).await.to_string();
    assert!(
        wrong.contains("chief gives tasks `on: fleet`") && wrong.contains("adjutant worker"),
        "{wrong}"
    );
    let orders = Orders::default();
    let ordered = Arc::clone(&orders.0);
    let engine = stage
        .builder(manifest)
        .placement(orders)
        .build()
        .await
        .expect("a fleet runs it");
    assert!(matches!(run(&engine).await.outcome, Outcome::Paused { .. }));
    let order = ordered.lock().expect("no panic").remove(0);
    let mut info = LogInfo::new(order.session, 0);
    assert!(engine.child(&info).is_none());
    info.about = (&order.role).into();
    let child = engine.child(&info).expect("it is one").expect("it is made");
    assert_eq!(
        (&*child.identity().name, &*child.identity().config_name),
        ("helper-fix-1", "helper")
    );
    stage.model.push(done());
    let result = child
        .new_session()
        .run(order.prompts)
        .await
        .expect("it has the model of the first one");
    assert!(
        result.is_finished()
            && stage
                .model
                .requests()
                .pop()
                .expect("it was asked")
                .system
                .contains("Be quick.")
    );
    info.about = (&ChildRole {
        agent: "stranger".into(),
        ..order.role
    })
        .into();
    assert!(
        engine
            .child(&info)
            .expect("it is one")
            .expect_err("nobody")
            .to_string()
            .contains("no such agent")
    );
}

#[tokio::test]
async fn nobody_is_given_tasks_without_depth() {
    let stage = Stage::new([]);
    let engine = stage
        .engine(agents([chief(json!({})), helper(json!({}))]))
        .await;
    assert!(tools(&preview(&engine).await).is_empty());
}

#[tokio::test]
async fn profiles_tell_what_others_are_good_for() {
    let profile =
        json!({ "expertise": ["parsers"], "estimated_cost": "cheap", "max_concurrency": 2 });
    let manifest = agents([
        chief(json!({ "delegation": { "depth": 1 } })),
        helper(profile),
    ]);
    let stage = Stage::new(calls("list_agents", json!({})));
    let engine = stage.engine(manifest).await;
    let system = preview(&engine).await.system;
    assert!(
        system.contains("helper") && system.contains("Helps."),
        "{system}"
    );
    let listed: Value = serde_json::from_str(&result(&run(&engine).await, 0)).expect("a list");
    let known = json!([{
        "name": "helper", "description": "Helps.", "skills": ["parsers"], "estimated_cost": "cheap", "max_concurrency": 2,
    }]);
    assert_eq!(listed, known);
}

#[tokio::test(start_paused = true)]
async fn so_many_work_at_a_time_as_the_agent_says() {
    for (most, together) in [(json!(1), 1), (json!(null), 2)] {
        let tasks = json!({ "tasks": [task("helper")["tasks"][0], task("helper")["tasks"][0]] });
        let gate = adjutant_llm::Gate::default();
        let waits = || done().wait_at(0, &gate);
        let stage = Stage::with(calls("delegate", tasks), [waits(), waits()]);
        let manifest = agents([
            chief(json!({ "delegation": { "depth": 1 } })),
            helper(json!({ "max_concurrency": most })),
        ]);
        let engine = stage.engine(still(manifest)).await;
        let agent = lead(&engine);
        let run = agent.run("Hello.");
        tokio::pin!(run);
        tokio::select! {
            _ = &mut run => panic!("both wait"),
            // Time passes only when nothing else can move: what could begin has begun.
            () = async { gate.wait_until_reached().await; tokio::time::sleep(std::time::Duration::from_secs(1)).await } => {}
        }
        assert_eq!(stage.other.requests().len(), together);
        gate.open();
        run.await.expect("it finishes");
        assert_eq!(stage.other.requests().len(), 2);
    }
}

#[tokio::test]
async fn tasks_are_given_to_those_that_the_agent_names() {
    let (named, third) = (
        json!({ "delegation": { "depth": 1, "agents": ["helper"] } }),
        json!({ "name": "third", "model": OTHER }),
    );
    let stage = Stage::new([]);
    let engine = stage
        .engine(agents([chief(named), helper(json!({})), third]))
        .await;
    let system = preview(&engine).await.system;
    assert!(
        system.contains("helper") && !system.contains("third"),
        "{system}"
    );
}

/// Whether the agent two levels down is offered, and whom it may ask.
async fn below(chief_rules: Value, helper_rules: Value) -> String {
    let stage = Stage::with(calls("delegate", task("helper")), [done()]);
    let third = json!({ "name": "third", "description": "Thinks.", "model": OTHER });
    let fourth = json!({ "name": "fourth", "description": "Writes.", "model": OTHER });
    let manifest = agents([
        chief(json!({ "delegation": chief_rules })),
        helper(json!({ "delegation": helper_rules })),
        third,
        fourth,
    ]);
    let engine = stage.engine(manifest).await;
    run(&engine).await;
    let request = stage.other.requests().swap_remove(0);
    let lines = request
        .system
        .split("<available_agents>")
        .nth(1)
        .unwrap_or_default()
        .to_owned();
    assert_eq!(tools(&request).contains(&"delegate"), !lines.is_empty());
    lines
}

#[tokio::test]
async fn depth_bounds_the_levels_below() {
    assert_eq!(
        below(json!({ "depth": 1 }), json!({ "depth": 1 })).await,
        ""
    );
    assert_eq!(
        below(json!({ "depth": 2 }), json!({ "depth": 0 })).await,
        ""
    );
    assert!(
        below(json!({ "depth": 2 }), json!({ "depth": 1 }))
            .await
            .contains("third")
    );
}

#[tokio::test]
async fn each_agent_gives_tasks_to_those_that_it_names_itself() {
    let own = below(
        json!({ "depth": 2, "agents": ["helper"] }),
        json!({ "depth": 1, "agents": ["fourth"] }),
    )
    .await;
    assert!(own.contains("fourth") && !own.contains("third"), "{own}");
    let bounded = below(
        json!({ "depth": 1, "agents": ["helper"] }),
        json!({ "depth": 1, "agents": ["fourth"] }),
    )
    .await;
    assert_eq!(bounded, "");
}

#[tokio::test]
async fn task_may_be_handed_on_as_often_as_the_agent_says() {
    for (handoffs, may) in [(0, false), (1, true)] {
        let stage = Stage::with(calls("delegate", task("helper")), [done()]);
        let rules = json!({ "delegation": { "depth": 1, "handoffs": handoffs } });
        let third = json!({ "name": "third", "description": "Thinks.", "model": OTHER });
        let engine = stage
            .engine(agents([chief(rules), helper(json!({})), third]))
            .await;
        run(&engine).await;
        let request = stage.other.requests().swap_remove(0);
        assert_eq!(
            tools(&request).iter().any(|tool| tool.contains("handoff")),
            may,
            "{:?}",
            tools(&request)
        );
    }
}

#[tokio::test]
async fn agent_below_without_a_model_has_that_of_whoever_gives_it_a_task() {
    let scripts = [
        Script::new().call("delegate", task("helper")),
        done(),
        Script::new().text("Done."),
    ];
    let stage = Stage::new(scripts);
    let manifest = agents([
        chief(json!({ "delegation": { "depth": 1 } })),
        json!({ "name": "helper", "description": "Helps." }),
    ]);
    let engine = stage.engine(manifest).await;
    assert_eq!(run(&engine).await.text(), "Done.");
    stage.model.assert_done();
}

#[tokio::test]
async fn agents_below_have_rules_of_their_own() {
    let denies = json!({ "rules": [{ "tools": ["list_files"], "then": "deny" }] });
    let list = || Script::new().call("list_files", json!({}));
    let stage = Stage::with(
        [
            list(),
            Script::new().call("delegate", task("helper")),
            Script::new().text("Done."),
        ],
        [list(), done()],
    );
    let manifest = agents([
        chief(json!({ "delegation": { "depth": 1 }, "access": denies, "toolboxes": ["files"] })),
        helper(
            json!({ "toolboxes": ["files"], "access": { "default": "deny", "rules": [{ "tools": ["list_*"], "then": "allow" }] } }),
        ),
    ]);
    let engine = stage.engine(manifest).await;
    let ran = run(&engine).await;
    assert_ne!(
        ran.calls[0].result.status,
        Status::Ok,
        "{}",
        result(&ran, 0)
    );
    assert!(
        result(&ran, 1).contains("It is fixed."),
        "{}",
        result(&ran, 1)
    );
    let seen = seen(&stage.other);
    assert!(!seen.contains("may not call"), "{seen}");
}

#[tokio::test]
async fn levels_and_agents_are_limited_by_the_budget() {
    for budget in [json!({ "depth": 0 }), json!({ "agents": 1 })] {
        let stage = Stage::with(calls("delegate", task("helper")), [done()]);
        let manifest = agents([
            chief(json!({ "delegation": { "depth": 1 } })),
            helper(json!({})),
        ]);
        let engine = stage
            .engine(with(manifest, json!({ "budget": budget })))
            .await;
        let ran = run(&engine).await;
        assert!(stage.other.requests().is_empty(), "{budget}");
        assert!(
            !result(&ran, 0).contains("It is fixed."),
            "{}",
            result(&ran, 0)
        );
    }
}

#[tokio::test]
async fn conversation_is_handed_to_those_that_the_agent_names() {
    let stage = Stage::with(
        [Script::new().call(
            "transfer_to_helper",
            json!({ "reason": "It is about help." }),
        )],
        [
            Script::new().text("I help."),
            Script::new().text("Still I."),
        ],
    );
    let third = json!({ "name": "third", "description": "Thinks.", "model": OTHER });
    let manifest = agents([
        chief(json!({ "transfers": ["helper"] })),
        helper(json!({})),
        third,
    ]);
    let engine = stage.engine(manifest).await;
    let Lead::HandoffChain(relay) = engine.lead("main").expect("a name") else {
        panic!("it hands over")
    };
    assert_eq!(
        relay.run("Hello.").await.expect("it finishes").text(),
        "I help."
    );
    assert_eq!(tools(&stage.model.requests()[0]), ["transfer_to_helper"]);
    assert!(relay.agent("third").is_none());
    drop(relay);
    let Lead::HandoffChain(again) = engine.lead("main").expect("a name") else {
        panic!("it hands over")
    };
    assert_eq!(
        &*again
            .run("And now?")
            .await
            .expect("it finishes")
            .last
            .agent
            .name,
        "helper"
    );
}

#[tokio::test]
async fn team_is_made_of_the_members_that_the_agent_names() {
    let spawn = json!({ "name": "helper", "task": "Write a poem." });
    let scripts = [
        Script::new().call("spawn_teammate", spawn),
        Script::new().call("wait_for_team", json!({})),
        Script::new().call("read_messages", json!({})),
        Script::new().text("Done."),
    ];
    let stage = Stage::with(scripts, [Script::new().text("A poem.")]);
    let engine = stage
        .engine(agents([
            chief(json!({ "team": { "members": ["helper"] } })),
            helper(json!({})),
        ]))
        .await;
    let ran = run(&engine).await;
    assert!(result(&ran, 2).contains("A poem."), "{}", result(&ran, 2));
}

#[tokio::test]
async fn coordinator_keeps_the_tools_of_the_team_and_the_board() {
    let rules = json!({ "toolboxes": ["files", "board"], "team": { "members": ["helper"], "coordinator": true } });
    let board = json!({ "board": { "name": "work" } });
    let stage = Stage::new([Script::new().text("Done.")]);
    let engine = stage
        .engine(with(agents([chief(rules), helper(json!({}))]), board))
        .await;
    run(&engine).await;
    let request = stage.model.requests().swap_remove(0);
    let shown = tools(&request);
    assert!(
        shown.contains(&"spawn_teammate") && shown.contains(&"create_task"),
        "{shown:?}"
    );
    assert!(!shown.contains(&"read_file"), "{shown:?}");
}

#[tokio::test]
async fn team_has_its_size() {
    let spawn = |name: &str| json!({ "name": name, "template": "helper", "task": "Write a poem." });
    let gate = adjutant_llm::Gate::default();
    let scripts = [
        Script::new().call("spawn_teammate", spawn("one")),
        Script::new().call("spawn_teammate", spawn("two")),
        Script::new().text("Done."),
        Script::new().text("Done."),
        Script::new().text("Done."),
    ];
    let stage = Stage::with(scripts, [Script::new().text("A poem.").wait_at(0, &gate)]);
    let team = json!({ "team": { "members": ["helper"], "size": 1 } });
    let engine = stage.engine(agents([chief(team), helper(json!({}))])).await;
    let lead = lead(&engine);
    let mut running = lead.run("Hello.").stream().expect("it begins");
    let mut results = Vec::new();
    while let Some(event) = running.next().await {
        if let adjutant_agent::EventKind::ToolFinished { result, .. } = &event.kind {
            results.push(result.clone());
            if results.len() == 2 {
                break;
            }
        }
    }
    assert_eq!(results[0].status, Status::Ok, "{}", results[0].text());
    assert_ne!(results[1].status, Status::Ok, "{}", results[1].text());
}

#[tokio::test(start_paused = true)]
async fn team_member_has_its_time() {
    let gate = adjutant_llm::Gate::default();
    let scripts = [
        Script::new().call(
            "spawn_teammate",
            json!({ "name": "helper", "task": "Write a poem." }),
        ),
        Script::new().call("wait_for_team", json!({})),
        Script::new().text("Done."),
    ];
    let stage = Stage::with(scripts, [Script::new().text("A poem.").wait_at(0, &gate)]);
    let team = json!({ "team": { "members": ["helper"], "member_timeout": "20s" } });
    let engine = stage
        .engine(still(agents([chief(team), helper(json!({}))])))
        .await;
    let began = tokio::time::Instant::now();
    lead(&engine).run("Hello.").await.expect("it finishes");
    assert!(
        (20..30).contains(&began.elapsed().as_secs()),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn team_member_has_its_budget() {
    let scripts = [
        Script::new().call(
            "spawn_teammate",
            json!({ "name": "helper", "task": "Look around." }),
        ),
        Script::new().call("wait_for_team", json!({})),
        Script::new().text("Done."),
        Script::new().text("Done."),
    ];
    let look = || Script::new().call("list_files", json!({}));
    let stage = Stage::with(scripts, [look(), look(), Script::new().text("Seen.")]);
    let team = json!({ "team": { "members": ["helper"], "member_budget": { "requests": 2 } } });
    let engine = stage
        .engine(agents([
            chief(team),
            helper(json!({ "toolboxes": ["files"] })),
        ]))
        .await;
    run(&engine).await;
    assert_eq!(stage.other.requests().len(), 2);
}

#[tokio::test]
async fn others_can_be_launched_in_the_background() {
    let launch = json!({ "agent": "helper", "task": "Count to three." });
    let scripts = [
        Script::new().call("launch_task", launch),
        Script::new().call("list_tasks", json!({})),
        Script::new().text("Done."),
        Script::new().text("Done."),
    ];
    let stage = Stage::with(scripts, [Script::new().text("Three.")]);
    let engine = stage
        .engine(agents([
            chief(json!({ "toolboxes": ["background"] })),
            helper(json!({})),
        ]))
        .await;
    let ran = run(&engine).await;
    assert_eq!(
        ran.calls[0].result.status,
        Status::Ok,
        "{}",
        result(&ran, 0)
    );
    assert!(matches!(ran.outcome, Outcome::Finished { .. }));
}

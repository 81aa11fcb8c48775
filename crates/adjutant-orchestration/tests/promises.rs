//! What is promised of agents that work together and what no other test holds.

#[path = "promises/below.rs"]
mod below;
#[path = "promises/board.rs"]
mod board;
#[path = "promises/handing.rs"]
mod handing;
#[path = "promises/made.rs"]
mod made;

use std::sync::Arc;

use adjutant_agent::{Agent, Effect, effects::effect_fn};
use adjutant_llm::{Entry, FixedWorld, ModelInfo, Request, Script, ScriptedModel};
use adjutant_orchestration::{Delegation, Profile, Registry};
use serde_json::{Value, json};

/// A reply with a text.
fn says(text: &str) -> Script {
    Script::new().text(text)
}

/// A reply that delegates these tasks.
fn delegates(tasks: impl IntoIterator<Item = Value>) -> Script {
    let tasks: Vec<Value> = tasks.into_iter().collect();
    Script::new().call("delegate", json!({ "tasks": tasks }))
}

/// A reply that reports how a task ended.
fn reports(status: &str, summary: &str) -> Script {
    Script::new().call(
        "task_complete",
        json!({ "status": status, "summary": summary }),
    )
}

/// Registers an entry whose only instances say this, and gives their model.
fn register(
    registry: &Registry,
    profile: Profile,
    script: impl IntoIterator<Item = Script>,
) -> Arc<ScriptedModel> {
    let model = Arc::new(ScriptedModel::new(script));
    let shared = Arc::clone(&model);
    registry.register(profile, move || Agent::new(Arc::clone(&shared)));
    model
}

/// An agent called `boss` that says this, with this delegation.
fn boss(delegation: &Delegation, script: impl IntoIterator<Item = Script>) -> Agent {
    let agent = Agent::new(ScriptedModel::new(script))
        .name("boss")
        .world(FixedWorld::at_ms(1_000));
    delegation.install(agent)
}

/// The texts of the user messages of a request.
fn told(request: &Request) -> Vec<String> {
    let users = request
        .entries
        .iter()
        .filter_map(|stored| match &stored.entry {
            Entry::User(message) => Some(message),
            _ => None,
        });
    users
        .map(|message| {
            message
                .content
                .iter()
                .filter_map(|it| it.as_text())
                .collect()
        })
        .collect()
}

#[test]
fn first_agent_has_one_name_no_mark_and_nobody_above_when_it_is_made() {
    let agent = Agent::new(ScriptedModel::new([])).name("scout");
    let who = agent.identity();
    assert_eq!(
        (&*who.name, &*who.config_name, &*who.path),
        ("scout", "scout", "scout")
    );
    assert_eq!(
        (
            &*who.prefix,
            who.parent.as_ref(),
            who.depth,
            who.task.as_ref()
        ),
        ("", None, 0, None)
    );
}

#[test]
fn registry_is_whole_when_threads_register_list_and_spawn() {
    let registry = Registry::new();
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let registry = registry.clone();
            std::thread::spawn(move || {
                for at in 0..50 {
                    let name = format!("agent{thread}-{at}");
                    registry.register(Profile::new(name.as_str(), ""), || {
                        Agent::new(ScriptedModel::new([]))
                    });
                    let spawned = registry
                        .spawn(&name, "Fix it.")
                        .expect("it is there at once");
                    assert_eq!(&*spawned.agent.identity().name, format!("{name}-fix-1"));
                    let listed = registry.list();
                    assert!(
                        listed.is_sorted_by(|one, two| one.name < two.name),
                        "each once, in order"
                    );
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|it| it.join().expect("no panic"));
    assert_eq!(registry.list().len(), 400);
}

#[tokio::test]
async fn effect_knows_turn_agent_and_model_when_it_acts() {
    let info = ModelInfo::new("test/eyes");
    let script = [Script::new().call("none", json!({})), says("Done.")];
    let model = Arc::new(ScriptedModel::new(script).info(info));
    let look = effect_fn("look", |cx| {
        let line = format!(
            "{} {} {} {}",
            cx.turn.0,
            cx.who.name,
            cx.model.info().id,
            cx.view.items().len()
        );
        Ok(vec![adjutant_agent::Action::Remind(line.into())])
    });
    assert_eq!(look.kind(), "look");
    Agent::new(Arc::clone(&model))
        .name("scout")
        .effect(look)
        .run("Go.")
        .await
        .expect("it answers");
    let seen: Vec<String> = model
        .requests()
        .iter()
        .filter_map(|it| told(it).pop())
        .collect();
    assert_eq!(seen.len(), 2);
    assert!(
        seen[0].contains("1 scout test/eyes 1") && seen[1].contains("2 scout test/eyes 3"),
        "{seen:?}"
    );
}

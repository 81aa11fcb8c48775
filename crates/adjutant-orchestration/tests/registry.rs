//! The registry: entries by name, fresh instances, their names, and how many work at a time.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use adjutant_agent::Agent;
use adjutant_llm::ScriptedModel;
use adjutant_orchestration::{ErrorKind, Profile, Registry};
use futures_util::FutureExt;
use serde_json::json;

fn agent() -> Agent {
    Agent::new(ScriptedModel::new([])).name("made")
}

fn registry(names: &[&'static str]) -> Registry {
    let registry = Registry::new();
    names
        .iter()
        .for_each(|name| registry.register(Profile::new(*name, format!("Is {name}.")), agent));
    registry
}

#[test]
fn list_is_sorted_by_name_when_entries_come_in_any_order() {
    let listed = registry(&["writer", "coder", "tester"]).list();
    let names: Vec<&str> = listed.iter().map(|profile| &*profile.name).collect();
    assert_eq!(names, ["coder", "tester", "writer"]);
    assert_eq!(Registry::new().list(), []);
}

#[test]
fn entry_is_replaced_when_its_name_is_registered_again() {
    let registry = registry(&["coder"]);
    let profile = Profile::new("coder", "Is better.").max_depth(2);
    registry.register(profile.clone(), || {
        agent().identify(|who| who.prefix = "new".into())
    });
    assert_eq!(
        registry
            .list()
            .iter()
            .map(|it| (**it).clone())
            .collect::<Vec<_>>(),
        [profile]
    );
    assert_eq!(
        &*registry
            .spawn("coder", "x")
            .expect("registered")
            .agent
            .identity()
            .prefix,
        "new"
    );
}

#[test]
fn get_finds_nothing_when_the_name_is_unknown() {
    let registry = registry(&["coder"]);
    assert_eq!(
        registry.get("coder").map(|it| it.description.to_string()),
        Some("Is coder.".into())
    );
    assert_eq!(registry.get("Coder"), None);
    let error = registry.spawn("nobody", "x").expect_err("unknown");
    assert_eq!(
        (error.kind(), error.message()),
        (
            ErrorKind::Missing,
            "there is no agent of this name: \"nobody\""
        )
    );
}

#[test]
fn instances_are_fresh_and_named_after_entry_and_task_when_they_are_spawned() {
    let registry = registry(&["coder", "tester"]);
    let names = |config: &str, task: &str| {
        let spawned = registry.spawn(config, task).expect("registered");
        let who = spawned.agent.identity();
        (who.config_name.to_string(), who.name.to_string())
    };
    assert_eq!(
        names("coder", "Refactor the parser."),
        ("coder".into(), "coder-refactor-1".into())
    );
    assert_eq!(
        names("coder", "to be or"),
        ("coder".into(), "coder-task-2".into())
    );
    assert_eq!(
        names("tester", "Refactor the parser."),
        ("tester".into(), "tester-refactor-1".into())
    );
    let [one, two] = [(); 2].map(|()| registry.spawn("coder", "x").expect("registered").agent);
    assert_ne!(one.session_id(), two.session_id());
}

#[test]
fn numbers_go_on_when_an_instance_of_another_program_is_known() {
    let registry = registry(&["coder"]);
    let spawned = registry
        .spawn_as("coder", "coder-refactor-7")
        .expect("registered");
    assert_eq!(&*spawned.agent.identity().name, "coder-refactor-7");
    assert_eq!(registry.instance_name("coder", "Fix it."), "coder-fix-8");
}

#[test]
fn names_are_unique_when_many_threads_spawn() {
    let registry = registry(&["coder"]);
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let registry = registry.clone();
            std::thread::spawn(move || {
                (0..50)
                    .map(|_| registry.instance_name("coder", "Fix it."))
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    let names: Vec<String> = threads
        .into_iter()
        .flat_map(|it| it.join().expect("no panic"))
        .collect();
    let unique: BTreeSet<&String> = names.iter().collect();
    assert_eq!(
        (names.len(), unique.len(), registry.next_id("coder")),
        (400, 400, 401)
    );
}

#[tokio::test]
async fn slots_are_taken_in_turn_when_an_entry_has_few() {
    let registry = Registry::new();
    registry.register(Profile::new("coder", "").max_concurrency(2), agent);
    let (at_work, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let work = (0..9).map(|_| {
        let slot = registry.spawn("coder", "x").expect("registered").slot;
        let (at_work, most) = (Arc::clone(&at_work), Arc::clone(&most));
        async move {
            let _occupied = slot.take().await;
            most.fetch_max(at_work.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            at_work.fetch_sub(1, Ordering::SeqCst);
        }
    });
    futures_util::future::join_all(work).await;
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn slots_are_those_of_the_entry_when_it_is_replaced() {
    let registry = Registry::new();
    registry.register(Profile::new("coder", "").max_concurrency(0), agent);
    let old = registry
        .spawn("coder", "x")
        .expect("registered")
        .slot
        .take()
        .await;
    let waits = registry.spawn("coder", "x").expect("registered").slot;
    assert!(waits.take().now_or_never().is_none(), "0 counts as 1");
    registry.register(Profile::new("coder", "").max_concurrency(1), agent);
    assert!(
        registry
            .spawn("coder", "x")
            .expect("registered")
            .slot
            .take()
            .now_or_never()
            .is_some()
    );
    drop(old);
    assert!(waits.take().now_or_never().is_some());
}

#[test]
fn profile_leaves_out_what_is_empty_when_it_is_shown() {
    let bare = Profile::new("coder", "").max_depth(3).max_handoffs(2);
    assert_eq!(json!(bare), json!({ "name": "coder" }));
    let full = Profile::new("coder", "Codes.")
        .skill("rust")
        .cost_estimate("low")
        .max_concurrency(3);
    let expected = json!({
        "name": "coder", "description": "Codes.", "skills": ["rust"], "estimated_cost": "low", "max_concurrency": 3,
    });
    assert_eq!(json!(full), expected);
}

#[test]
fn instances_have_names_of_their_own_when_entries_are_named_alike() {
    let registry = registry(&["one", "one-two"]);
    let names = [
        registry.instance_name("one", "two-three"),
        registry.instance_name("one-two", "three"),
    ];
    assert_eq!(names, ["one-two-three-1", "one-two-three-2"]);
    registry
        .spawn_as("one", "one-two-four-7")
        .expect("registered");
    assert_eq!(registry.instance_name("one-two", "four"), "one-two-four-8");
}

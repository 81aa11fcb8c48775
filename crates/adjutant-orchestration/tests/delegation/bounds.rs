//! What holds whatever agents do: depth, number at a time, and that nobody waits for ever.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use adjutant_agent::{EventKind, Journal, LogId, MemoryJournal, Record, Seq};
use adjutant_llm::{Request, Script};
use adjutant_orchestration::{Delegation, Profile, Registry};
use futures_util::StreamExt as _;
use proptest::prelude::*;
use serde_json::json;

use super::desk::{boss_with, deciding, delegates, reports, results, says, task, tools};

/// Registers agents that delegate to these whenever they can, and then report.
fn register_greedy(registry: &Registry, profile: Profile, to: &[&'static str]) {
    let to: Arc<[&'static str]> = to.into();
    let decide = move |request: &Request| -> Script {
        let can = tools(request).iter().any(|tool| tool == "delegate");
        match request.entries.len() {
            2 if can => delegates(to.iter().map(|to| task(to, "Go deeper."))),
            _ => reports("Enough."),
        }
    };
    registry.register(profile, move || deciding(decide.clone()));
}

/// How deep the tree of a root of this depth is, and how many agents it has.
async fn depth_of_tree(registry: &Registry, root: u16, first: &'static str) -> (u16, usize) {
    let delegation = Delegation::new(registry.clone()).max_depth(root);
    let (_, agent) = boss_with(
        delegation,
        [delegates([task(first, "Begin.")]), says("Done.")],
    );
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let (mut deepest, mut agents) = (0, 0);
    while let Some(event) = running.next().await {
        if let EventKind::ChildOpened { child, .. } = event.kind {
            (deepest, agents) = (child.depth.max(deepest), agents + 1);
        }
    }
    (deepest, agents)
}

#[tokio::test]
async fn depth_is_bounded_when_an_agent_delegates_to_itself_through_another() {
    let registry = Registry::new();
    register_greedy(&registry, Profile::new("one", "").max_depth(99), &["two"]);
    register_greedy(&registry, Profile::new("two", "").max_depth(99), &["one"]);
    assert_eq!(depth_of_tree(&registry, 5, "one").await, (5, 5));
}

#[tokio::test]
async fn depth_is_the_childs_own_when_the_parent_leaves_more() {
    let registry = Registry::new();
    register_greedy(&registry, Profile::new("one", "").max_depth(2), &["two"]);
    register_greedy(&registry, Profile::new("two", "").max_depth(99), &["one"]);
    assert_eq!(depth_of_tree(&registry, 9, "one").await, (3, 3));
}

#[tokio::test]
async fn depth_is_bounded_when_factories_install_delegations_of_their_own() {
    let registry = Registry::new();
    let own = Delegation::new(registry.clone()).max_depth(99);
    let register = |name: &'static str, other: &'static str, levels: u16| {
        let own = own.clone();
        registry.register(Profile::new(name, "").max_depth(levels), move || {
            own.install(deciding(move |request: &Request| {
                match request.entries.len() {
                    2 => delegates([task(other, "Go deeper.")]),
                    _ => reports("Enough."),
                }
            }))
        });
    };
    register("one", "two", 99);
    register("two", "one", 99);
    assert_eq!(depth_of_tree(&registry, 3, "one").await, (3, 3));
    register("two", "one", 0);
    assert_eq!(
        depth_of_tree(&registry, 9, "one").await,
        (2, 2),
        "its profile says that it has none under itself"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn depth_never_exceeds_the_smaller_bound_when_agents_delegate_all_they_can(
        root in 0_u16..5,
        own in prop::collection::vec(0_u16..5, 3),
    ) {
        let registry = Registry::new();
        let names = ["one", "two", "three"];
        for (at, name) in names.into_iter().enumerate() {
            let others = [names[(at + 1) % 3], names[(at + 2) % 3]];
            register_greedy(&registry, Profile::new(name, "").max_depth(own[at]), &others);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (deepest, _) = runtime.block_on(depth_of_tree(&registry, root, "one"));
        // The first child may have as many under itself as it says; so may each below, and none more than is left.
        let bound = if root == 0 { 0 } else { 1 + own[0].min(root - 1) };
        prop_assert!(deepest <= bound, "{deepest} > {bound}: root {root}, own {own:?}");
        prop_assert!(root == 0 || deepest >= 1);
    }
}

/// A registry whose `coder` may work once at a time, and counts how many do.
fn counted(most: u32) -> (Registry, Arc<AtomicUsize>) {
    use adjutant_llm::CallResult;
    use adjutant_tool::{ToolSpec, tool_fn};
    let (registry, peak, at_work) = (
        Registry::new(),
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicUsize::new(0)),
    );
    let seen = Arc::clone(&peak);
    let decide = |request: &Request| match request.entries.len() {
        2 => Script::new().call("work", json!({})),
        _ => reports("Worked."),
    };
    registry.register(Profile::new("coder", "").max_concurrency(most), move || {
        let (seen, at_work) = (Arc::clone(&seen), Arc::clone(&at_work));
        let spec = ToolSpec::new("work", "Works.", json!({ "type": "object" }));
        deciding(decide).tool(tool_fn(spec, move |_, _| {
            let (seen, at_work) = (Arc::clone(&seen), Arc::clone(&at_work));
            async move {
                seen.fetch_max(at_work.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                at_work.fetch_sub(1, Ordering::SeqCst);
                Ok(CallResult::ok("worked"))
            }
        }))
    });
    (registry, peak)
}

#[tokio::test(start_paused = true)]
async fn instances_at_work_are_bounded_when_more_are_delegated_to() {
    let (registry, peak) = counted(3);
    let ten = || delegates((0..10).map(|_| task("coder", "Work.")));
    let delegation = Delegation::new(registry.clone()).max_depth(1);
    let two = Script::new().call("delegate", json!({ "tasks": [task("coder", "Work.")] }));
    let two = two.call(
        "delegate",
        json!({ "tasks": (0..5).map(|_| task("coder", "Work.")).collect::<Vec<_>>() }),
    );
    let (_, agent) = boss_with(delegation, [ten(), two, says("Done.")]);
    let result = agent.run("Go.").await.expect("the run finishes");
    let all: Vec<_> = results(&result)
        .iter()
        .flat_map(|it| it.as_array().cloned().unwrap_or_default())
        .collect();
    assert_eq!((all.len(), peak.load(Ordering::SeqCst)), (16, 3));
    assert!(all.iter().all(|it| it["result"] == "Worked."), "{all:?}");
    let (registry, peak) = counted(9);
    let (_, agent) = boss_with(
        Delegation::new(registry).max_depth(1),
        [ten(), says("Done.")],
    );
    agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        peak.load(Ordering::SeqCst),
        9,
        "the bound is what holds them back"
    );
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_ever_when_agents_of_one_entry_stand_above_one_another() {
    let registry = Registry::new();
    register_greedy(
        &registry,
        Profile::new("one", "").max_depth(9).max_concurrency(1),
        &["two", "two"],
    );
    register_greedy(
        &registry,
        Profile::new("two", "").max_depth(9).max_concurrency(1),
        &["one", "one"],
    );
    let tree = tokio::time::timeout(
        std::time::Duration::from_secs(60),
        depth_of_tree(&registry, 4, "one"),
    );
    assert_eq!(tree.await.expect("it ends"), (4, 1 + 2 + 4 + 8));
}

#[tokio::test]
async fn hundred_agents_work_at_once_when_they_are_delegated_to() {
    let registry = Registry::new();
    registry.register(Profile::new("coder", ""), || {
        deciding(|_: &Request| reports("Coded."))
    });
    let delegation = Delegation::new(registry).max_depth(1);
    let hundred = delegates((0..100).map(|at| task("coder", &format!("part{at} of it"))));
    let (_, agent) = boss_with(delegation, [hundred, says("Done.")]);
    let result = agent.run("Go.").await.expect("the run finishes");
    let names: Vec<String> = results(&result)[0]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| it["agent"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(
        names,
        (0..100)
            .map(|at| format!("coder-part{at}-{}", at + 1))
            .collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn name_of_a_nested_agent_is_not_given_again_when_another_program_goes_on() {
    let journal = MemoryJournal::default();
    let program = |first: &'static str| {
        let registry = Registry::new();
        register_greedy(&registry, Profile::new("one", "").max_depth(1), &["two"]);
        register_greedy(&registry, Profile::new("two", ""), &[]);
        let delegation = Delegation::new(registry).max_depth(2);
        let (_, agent) = boss_with(
            delegation,
            [delegates([task(first, "Begin.")]), says("Done.")],
        );
        agent
            .journal(journal.clone())
            .session(LogId("log".into()))
            .take_over()
    };
    let first = program("one").run("Go.").await.expect("the run finishes");
    assert_eq!(results(&first)[0][0]["agent"], "one-begin-1");
    let opened = names(&journal).await;
    assert_eq!(opened, ["one-begin-1", "two-deeper-1"]);
    let again = program("two").run("Go.").await.expect("the run finishes");
    assert_eq!(results(&again)[0][0]["agent"], "two-begin-2");
}

/// The names of the agents that were opened in a session, ordered.
async fn names(journal: &MemoryJournal) -> Vec<String> {
    let names = journal
        .read(&LogId("log".into()), Seq(0))
        .filter_map(|it| async move {
            match &it.expect("memory does not fail").record {
                Record::ChildOpened { who, .. } => Some(who.name.to_string()),
                _ => None,
            }
        });
    let mut names: Vec<String> = names.collect().await;
    names.sort();
    names
}

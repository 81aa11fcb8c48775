//! Handoff: an agent that was given a task hands it on to a peer.

use adjutant_agent::{HookContext, Verdict, points};
use adjutant_llm::{Entry, Origin, Script};
use adjutant_orchestration::{Delegation, Profile, Registry};
use serde_json::{Value, json};

use super::desk::{
    Asked, boss_with, calls, delegates, register, reports, results, says, task, told, tools,
};

/// A reply that hands the task on.
fn hands_on(to: &str) -> Script {
    calls(
        "handoff",
        json!({ "target_agent": to, "reason": "You know it.", "context": "Half is done." }),
    )
}

fn handing(registry: &Registry, name: &'static str, to: &'static str) -> Asked {
    register(registry, Profile::new(name, ""), move |_| {
        vec![hands_on(to), says("Kept.")]
    })
}

/// What comes of a task for `one`, which may be handed on so often.
async fn passed(registry: &Registry, handoffs: u32) -> Value {
    let delegation = Delegation::new(registry.clone())
        .max_depth(1)
        .max_handoffs(handoffs);
    let (_, agent) = boss_with(
        delegation,
        [delegates([task("one", "Fix it.")]), says("Done.")],
    );
    results(&agent.run("Go.").await.expect("the run finishes"))[0][0].take()
}

#[tokio::test]
async fn peer_reports_when_the_task_is_handed_on() {
    let registry = Registry::new();
    let one = handing(&registry, "one", "two");
    let two = register(&registry, Profile::new("two", ""), |_| {
        vec![reports("Fixed.")]
    });
    let report = passed(&registry, 1).await;
    let expected = json!({
        "agent": "two-fix-1", "result": "Fixed.", "completion": { "status": "completed", "summary": "Fixed." },
    });
    assert_eq!((report, one.requests().len()), (expected, 1));
    let request = &two.requests()[0];
    let handoff = "<handoff_context>\none-fix-1 has handed this task on to you.\nReason: You know it.\n\n\
        Half is done.\n</handoff_context>";
    assert_eq!(
        told(request),
        [
            "<delegation_context>\nSome context.\n</delegation_context>",
            handoff,
            "Fix it."
        ]
    );
    let origins: Vec<Origin> = request
        .entries
        .iter()
        .filter_map(|it| match &it.entry {
            Entry::User(message) => Some(message.origin.clone()),
            _ => None,
        })
        .collect();
    let (task, peer) = (
        Origin::Task {
            from: "main".into(),
        },
        Origin::Peer {
            from: "main/c1_0_0/0".into(),
        },
    );
    assert_eq!(origins, [task.clone(), peer, task]);
}

#[tokio::test]
async fn handoff_is_absent_when_the_delegation_allows_none() {
    let registry = Registry::new();
    let one = handing(&registry, "one", "two");
    assert_eq!(passed(&registry, 0).await["result"], "Kept.");
    assert_eq!(tools(&one.requests()[0]), ["task_complete"]);
    assert!(!one.requests()[0].system.contains("handoff_protocol"));
}

#[tokio::test]
async fn chain_is_bounded_when_peers_hand_on_to_one_another() {
    let registry = Registry::new();
    let (one, two) = (
        handing(&registry, "one", "two"),
        handing(&registry, "two", "one"),
    );
    let report = passed(&registry, 3).await;
    assert_eq!((one.instances(), two.instances()), (2, 2));
    assert_eq!(
        (report["agent"].as_str(), report["result"].as_str()),
        (Some("two-fix-2"), Some("Kept."))
    );
    let offered: Vec<usize> = two
        .requests()
        .iter()
        .map(|request| tools(request).len())
        .collect();
    assert_eq!(offered, [2, 1, 1], "the last one has no handoff");
    assert!(one.requests()[0].system.contains("<handoff_protocol>"));
}

#[tokio::test]
async fn handoff_is_an_error_when_it_goes_to_oneself_or_to_nobody() {
    let registry = Registry::new();
    let one = register(&registry, Profile::new("one", ""), |_| {
        vec![hands_on(" ONE "), hands_on("nobody"), says("Kept.")]
    });
    handing(&registry, "two", "one");
    assert_eq!(passed(&registry, 1).await["result"], "Kept.");
    let said: Vec<String> = one.requests()[2]
        .entries
        .iter()
        .filter_map(|it| match &it.entry {
            Entry::Turn(turn) => Some(turn.pairs().map(|(_, result)| result.text()).collect()),
            _ => None,
        })
        .collect();
    assert_eq!(said[0], "a task cannot be handed on to oneself: \"ONE\"");
    assert_eq!(
        said[1],
        "there is no agent of this name: \"nobody\"; it can go to two"
    );
}

#[tokio::test]
async fn handoff_counts_when_the_agent_reports_in_the_same_turn() {
    let registry = Registry::new();
    register(&registry, Profile::new("one", ""), |_| {
        let handoff = json!({ "target_agent": "two", "reason": "r", "context": "c" });
        let done = json!({ "status": "completed", "summary": "One." });
        vec![
            Script::new()
                .call("task_complete", done)
                .call("handoff", handoff),
        ]
    });
    register(&registry, Profile::new("two", ""), |_| {
        vec![reports("Two.")]
    });
    assert_eq!(passed(&registry, 1).await["result"], "Two.");
}

#[tokio::test]
async fn first_handoff_counts_when_there_are_two() {
    let registry = Registry::new();
    register(&registry, Profile::new("one", ""), |_| {
        let to = |to: &str| json!({ "target_agent": to, "reason": "r", "context": "c" });
        vec![
            Script::new()
                .call("handoff", to("two"))
                .call("handoff", to("three")),
        ]
    });
    register(&registry, Profile::new("two", ""), |_| {
        vec![reports("Two.")]
    });
    register(&registry, Profile::new("three", ""), |_| {
        vec![reports("Three.")]
    });
    assert_eq!(passed(&registry, 2).await["result"], "Two.");
}

#[tokio::test]
async fn task_stays_when_a_hook_denies_its_handoff() {
    let registry = Registry::new();
    let one = handing(&registry, "one", "two");
    let two = handing(&registry, "two", "one");
    let delegation = Delegation::new(registry.clone())
        .max_depth(1)
        .max_handoffs(2);
    let (_, agent) = boss_with(
        delegation,
        [delegates([task("one", "Fix it.")]), says("Done.")],
    );
    let agent = agent.on(|_: HookContext, point: points::Handoff| async move {
        Verdict::<points::Handoff>::Deny(format!("{} stays away", point.to).into())
    });
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(results(&result)[0][0]["result"], "Kept.");
    assert_eq!((one.requests().len(), two.instances()), (2, 0));
}

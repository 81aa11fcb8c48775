//! Delegation: what reaches agents further down, and what is told of those that fail.

use std::sync::Arc;

use adjutant_agent::{EventKind, kv::MemoryKvStore};
use adjutant_llm::{Error, ErrorKind, FixedWorld, Script, Status};
use adjutant_orchestration::{
    Delegation, Profile, Reflections, Registry,
    board::{Board, NewTask, TaskStatus},
};
use serde_json::{Value, json};

use super::{boss, delegates, register, reports, says, told};

fn task(agent: &str, task: &str) -> Value {
    json!({ "agent": agent, "task": task, "context": "Some context." })
}

#[tokio::test]
async fn call_is_refused_when_a_task_lacks_agent_task_or_context() {
    let registry = Registry::new();
    let coder = register(&registry, Profile::new("coder", ""), []);
    let delegation = Delegation::new(registry).max_depth(1);
    for missing in ["agent", "task", "context"] {
        let mut lacking = task("coder", "Fix it.");
        lacking.as_object_mut().expect("an object").remove(missing);
        let agent = boss(
            &delegation,
            [
                delegates([task("coder", "Fix it."), lacking]),
                says("Done."),
            ],
        );
        let result = agent.run("Go.").await.expect("the run finishes");
        let refused = &result.calls[0].result;
        assert_eq!(refused.status, Status::InvalidArguments, "{missing}");
        assert!(refused.text().contains(missing), "{}", refused.text());
    }
    assert_eq!(coder.requests().len(), 0);
}

#[tokio::test]
async fn board_and_reflections_reach_agents_further_down_when_they_delegate() {
    let world = Arc::new(FixedWorld::at_ms(1_000));
    let board = Board::new(Arc::new(MemoryKvStore::default())).world(world.clone());
    let id = board
        .create(NewTask::new("Build the parser crate"))
        .await
        .expect("memory does not fail")
        .id;
    let (registry, reflections) = (Registry::new(), Reflections::in_memory().world(world));
    let mut below = task("coder", "Build the parser crate");
    below["task_id"] = json!(id);
    let again = task("coder", "Build the parser crate");
    let lead = [
        delegates([below]),
        delegates([again]),
        reports("completed", "Led."),
    ];
    register(&registry, Profile::new("lead", "").max_depth(1), lead);
    let coder = [
        reports("failed", "It needs the nightly toolchain."),
        reports("completed", "Built."),
    ];
    let coder = register(&registry, Profile::new("coder", ""), coder);
    let delegation = Delegation::new(registry)
        .max_depth(2)
        .board(board.clone())
        .reflections(reflections);
    boss(
        &delegation,
        [delegates([task("lead", "Lead it.")]), says("Done.")],
    )
    .run("Go.")
    .await
    .expect("it finishes");
    let task = board.get(&id).await.expect("it is there");
    assert_eq!(
        (task.status, task.assignee.as_deref()),
        (TaskStatus::Failed, Some("coder-build-1"))
    );
    let second = told(&coder.requests()[1]);
    assert_eq!(second.len(), 3, "{second:?}");
    assert_eq!(
        second[0],
        "<delegation_context>\nSome context.\n</delegation_context>"
    );
    assert!(
        second[1].starts_with("<prior_reflections>") && second[1].contains("nightly toolchain"),
        "{}",
        second[1]
    );
    assert_eq!(second[2], "Build the parser crate");
}

#[tokio::test]
async fn nothing_is_learned_when_no_reflections_are_set() {
    let registry = Registry::new();
    let script = [
        reports("failed", "It needs the nightly toolchain."),
        reports("completed", "Built."),
    ];
    let coder = register(&registry, Profile::new("coder", ""), script);
    let build = || delegates([task("coder", "Build the parser crate")]);
    let delegation = Delegation::new(registry).max_depth(1);
    boss(&delegation, [build(), build(), says("Done.")])
        .run("Go.")
        .await
        .expect("the run finishes");
    assert_eq!(
        told(&coder.requests()[1]).len(),
        2,
        "the context and the task"
    );
}

#[tokio::test]
async fn end_of_an_agent_is_told_when_it_fails_and_when_it_is_done() {
    let registry = Registry::new();
    let script = [
        Script::new().fail(Error::new(ErrorKind::Auth, "no key")),
        reports("completed", "Fixed."),
    ];
    register(&registry, Profile::new("coder", ""), script);
    let delegation = Delegation::new(registry).max_depth(1);
    let one = || delegates([task("coder", "Fix it.")]);
    let agent = boss(&delegation, [one(), one(), says("Done.")]);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let mut seen = Vec::new();
    while let Some(event) = running.next().await {
        match &event.kind {
            EventKind::ChildOpened { child, .. } => {
                let parent = child
                    .parent
                    .as_ref()
                    .map(|it| it.to_string())
                    .unwrap_or_default();
                seen.push(format!("{} opened under {parent}", child.name));
            }
            EventKind::RunStarted if event.who.depth == 1 => {
                seen.push(format!("{} starts", event.who.name))
            }
            EventKind::ChildEnded { outcome, .. } => {
                seen.push(format!("ended: {}", outcome.kind()))
            }
            _ => {}
        }
    }
    let expected = [
        "coder-fix-1 opened under main",
        "coder-fix-1 starts",
        "ended: failed",
        "coder-fix-2 opened under main",
        "coder-fix-2 starts",
        "ended: finished",
    ];
    assert_eq!(seen, expected);
}

//! Delegations under delegations that share a board: cancelled, dropped, ended twice.

use std::{sync::Arc, time::Duration};

use adjutant_agent::{Agent, kv::MemoryKvStore};
use adjutant_llm::{FixedWorld, Gate};
use adjutant_orchestration::{
    Delegation, Profile, Registry,
    board::{Board, NewTask, TaskId, TaskStatus},
};
use serde_json::json;

use super::super::delegation::desk::{
    boss, deciding, delegates, register, reports, results, says, task,
};

async fn board(names: &[&'static str]) -> (Board, Vec<TaskId>) {
    let board = Board::new(Arc::new(MemoryKvStore::default())).world(FixedWorld::at_ms(1_000));
    let mut ids = Vec::new();
    for name in names {
        ids.push(
            board
                .create(NewTask::new(*name))
                .await
                .expect("memory does not fail")
                .id,
        );
    }
    (board, ids)
}

/// A boss whose delegate delegates to one that never answers; each has a task on the board.
fn nested(board: &Board, ids: &[TaskId], gate: &Gate) -> Agent {
    let registry = Registry::new();
    let (inner, held) = (ids[1].clone(), gate.clone());
    registry.register(Profile::new("mid", "").max_depth(1), move || {
        let inner = inner.clone();
        deciding(move |request| match request.entries.len() {
            0..=2 => {
                let mut order = task("leaf", "Deep.");
                order["task_id"] = json!(inner);
                delegates([order])
            }
            _ => reports("Mid."),
        })
    });
    registry.register(Profile::new("leaf", ""), move || {
        let held = held.clone();
        deciding(move |_| says("Leaf.").wait_at(0, &held))
    });
    let outer = ids[0].clone();
    let boss = deciding(move |request| match request.entries.len() {
        1 => {
            let mut order = task("mid", "Outer.");
            order["task_id"] = json!(outer);
            delegates([order])
        }
        _ => says("Done."),
    });
    let delegation = Delegation::new(registry).max_depth(2).board(board.clone());
    delegation
        .install(boss.name("boss"))
        .world(FixedWorld::at_ms(1_000))
        .calls(|calls| calls.grace = Duration::from_secs(1))
}

async fn statuses(board: &Board, ids: &[TaskId]) -> Vec<TaskStatus> {
    let mut found = Vec::new();
    for id in ids {
        found.push(board.get(id).await.expect("it is there").status);
    }
    found
}

#[tokio::test(start_paused = true)]
async fn nested_task_is_not_stuck_when_the_task_above_is_cancelled_on_the_board() {
    let (board, ids) = board(&["outer", "inner"]).await;
    let gate = Gate::default();
    let boss = nested(&board, &ids, &gate);
    let (canceller, outer, at) = (board.clone(), ids[0].clone(), gate.clone());
    tokio::spawn(async move {
        at.wait_until_reached().await;
        canceller.cancel(&outer).await.expect("it is in progress");
    });
    let result = tokio::time::timeout(Duration::from_secs(600), boss.run("Go."))
        .await
        .expect("it ends");
    let result = result.expect("the run finishes");
    assert!(
        results(&result)[0]
            .to_string()
            .contains("cancelled on the board"),
        "{:?}",
        results(&result)
    );
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        statuses(&board, &ids).await,
        [TaskStatus::Cancelled, TaskStatus::Failed]
    );
}

#[tokio::test(start_paused = true)]
async fn nested_failure_is_reported_when_the_inner_task_is_cancelled_on_the_board() {
    let (board, ids) = board(&["outer", "inner"]).await;
    let gate = Gate::default();
    let boss = nested(&board, &ids, &gate);
    let (canceller, inner, at) = (board.clone(), ids[1].clone(), gate.clone());
    tokio::spawn(async move {
        at.wait_until_reached().await;
        canceller.cancel(&inner).await.expect("it is in progress");
    });
    let result = tokio::time::timeout(Duration::from_secs(600), boss.run("Go."))
        .await
        .expect("it ends");
    assert_eq!(result.expect("the run finishes").text(), "Done.");
    assert_eq!(
        statuses(&board, &ids).await,
        [TaskStatus::Completed, TaskStatus::Cancelled]
    );
}

#[tokio::test(start_paused = true)]
async fn no_task_is_stuck_when_the_run_is_dropped_in_mid_delegation() {
    let (board, ids) = board(&["outer", "inner"]).await;
    let gate = Gate::default();
    let boss = nested(&board, &ids, &gate);
    let mut running = boss.run("Go.").stream().expect("the session is free");
    tokio::select! {
        biased;
        () = gate.wait_until_reached() => {}
        () = async { while running.next().await.is_some() {} } => unreachable!("leaf never answers"),
    }
    drop(running);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(
        statuses(&board, &ids).await,
        [TaskStatus::Failed, TaskStatus::Failed]
    );
}

#[tokio::test(start_paused = true)]
async fn odd_orders_are_answered_when_agents_are_given_them() {
    let registry = Registry::new();
    register(&registry, Profile::new("one", ""), |_| {
        vec![reports("Done.")]
    });
    let odd = [
        "../../etc/passwd",
        "a/b/c",
        "\u{202e}\u{0}\u{feff}",
        "</delegation_context><Identity>",
        "🙂🙂🙂",
    ];
    let mut orders: Vec<_> = odd.iter().map(|text| task("one", text)).collect();
    orders.push(task("one", &"é".repeat(500_000)));
    orders.push(task("../one", "x"));
    orders.push(task(&"x".repeat(100_000), "x"));
    let (_, boss) = boss(&registry, [delegates(orders), says("Done.")]);
    let result = boss.run("Go.").await.expect("the run finishes");
    let found = results(&result).remove(0);
    let reports: Vec<_> = found
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| it["result"].is_string())
        .collect();
    assert_eq!(reports, [true, true, true, true, true, true, false, false]);
    assert!(
        found[7].to_string().len() < 10_000,
        "{}",
        found[7].to_string().len()
    );
}

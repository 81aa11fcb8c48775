//! Delegated tasks that are on a board, and what was learned of failures: with the real ones.

use std::{sync::Arc, time::Duration};

use adjutant_agent::{Agent, kv::MemoryKvStore};
use adjutant_llm::{FixedWorld, Gate, Script, ScriptedModel};
use adjutant_orchestration::{
    Delegation, Profile, Reflections, Registry,
    board::{Board, BoardTools, NewTask, Task, TaskId, TaskStatus},
};
use adjutant_tool::Approval;
use serde_json::{Value, json};

use super::desk::{
    Asked, boss_with, calls, delegates, register, register_as, reports, results, says, told,
};

const LEASE: Duration = Duration::from_secs(60);

fn board() -> Board {
    Board::new(Arc::new(MemoryKvStore::default())).world(FixedWorld::at_ms(1_000))
}

async fn create(board: &Board, task: NewTask) -> TaskId {
    board.create(task).await.expect("memory does not fail").id
}

fn boss(board: &Board, registry: &Registry, id: &TaskId) -> Agent {
    let task = json!({ "agent": "coder", "task": "Fix it.", "context": "", "task_id": id });
    let delegation = Delegation::new(registry.clone())
        .max_depth(1)
        .max_handoffs(1)
        .board(board.clone());
    boss_with(delegation, [delegates([task]), says("Done.")]).1
}

/// What comes of a task of the board, and the task after it.
async fn delegated(board: &Board, registry: &Registry, id: &TaskId) -> (Value, Task) {
    let result = boss(board, registry, id)
        .run("Go.")
        .await
        .expect("the run finishes");
    (
        results(&result)[0][0].take(),
        board.get(id).await.expect("it is there"),
    )
}

fn coder(registry: &Registry, script: impl Fn() -> Script + Send + Sync + 'static) -> Asked {
    register(registry, Profile::new("coder", ""), move |_| vec![script()])
}

#[tokio::test]
async fn task_of_the_board_is_ended_when_its_agent_is_done() {
    let (board, registry) = (board(), Registry::new());
    let id = create(&board, NewTask::new("Fix it")).await;
    coder(&registry, || {
        calls(
            "task_complete",
            json!({ "status": "completed", "summary": "So.", "caveats": "Maybe." }),
        )
    });
    let (_, task) = delegated(&board, &registry, &id).await;
    assert_eq!(
        (task.status, task.assignee.as_deref()),
        (TaskStatus::Completed, Some("coder-fix-1"))
    );
    assert_eq!(
        (task.result.as_deref(), task.caveats.as_deref()),
        (Some("So."), Some("Maybe."))
    );
    let (report, _) = delegated(&board, &registry, &id).await;
    assert!(
        report["error"]
            .as_str()
            .unwrap_or_default()
            .starts_with("the task cannot be claimed: "),
        "{report}"
    );
}

#[tokio::test]
async fn criteria_are_told_and_shown_when_the_task_has_some() {
    let (board, registry) = (board(), Registry::new());
    let id = create(
        &board,
        NewTask::new("Fix it")
            .criterion("All tests pass")
            .criterion("No warnings"),
    )
    .await;
    let tests = json!(["all tests pass: 12 of 12", "No warnings: clippy is silent"]);
    let said = json!({ "status": "completed", "summary": "So.", "tests_run": tests });
    let asked = coder(&registry, move || calls("task_complete", said.clone()));
    let (report, task) = delegated(&board, &registry, &id).await;
    assert!(
        told(&asked.requests()[0])[0].ends_with("what shows it:\n- All tests pass\n- No warnings")
    );
    let proofs: Vec<&str> = task
        .evidence
        .iter()
        .map(|evidence| &*evidence.proof)
        .collect();
    assert_eq!(
        (task.status, proofs[0]),
        (TaskStatus::Completed, "all tests pass: 12 of 12"),
        "{report}"
    );
}

#[tokio::test]
async fn task_fails_when_nothing_shows_its_criteria() {
    let (board, registry) = (board(), Registry::new());
    let id = create(&board, NewTask::new("Fix it").criterion("All tests pass")).await;
    coder(&registry, || reports("Trust me."));
    let (report, task) = delegated(&board, &registry, &id).await;
    assert_eq!(
        (report["result"].as_str(), task.status),
        (Some("Trust me."), TaskStatus::Failed)
    );
    assert!(
        task.result
            .as_deref()
            .unwrap_or_default()
            .starts_with("reported as done, but "),
        "{task:?}"
    );
    assert!(
        report["warning"]
            .as_str()
            .unwrap_or_default()
            .contains("All tests pass"),
        "{report}"
    );
}

#[tokio::test]
async fn task_goes_to_the_agent_when_who_delegates_it_had_claimed_it() {
    let (board, registry) = (board(), Registry::new());
    let id = create(&board, NewTask::new("Fix it")).await;
    board.claim(&id, "boss", LEASE).await.expect("it is free");
    coder(&registry, || reports("So."));
    let (_, task) = delegated(&board, &registry, &id).await;
    assert_eq!(
        (task.status, task.assignee.as_deref()),
        (TaskStatus::Completed, Some("coder-fix-1"))
    );
}

#[tokio::test]
async fn agent_is_not_started_when_another_worker_has_its_task() {
    let (board, registry) = (board(), Registry::new());
    let id = create(&board, NewTask::new("Fix it")).await;
    board.claim(&id, "other", LEASE).await.expect("it is free");
    let asked = coder(&registry, || reports("So."));
    let (report, task) = delegated(&board, &registry, &id).await;
    assert!(
        report["error"]
            .as_str()
            .unwrap_or_default()
            .starts_with("the task cannot be claimed: "),
        "{report}"
    );
    assert_eq!(
        (asked.instances(), task.assignee.as_deref()),
        (0, Some("other"))
    );
}

#[tokio::test]
async fn task_is_claimed_once_when_two_programs_delegate_it() {
    let board = board();
    let id = create(&board, NewTask::new("Fix it")).await;
    let [one, two] = ["One!", "two"].map(|worker| Registry::new().worker(worker));
    coder(&one, || reports("So."));
    board
        .claim(&id, &one.instance_name("coder", "Fix it."), LEASE)
        .await
        .expect("it is free");
    let asked = coder(&two, || reports("So."));
    let (report, task) = delegated(&board, &two, &id).await;
    assert!(
        report["error"]
            .as_str()
            .unwrap_or_default()
            .starts_with("the task cannot be claimed: "),
        "{report}"
    );
    assert_eq!(
        (asked.instances(), task.assignee.as_deref()),
        (0, Some("coder-fix-one-1"))
    );
    assert_eq!(report["agent"], "coder-fix-two-1");
}

#[tokio::test]
async fn task_is_the_peers_when_it_is_handed_on() {
    let (board, registry) = (board(), Registry::new());
    let id = create(&board, NewTask::new("Fix it")).await;
    coder(&registry, || {
        calls(
            "handoff",
            json!({ "target_agent": "peer", "reason": "r", "context": "c" }),
        )
    });
    register(&registry, Profile::new("peer", ""), |_| {
        vec![reports("Mine.")]
    });
    let (_, task) = delegated(&board, &registry, &id).await;
    let ended = (
        task.status,
        task.assignee.as_deref(),
        task.result.as_deref(),
    );
    assert_eq!(
        ended,
        (TaskStatus::Completed, Some("peer-fix-1"), Some("Mine."))
    );
}

#[tokio::test(start_paused = true)]
async fn agent_is_stopped_when_its_task_is_cancelled() {
    let (board, registry, gate) = (board(), Registry::new(), Gate::default());
    let id = create(&board, NewTask::new("Fix it")).await;
    let wait = gate.clone();
    coder(&registry, move || says("Never.").wait_at(0, &wait));
    let (cancels, of) = (board.clone(), id.clone());
    tokio::spawn(async move {
        gate.wait_until_reached().await;
        cancels.cancel(&of).await.expect("it is in progress");
    });
    let (report, task) = delegated(&board, &registry, &id).await;
    let said = "cancelled: the task was cancelled on the board";
    assert_eq!(
        (report["error"].as_str(), task.status),
        (Some(said), TaskStatus::Cancelled)
    );
}

#[tokio::test(start_paused = true)]
async fn agent_is_stopped_when_another_worker_took_its_task() {
    let (board, registry, gate) = (board(), Registry::new(), Gate::default());
    let id = create(&board, NewTask::new("Fix it")).await;
    let wait = gate.clone();
    coder(&registry, move || says("Never.").wait_at(0, &wait));
    let (takes, of) = (board.clone(), id.clone());
    tokio::spawn(async move {
        gate.wait_until_reached().await;
        takes
            .reassign(&of, "other")
            .await
            .expect("it is in progress");
    });
    let (report, task) = delegated(&board, &registry, &id).await;
    assert_eq!(report["error"], "given up: another worker has the task");
    assert_eq!(
        (task.status, task.assignee.as_deref()),
        (TaskStatus::InProgress, Some("other"))
    );
}

#[tokio::test]
async fn failure_is_told_before_the_next_task_when_it_is_like_the_one_that_failed() {
    let (reflections, registry) = (Reflections::in_memory(), Registry::new());
    let asked = register(
        &registry,
        Profile::new("coder", ""),
        |number| match number {
            1 => vec![calls(
                "task_complete",
                json!({ "status": "failed", "summary": "It needs the nightly toolchain." }),
            )],
            _ => vec![reports("Built.")],
        },
    );
    let task = json!({ "agent": "coder", "task": "Build the parser crate", "context": "" });
    let delegation = Delegation::new(registry)
        .max_depth(1)
        .reflections(reflections.clone());
    for _ in 0..2 {
        let model = ScriptedModel::new([delegates([task.clone()]), says("Done.")]);
        let agent = delegation.install(Agent::new(model).name("boss"));
        agent.run("Go.").await.expect("the run finishes");
    }
    let requests = asked.requests();
    assert_eq!((told(&requests[0]).len(), told(&requests[1]).len()), (1, 2));
    let shown = &told(&requests[1])[0];
    assert!(
        shown.starts_with("<prior_reflections>") && shown.contains("nightly toolchain"),
        "{shown}"
    );
    let found = reflections
        .recall("Build the parser crate")
        .await
        .expect("memory does not fail");
    assert_eq!((found[0].tally.helped, &*found[0].agent), (1, "coder"));
}

#[tokio::test]
async fn task_stays_the_agents_when_it_waits_for_a_person() {
    use adjutant_agent::Outcome;
    use adjutant_llm::CallResult;
    use adjutant_tool::{Answer, ToolSpec, tool_fn};
    let (board, registry) = (board(), Registry::new());
    let id = create(&board, NewTask::new("Fix it")).await;
    let model = Arc::new(ScriptedModel::new([
        calls("deploy", json!({})),
        reports("Deployed."),
    ]));
    registry.register(Profile::new("coder", "").max_concurrency(1), move || {
        let spec = ToolSpec {
            approval: Approval::Always,
            ..ToolSpec::new("deploy", "Deploys.", json!({ "type": "object" }))
        };
        Agent::new(Arc::clone(&model)).tool(tool_fn(spec, |_, _| async {
            Ok(CallResult::ok("deployed"))
        }))
    });
    let boss = boss(&board, &registry, &id);
    let paused = boss.run("Go.").await.expect("the run waits");
    let Outcome::Paused { pauses } = &paused.outcome else {
        unreachable!("not paused: {:?}", paused.outcome)
    };
    let task = board.get(&id).await.expect("it is there");
    assert_eq!(
        (task.status, task.assignee.as_deref()),
        (TaskStatus::InProgress, Some("coder-fix-1"))
    );
    let answers = pauses
        .iter()
        .map(|pause| pause.with_answer(Answer::approve()));
    let result = boss
        .resume(answers.collect())
        .await
        .expect("the run finishes");
    assert_eq!(results(&result)[0][0]["result"], "Deployed.");
    let task = board.get(&id).await.expect("it is there");
    assert_eq!((task.status, task.attempts), (TaskStatus::Completed, 1));
}

#[tokio::test(start_paused = true)]
async fn agent_goes_on_when_it_has_ended_its_task_by_itself() {
    let (board, registry, gate) = (board(), Registry::new(), Gate::default());
    let id = create(&board, NewTask::new("Fix it")).await;
    let (tools, wait) = (board.tools(BoardTools::new()), gate.clone());
    let args = json!({ "task_id": id, "status": "completed", "result": "Mine." });
    let script = move |_| {
        vec![
            calls("complete_task", args.clone()),
            says("Tidied up.").wait_at(0, &wait),
        ]
    };
    register_as(&registry, Profile::new("coder", ""), script, move |agent| {
        agent.toolbox(tools.clone())
    });
    tokio::spawn(async move {
        gate.wait_until_reached().await;
        tokio::time::sleep(Duration::from_secs(1_000)).await;
        gate.open();
    });
    let (report, task) = delegated(&board, &registry, &id).await;
    assert_eq!(
        report,
        json!({ "agent": "coder-fix-1", "result": "Tidied up." })
    );
    assert_eq!(
        (task.status, task.result.as_deref()),
        (TaskStatus::Completed, Some("Mine."))
    );
}

#[tokio::test(start_paused = true)]
async fn task_stays_the_agents_when_it_works_for_longer_than_a_lease() {
    let (world, registry, gate) = (
        Arc::new(FixedWorld::at_ms(0)),
        Registry::new(),
        Gate::default(),
    );
    let board = Board::new(Arc::new(MemoryKvStore::default())).world(world.clone());
    let id = create(&board, NewTask::new("Fix it")).await;
    let wait = gate.clone();
    coder(&registry, move || says("At last.").wait_at(0, &wait));
    let (looks, of) = (board.clone(), id.clone());
    let seen = tokio::spawn(async move {
        gate.wait_until_reached().await;
        let first = looks
            .get(&of)
            .await
            .expect("it is there")
            .lease
            .expect("it is claimed")
            .until_ms;
        let mut stolen = 0;
        for _ in 0..20 {
            world.advance_ms(30_000);
            tokio::time::sleep(Duration::from_secs(30)).await;
            stolen += usize::from(
                looks
                    .claim_next("other", LEASE)
                    .await
                    .expect("memory does not fail")
                    .is_some(),
            );
        }
        gate.open();
        (first, stolen)
    });
    let (report, task) = delegated(&board, &registry, &id).await;
    assert_eq!(
        (report["result"].as_str(), task.status, task.attempts),
        (Some("At last."), TaskStatus::Completed, 1)
    );
    assert_eq!(
        seen.await.expect("it does not panic"),
        (120_000, 0),
        "a lease is shorter than the work"
    );
}

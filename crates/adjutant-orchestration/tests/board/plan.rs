//! Random plans by random agents in two processes: whatever they do, what a board promises holds.

use std::{collections::HashMap, sync::Arc, time::Duration};

use adjutant_agent::{
    KvStore,
    kv::{MemoryKvStore, Scan},
};
use adjutant_llm::FixedWorld;
use adjutant_orchestration::{
    Error,
    board::{Action, Board, Finish, NewTask, Task, TaskEdit, TaskId, TaskQuery, TaskStatus},
};
use adjutant_store::Sqlite;
use proptest::prelude::*;

use super::stage::Stage;

const AGENTS: [&str; 3] = ["ada", "bob", "a/b"];

#[derive(Debug, Clone)]
enum Op {
    Create { after: Vec<usize>, priority: i32 },
    Claim { lease: u64 },
    Next { lease: u64 },
    Heartbeat { lease: u64 },
    Complete,
    Fail,
    Release,
    Reassign,
    Cancel,
    Retry,
    Delete,
    Prioritise { priority: i32 },
    Depend { on: Vec<usize> },
    Pass { ms: u64 },
    Tend,
}

/// Who does what to which of the tasks, by which process.
type Step = (Op, usize, usize, bool);

fn op() -> impl Strategy<Value = Op> {
    let some = || prop::collection::vec(any::<usize>(), 0..3);
    let lease = || 1_u64..5_000;
    prop_oneof![
        4 => (some(), -1..2).prop_map(|(after, priority)| Op::Create { after, priority }),
        3 => lease().prop_map(|lease| Op::Claim { lease }),
        4 => lease().prop_map(|lease| Op::Next { lease }),
        2 => lease().prop_map(|lease| Op::Heartbeat { lease }),
        4 => Just(Op::Complete),
        2 => Just(Op::Fail),
        1 => Just(Op::Release),
        1 => Just(Op::Reassign),
        1 => Just(Op::Cancel),
        2 => Just(Op::Retry),
        1 => Just(Op::Delete),
        1 => (-1..2).prop_map(|priority| Op::Prioritise { priority }),
        2 => some().prop_map(|on| Op::Depend { on }),
        3 => (1_u64..3_000).prop_map(|ms| Op::Pass { ms }),
        1 => Just(Op::Tend),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(
        (op(), any::<usize>(), 0..AGENTS.len(), any::<bool>()),
        1..60,
    )
}

/// The table, as far as one step that was asked for may go, and what may happen to any task beside it.
fn is_allowed(before: TaskStatus, after: TaskStatus) -> bool {
    before == after
        || Action::ALL
            .into_iter()
            .any(|action| before.after(action) == Some(after))
}

async fn everything(board: &Board) -> HashMap<TaskId, Task> {
    let page = board
        .list(&TaskQuery::new().limit(1_000))
        .await
        .expect("it can be listed");
    page.tasks
        .into_iter()
        .map(|it| (it.task.id.clone(), it.task))
        .collect()
}

/// Does one step; a refusal is no failure. Gives the task that an agent has got by it.
async fn act(
    board: &Board,
    step: &Step,
    ids: &[TaskId],
    clock: &FixedWorld,
) -> Result<Option<Task>, Error> {
    let (op, at, agent, _) = step;
    let agent = AGENTS[*agent];
    let named = |at: &usize| {
        ids.get(at % ids.len().max(1))
            .cloned()
            .unwrap_or_else(|| "none".into())
    };
    let (id, ms) = (named(at), Duration::from_millis);
    match op {
        Op::Create { after, priority } => {
            let new = NewTask::new("task").priority(*priority);
            // Some of them are not there.
            let after = after.iter().filter(|_| !ids.is_empty()).map(named);
            board
                .create(after.fold(new, NewTask::after))
                .await
                .map(|_| None)
        }
        Op::Claim { lease } => board.claim(&id, agent, ms(*lease)).await.map(Some),
        Op::Next { lease } => board.claim_next(agent, ms(*lease)).await,
        Op::Heartbeat { lease } => board.heartbeat(&id, agent, ms(*lease)).await.map(|_| None),
        Op::Complete => board
            .finish(&id, agent, Finish::success("done"))
            .await
            .map(|_| None),
        Op::Fail => board
            .finish(&id, agent, Finish::failure("not done"))
            .await
            .map(|_| None),
        Op::Release => board.release(&id, agent).await.map(|_| None),
        Op::Reassign => board.reassign(&id, agent).await.map(|_| None),
        Op::Cancel => board.cancel(&id).await.map(|_| None),
        Op::Retry => board.retry(&id).await.map(|_| None),
        Op::Delete => board.delete(&id).await.map(|()| None),
        Op::Prioritise { priority } => board
            .update(&id, TaskEdit::new().priority(*priority))
            .await
            .map(|_| None),
        Op::Depend { on } => {
            let on = on.iter().map(named).collect();
            board
                .update(&id, TaskEdit::new().dependencies(on))
                .await
                .map(|_| None)
        }
        Op::Pass { ms } => {
            clock.advance_ms(*ms);
            Ok(None)
        }
        Op::Tend => board.tend().await.map(|()| None),
    }
}

/// What must hold of a board at any time.
async fn check(kv: &dyn KvStore, tasks: &HashMap<TaskId, Task>) {
    let keys = async |prefix: &str| {
        let items = kv
            .scan(&Scan::prefix(prefix))
            .await
            .expect("it can be scanned");
        let mut ids: Vec<String> = items
            .iter()
            .map(|item| item.key.rsplit('/').next().unwrap_or_default().to_owned())
            .collect();
        ids.sort_unstable();
        ids
    };
    let is_done = |id: &TaskId| {
        tasks
            .get(id)
            .is_some_and(|task| task.status == TaskStatus::Completed)
    };
    let mut ready: Vec<String> = Vec::new();
    let mut leased: Vec<String> = Vec::new();
    for task in tasks.values() {
        assert_eq!(
            task.lease.is_some(),
            task.status == TaskStatus::InProgress,
            "{task:?}"
        );
        let holder = task.lease.as_ref().map(|lease| &lease.holder);
        assert!(
            holder.is_none() || holder == task.assignee.as_ref(),
            "{task:?}"
        );
        let needed = tasks
            .values()
            .filter(|other| other.dependencies.contains(&task.id))
            .count();
        assert_eq!(task.dependents as usize, needed, "{task:?}");
        match task.status {
            TaskStatus::Pending if task.dependencies.iter().all(is_done) => {
                ready.push(task.id.to_string())
            }
            TaskStatus::InProgress => leased.push(task.id.to_string()),
            _ => {}
        }
        if matches!(task.status, TaskStatus::InProgress | TaskStatus::Completed) {
            assert!(
                task.dependencies.iter().all(is_done),
                "{task:?} was begun too early"
            );
        }
    }
    ready.sort_unstable();
    leased.sort_unstable();
    let mut found = keys("ready/").await;
    found.extend(keys("own/").await);
    found.sort_unstable();
    assert_eq!(found, ready, "what is ready");
    assert_eq!(keys("lease/").await, leased, "what is claimed");
    assert_eq!(keys("settle/").await, [""; 0], "what is unsettled");
}

/// Everything can be completed once leases have run out.
async fn nothing_is_stuck(boards: &[Board; 2], clock: &FixedWorld) {
    for round in 0..1_000 {
        clock.advance_ms(5_000);
        for (at, agent) in AGENTS.into_iter().enumerate() {
            let board = &boards[(round + at) % 2];
            while let Some(task) = board
                .claim_next(agent, Duration::from_secs(1))
                .await
                .expect("it can be asked for")
            {
                board
                    .finish(&task.id, agent, Finish::success("done"))
                    .await
                    .expect("it is its own");
            }
        }
        let tasks = everything(&boards[0]).await;
        let open: Vec<&Task> = tasks
            .values()
            .filter(|task| task.status != TaskStatus::Completed)
            .collect();
        if open.is_empty() {
            return;
        }
        for task in open {
            if task.status.is_terminal() {
                boards[1]
                    .retry(&task.id)
                    .await
                    .expect("it has failed or was cancelled");
            }
        }
    }
    assert_eq!(everything(&boards[0]).await.len(), 0, "these are stuck");
}

async fn play(stage: Stage, steps: Vec<Step>) {
    let boards = [stage.board(), stage.board()];
    let mut before = everything(&boards[0]).await;
    for step in &steps {
        let mut ids: Vec<TaskId> = before.keys().cloned().collect();
        ids.sort_unstable();
        let got = act(&boards[usize::from(step.3)], step, &ids, &stage.clock).await;
        let after = everything(&boards[0]).await;
        for (id, task) in &after {
            let was = before
                .get(id)
                .map_or(TaskStatus::Pending, |task| task.status);
            assert!(
                is_allowed(was, task.status),
                "{step:?}: {was} became {} ({got:?})",
                task.status
            );
        }
        let gone = before.values().filter(|task| !after.contains_key(&task.id));
        assert!(
            gone.clone().all(|task| task.status.is_terminal()),
            "{step:?} lost a task"
        );
        if let Ok(Some(task)) = &got {
            let agent = AGENTS[step.2];
            let now = adjutant_llm::World::now_ms(&*stage.clock);
            let held = before[&task.id]
                .lease
                .as_ref()
                .filter(|lease| lease.until_ms > now);
            assert!(
                held.is_none_or(|lease| &*lease.holder == agent),
                "{step:?} took {held:?}"
            );
            assert!(task.is_held_by(agent));
        }
        check(&*stage.kv(), &after).await;
        before = after;
    }
    nothing_is_stuck(&boards, &stage.clock).await;
}

fn run(stage: Stage, steps: Vec<Step>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(play(stage, steps));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(192) })]

    #[test]
    fn board_keeps_its_promises_when_anything_is_done_in_memory(steps in steps()) {
        let kv = MemoryKvStore::default();
        run(Stage::new(Box::new(move || Arc::new(kv.clone()))), steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(12) })]

    #[test]
    fn board_keeps_its_promises_when_anything_is_done_in_sqlite(steps in steps()) {
        let database = Sqlite::in_memory().expect("it opens");
        run(Stage::new(Box::new(move || Arc::new(database.kv("board")))), steps);
    }
}

#[test]
fn table_says_what_is_possible_in_each_status() {
    use TaskStatus::{Cancelled, Completed, Failed, InProgress, Pending};
    let table = TaskStatus::ALL.map(|status| {
        let row = Action::ALL
            .into_iter()
            .filter_map(|action| Some((action, status.after(action)?)));
        (status, row.collect::<Vec<_>>())
    });
    let expect = [
        (
            Pending,
            vec![
                (Action::Claim, InProgress),
                (Action::Release, Pending),
                (Action::Reassign, Pending),
                (Action::Cancel, Cancelled),
                (Action::Edit, Pending),
                (Action::Depend, Pending),
            ],
        ),
        (
            InProgress,
            vec![
                (Action::Claim, InProgress),
                (Action::Heartbeat, InProgress),
                (Action::Complete, Completed),
                (Action::Fail, Failed),
                (Action::Release, Pending),
                (Action::Reassign, InProgress),
                (Action::Lapse, Pending),
                (Action::GiveUp, Failed),
                (Action::Cancel, Cancelled),
                (Action::Edit, InProgress),
            ],
        ),
        (Completed, vec![(Action::Delete, Completed)]),
        (
            Failed,
            vec![(Action::Retry, Pending), (Action::Delete, Failed)],
        ),
        (
            Cancelled,
            vec![(Action::Retry, Pending), (Action::Delete, Cancelled)],
        ),
    ];
    assert_eq!(table, expect);
}

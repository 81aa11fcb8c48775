//! Many at once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use adjutant_orchestration::{
    ErrorKind,
    board::{Board, Finish, NewTask, TaskStatus},
};
use tokio::{sync::Barrier, task::JoinSet};

use super::stage::{LEASE, Stage, all, tasks};

pub(super) async fn one_wins_when_two_claim_a_task(stage: Stage) {
    for _ in 0..20 {
        let boards = [stage.board(), stage.board()];
        let [id] = tasks(&boards[0], ["dig"]).await;
        let barrier = Arc::new(Barrier::new(2));
        let mut claims = JoinSet::new();
        for (board, agent) in boards.into_iter().zip(["ada", "bob"]) {
            let (barrier, id) = (Arc::clone(&barrier), id.clone());
            claims.spawn(async move {
                barrier.wait().await;
                (agent, board.claim(&id, agent, LEASE).await)
            });
        }
        let claims = claims.join_all().await;
        let won: Vec<&str> = claims
            .iter()
            .filter(|(_, claim)| claim.is_ok())
            .map(|(agent, _)| *agent)
            .collect();
        assert_eq!(won.len(), 1, "{claims:?}");
        let refusal = claims
            .iter()
            .find_map(|(_, claim)| claim.as_ref().err())
            .expect("one is refused");
        assert_eq!(
            (refusal.kind(), refusal.retry_after()),
            (ErrorKind::Taken, Some(LEASE))
        );
    }
}

async fn work(board: Board, agent: String, done: Arc<Mutex<HashMap<String, u32>>>) {
    while let Some(task) = board
        .claim_next(&agent, LEASE)
        .await
        .expect("it can be asked for")
    {
        *done
            .lock()
            .expect("no panic")
            .entry(task.title.to_string())
            .or_default() += 1;
        assert_eq!(
            (task.attempts, task.assignee.as_deref()),
            (1, Some(agent.as_str()))
        );
        board
            .finish(&task.id, &agent, Finish::success("done"))
            .await
            .expect("nobody else has it");
    }
}

pub(super) async fn every_task_is_done_once_when_many_work(stage: Stage) {
    const TASKS: usize = 120;
    let board = stage.board();
    for number in 0..TASKS {
        let new = NewTask::new(number.to_string()).priority((number % 3) as i32);
        board.create(new).await.expect("it can be created");
    }
    let done = Arc::new(Mutex::new(HashMap::new()));
    let mut workers = JoinSet::new();
    for process in 0..3 {
        let board = stage.board();
        for worker in 0..4 {
            workers.spawn(work(
                board.clone(),
                format!("{process}-{worker}"),
                Arc::clone(&done),
            ));
        }
    }
    workers.join_all().await;
    let done = done.lock().expect("no panic").clone();
    assert_eq!((done.len(), done.values().copied().max()), (TASKS, Some(1)));
    assert!(
        all(&board)
            .await
            .iter()
            .all(|(_, status, _)| *status == TaskStatus::Completed)
    );
}

//! Hearing of changes.

use std::time::Duration;

use adjutant_orchestration::{
    ErrorKind,
    board::{Finish, TaskStatus},
};
use futures_util::{FutureExt, StreamExt};

use super::stage::{LEASE, Stage, tasks};

pub(super) async fn watch_tells_changes_of_other_processes(stage: Stage) {
    let (board, other) = (stage.board(), stage.board());
    let [old] = tasks(&board, ["old"]).await;
    let mut changes = board.watch().await.expect("it can be watched");
    let [id] = tasks(&other, ["dig"]).await;
    let mut heard = async || {
        changes
            .next()
            .await
            .expect("it does not end")
            .expect("it can be read")
    };
    let created = heard().await;
    assert_eq!(
        (created.id, created.task.map(|task| task.status)),
        (id.clone(), Some(TaskStatus::Pending))
    );
    other.cancel(&old).await.expect("it has not ended");
    let cancelled = heard().await;
    assert_eq!(
        (&cancelled.id, cancelled.task.map(|task| task.status)),
        (&old, Some(TaskStatus::Cancelled))
    );
    other.delete(&old).await.expect("it has ended");
    let deleted = heard().await;
    assert_eq!((deleted.id, deleted.task), (old, None));
    assert!(deleted.version > cancelled.version && cancelled.version > created.version);
}

pub(super) async fn wait_ends_when_the_task_has(stage: Stage) {
    let (board, other) = (stage.board(), stage.board());
    let [id] = tasks(&board, ["dig"]).await;
    let waiting = tokio::spawn({
        let id = id.clone();
        async move { other.wait(&id, Duration::from_secs(60)).await }
    });
    board.claim(&id, "ada", LEASE).await.expect("it is free");
    board
        .finish(&id, "ada", Finish::failure("rock"))
        .await
        .expect("it is ada's");
    let ended = waiting.await.expect("no panic").expect("it has ended");
    assert_eq!(
        (ended.status, ended.result.as_deref()),
        (TaskStatus::Failed, Some("rock"))
    );
    assert_eq!(
        board
            .wait(&id, Duration::from_secs(60))
            .await
            .expect("it has ended"),
        ended
    );
    board.delete(&id).await.expect("it has ended");
    assert_eq!(
        board.wait(&id, LEASE).await.expect_err("it is gone").kind(),
        ErrorKind::Missing
    );
}

pub(super) async fn wait_times_out_when_the_task_does_not_end(stage: Stage) {
    let board = stage.board();
    let [id] = tasks(&board, ["dig"]).await;
    let error = board
        .wait(&id, Duration::from_millis(5))
        .await
        .expect_err("it does not end");
    assert_eq!(
        (error.kind(), error.is_retryable()),
        (ErrorKind::TimedOut, true)
    );
    assert_eq!(error.message(), format!("task {id} did not end within 5ms"));
}

pub(super) async fn cancelled_ends_when_another_process_cancels(stage: Stage) {
    let (board, other) = (stage.board(), stage.board());
    let [id, done, gone] = tasks(&board, ["dig", "done", "gone"]).await;
    let waiting = tokio::spawn({
        let (board, id) = (board.clone(), id.clone());
        async move { board.cancelled(&id).await }
    });
    for id in [&id, &done] {
        board.claim(id, "ada", LEASE).await.expect("it is free");
    }
    board
        .finish(&done, "ada", Finish::success(""))
        .await
        .expect("it is ada's");
    other.cancel(&id).await.expect("it has not ended");
    waiting.await.expect("it ends");
    board.cancelled(&id).await;
    // What has ended otherwise is never cancelled.
    let never = tokio::time::timeout(Duration::from_millis(20), board.cancelled(&done)).await;
    assert!(never.is_err());
    assert_eq!(board.cancelled(&gone).now_or_never(), None);
}

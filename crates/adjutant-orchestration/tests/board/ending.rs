//! How tasks end, and begin again.

use adjutant_orchestration::{
    ErrorKind,
    board::{Finish, NewTask, TaskStatus},
};

use super::stage::{LEASE, Stage, next, refused, standing, tasks};

pub(super) async fn finish_needs_evidence_when_there_are_criteria(stage: Stage) {
    let board = stage.board();
    let new = NewTask::new("dig")
        .criterion("it is deep")
        .criterion("it is round");
    let id = board.create(new).await.expect("it can be created").id;
    board.claim(&id, "ada", LEASE).await.expect("it is free");
    let none = Finish::success("done");
    let missing = "evidence is missing for \"it is deep\", \"it is round\"";
    refused(
        board.finish(&id, "ada", none).await,
        ErrorKind::Invalid,
        missing,
    );
    let blank = Finish::success("done")
        .evidence("it is deep", " ")
        .evidence("2", "seen from above");
    refused(
        board.finish(&id, "ada", blank).await,
        ErrorKind::Invalid,
        "evidence is missing for \"it is deep\"",
    );
    for unknown in ["it is blue", "0", "3"] {
        let wrong = Finish::success("done").evidence(unknown, "seen");
        let message = format!("no criterion of the task is {unknown:?}");
        refused(
            board.finish(&id, "ada", wrong).await,
            ErrorKind::Invalid,
            &message,
        );
    }
    assert_eq!(
        board.get(&id).await.expect("it is there").status,
        TaskStatus::InProgress
    );
    let shown = Finish::success("done")
        .evidence("2", "seen from above")
        .evidence(" it is deep", "1.2 m");
    let done = board
        .finish(&id, "ada", shown.caveats("wet"))
        .await
        .expect("all is shown");
    let evidence: Vec<_> = done
        .evidence
        .iter()
        .map(|it| (&*it.criterion, &*it.proof))
        .collect();
    assert_eq!(
        evidence,
        [("it is deep", "1.2 m"), ("it is round", "seen from above")]
    );
    assert_eq!(
        (standing(&done).0, done.result.as_deref()),
        (TaskStatus::Completed, Some("done"))
    );
    assert_eq!(done.caveats.as_deref(), Some("wet"));

    let new = NewTask::new("dig").criterion("it is deep");
    let id = board.create(new).await.expect("it can be created").id;
    board.claim(&id, "ada", LEASE).await.expect("it is free");
    let failed = board
        .finish(&id, "ada", Finish::failure("rock"))
        .await
        .expect("a failure needs no evidence");
    assert_eq!(
        (failed.status, failed.result.as_deref()),
        (TaskStatus::Failed, Some("rock"))
    );
}

pub(super) async fn finish_is_done_once_when_it_is_said_twice(stage: Stage) {
    let board = stage.board();
    let [id] = tasks(&board, ["dig"]).await;
    board.claim(&id, "ada", LEASE).await.expect("it is free");
    let done = board
        .finish(&id, "ada", Finish::success("done"))
        .await
        .expect("it is ada's");
    stage.clock.advance_ms(5);
    let again = stage
        .board()
        .finish(&id, "ada", Finish::success("done"))
        .await
        .expect("it is done");
    assert_eq!(again, done);
    let message =
        format!("task {id} is completed and cannot be completed; hint: it can be deleted");
    refused(
        board.finish(&id, "ada", Finish::success("other")).await,
        ErrorKind::Conflict,
        &message,
    );
    refused(
        board.finish(&id, "bob", Finish::success("done")).await,
        ErrorKind::Conflict,
        &message,
    );
    let message = format!("task {id} is completed and cannot be failed; hint: it can be deleted");
    refused(
        board.finish(&id, "ada", Finish::failure("done")).await,
        ErrorKind::Conflict,
        &message,
    );
}

pub(super) async fn finish_is_refused_when_the_task_was_lost(stage: Stage) {
    let board = stage.board();
    let [id, other] = tasks(&board, ["dig", "plant"]).await;
    board.claim(&id, "ada", LEASE).await.expect("it is free");
    let message = format!("task {id} does not belong to bob: ada has it now");
    refused(
        board.finish(&id, "bob", Finish::success("")).await,
        ErrorKind::Conflict,
        &message,
    );
    let hint =
        "it can be claimed, released, reassigned, cancelled, edited, made to depend on others";
    let message = format!("task {other} is pending and cannot be completed; hint: {hint}");
    refused(
        board.finish(&other, "ada", Finish::success("")).await,
        ErrorKind::Conflict,
        &message,
    );
    board.cancel(&id).await.expect("it has not ended");
    let message =
        format!("task {id} is cancelled and cannot be completed; hint: it can be retried, deleted");
    refused(
        board.finish(&id, "ada", Finish::success("")).await,
        ErrorKind::Conflict,
        &message,
    );
}

pub(super) async fn cancel_is_refused_when_a_task_has_ended(stage: Stage) {
    let board = stage.board();
    let [done, failed, pending, working] = tasks(&board, ["a", "b", "c", "d"]).await;
    for (id, finish) in [(&done, Finish::success("")), (&failed, Finish::failure(""))] {
        board.claim(id, "ada", LEASE).await.expect("it is free");
        board.finish(id, "ada", finish).await.expect("it is ada's");
    }
    board
        .claim(&working, "ada", LEASE)
        .await
        .expect("it is free");
    for id in [&pending, &working] {
        let cancelled = board.cancel(id).await.expect("it has not ended");
        assert_eq!(
            (cancelled.status, cancelled.lease),
            (TaskStatus::Cancelled, None)
        );
    }
    for (id, status, hint) in [
        (&done, "completed", "deleted"),
        (&failed, "failed", "retried, deleted"),
        (&pending, "cancelled", "retried, deleted"),
    ] {
        let message =
            format!("task {id} is {status} and cannot be cancelled; hint: it can be {hint}");
        refused(board.cancel(id).await, ErrorKind::Conflict, &message);
    }
    assert_eq!(next(&board, "bob").await, None);
}

pub(super) async fn retry_begins_anew_when_a_task_has_failed(stage: Stage) {
    let board = stage.board();
    let [id, cancelled] = tasks(&board, ["dig", "plant"]).await;
    board.claim(&id, "ada", LEASE).await.expect("it is free");
    board
        .finish(&id, "ada", Finish::failure("rock").caveats("noisy"))
        .await
        .expect("it is ada's");
    let again = board.retry(&id).await.expect("it has failed");
    assert_eq!(standing(&again), (TaskStatus::Pending, None, 1, None));
    assert_eq!(
        (again.result, again.caveats, again.last_failure.as_deref()),
        (None, None, Some("rock"))
    );
    board.cancel(&cancelled).await.expect("it has not ended");
    board.retry(&cancelled).await.expect("it was cancelled");
    let error = board.retry(&cancelled).await.expect_err("it is pending");
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(next(&board, "bob").await.as_deref(), Some("dig"));
    let done = board
        .finish(&id, "bob", Finish::success("done"))
        .await
        .expect("it is bob's");
    assert_eq!((done.attempts, done.result.as_deref()), (2, Some("done")));
    assert_eq!(next(&board, "bob").await.as_deref(), Some("plant"));
}

pub(super) async fn delete_is_refused_when_a_task_is_open_or_needed(stage: Stage) {
    let board = stage.board();
    let [first] = tasks(&board, ["dig"]).await;
    let new = NewTask::new("plant").after(first.clone()).key("plant once");
    let second = board
        .create(new.clone())
        .await
        .expect("it can be created")
        .id;
    board.claim(&first, "ada", LEASE).await.expect("it is free");
    assert_eq!(
        board.delete(&first).await.expect_err("it is open").kind(),
        ErrorKind::Conflict
    );
    board
        .finish(&first, "ada", Finish::success(""))
        .await
        .expect("it is ada's");
    let message = format!("task {first} cannot be deleted: 1 tasks depend on it");
    refused(board.delete(&first).await, ErrorKind::Conflict, &message);
    assert_eq!(
        board.delete(&second).await.expect_err("it is open").kind(),
        ErrorKind::Conflict
    );
    board.cancel(&second).await.expect("it has not ended");
    board.delete(&second).await.expect("it has ended");
    board.delete(&first).await.expect("nobody needs it");
    refused(
        board.get(&first).await,
        ErrorKind::Missing,
        &format!("there is no task {first}"),
    );
    // Nothing of it is left: its key makes a new one.
    assert_eq!(
        board.create(new).await.expect_err("dig is gone").kind(),
        ErrorKind::Missing
    );
    let new = board
        .create(NewTask::new("plant").key("plant once"))
        .await
        .expect("it can be created");
    assert_ne!(new.id, second);
}

pub(super) async fn refusals_say_what_is_possible(stage: Stage) {
    let board = stage.board();
    let [id] = tasks(&board, ["dig"]).await;
    let hint =
        "it can be claimed, released, reassigned, cancelled, edited, made to depend on others";
    let message = format!("task {id} is pending and cannot be kept alive; hint: {hint}");
    refused(
        board.heartbeat(&id, "ada", LEASE).await,
        ErrorKind::Conflict,
        &message,
    );
    board.cancel(&id).await.expect("it has not ended");
    for (refusal, what) in [
        (board.claim(&id, "ada", LEASE).await, "claimed"),
        (board.reassign(&id, "ada").await, "reassigned"),
        (board.release(&id, "ada").await, "released"),
    ] {
        let message = format!(
            "task {id} is cancelled and cannot be {what}; hint: it can be retried, deleted"
        );
        refused(refusal, ErrorKind::Conflict, &message);
    }
}

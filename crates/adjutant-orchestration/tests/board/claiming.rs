//! Who works on a task, and for how long.

use std::time::Duration;

use adjutant_orchestration::{
    ErrorKind,
    board::{Finish, MAX_LEASE, NewTask, TaskStatus},
};

use super::stage::{LEASE, LEASE_MS, START_MS, Stage, next, refused, standing, tasks};

pub(super) async fn claim_gives_a_lease_when_a_task_is_pending(stage: Stage) {
    let board = stage.board();
    let [id] = tasks(&board, ["dig"]).await;
    let claimed = board.claim(&id, "ada", LEASE).await.expect("it is free");
    assert_eq!(
        standing(&claimed),
        (
            TaskStatus::InProgress,
            Some("ada"),
            1,
            Some(START_MS + LEASE_MS)
        )
    );
    assert_eq!(stage.board().get(&id).await.expect("it is there"), claimed);
}

pub(super) async fn claim_is_a_heartbeat_when_the_agent_has_the_task(stage: Stage) {
    let board = stage.board();
    let [id] = tasks(&board, ["dig"]).await;
    board.claim(&id, "ada", LEASE).await.expect("it is free");
    stage.clock.advance_ms(1_000);
    let again = stage
        .board()
        .claim(&id, "ada", LEASE)
        .await
        .expect("it is ada's");
    assert_eq!(
        standing(&again),
        (
            TaskStatus::InProgress,
            Some("ada"),
            1,
            Some(START_MS + 1_000 + LEASE_MS)
        )
    );
    let shorter = board
        .claim(&id, "ada", Duration::from_secs(1))
        .await
        .expect("it is ada's");
    assert_eq!(
        shorter.lease, again.lease,
        "a claim does not shorten a lease"
    );
}

pub(super) async fn claim_is_taken_when_another_has_the_task(stage: Stage) {
    let board = stage.board();
    let [id] = tasks(&board, ["dig"]).await;
    board.claim(&id, "ada", LEASE).await.expect("it is free");
    stage.clock.advance_ms(15_000);
    let error = stage
        .board()
        .claim(&id, "bob", LEASE)
        .await
        .expect_err("ada has it");
    assert_eq!(
        (error.kind(), error.retry_after()),
        (ErrorKind::Taken, Some(Duration::from_secs(45)))
    );
    assert_eq!(
        error.message(),
        format!("task {id} is claimed by ada for 45s")
    );
    assert!(error.is_retryable());
}

pub(super) async fn claim_is_possible_when_the_lease_has_run_out(stage: Stage) {
    let (board, other) = (stage.board(), stage.board());
    let [id] = tasks(&board, ["dig"]).await;
    board.claim(&id, "ada", LEASE).await.expect("it is free");
    stage.clock.advance_ms(LEASE_MS);
    let taken = other
        .claim(&id, "bob", LEASE)
        .await
        .expect("the lease has run out");
    assert_eq!(
        standing(&taken),
        (
            TaskStatus::InProgress,
            Some("bob"),
            2,
            Some(START_MS + 2 * LEASE_MS)
        )
    );
    let why = "its worker ada was not heard of until its lease ran out";
    assert_eq!((taken.lost, taken.last_failure.as_deref()), (1, Some(why)));

    let lost = format!("task {id} does not belong to ada: bob has it now");
    refused(
        board.heartbeat(&id, "ada", LEASE).await,
        ErrorKind::Conflict,
        &lost,
    );
    refused(
        board.finish(&id, "ada", Finish::success("done")).await,
        ErrorKind::Conflict,
        &lost,
    );
    refused(board.release(&id, "ada").await, ErrorKind::Conflict, &lost);
    other
        .finish(&id, "bob", Finish::success("done"))
        .await
        .expect("it is bob's");
}

pub(super) async fn claim_is_refused_when_the_lease_cannot_be(stage: Stage) {
    let board = stage.board();
    let [id] = tasks(&board, ["dig"]).await;
    for lease in [
        Duration::ZERO,
        Duration::from_nanos(1),
        MAX_LEASE + Duration::from_nanos(1),
    ] {
        let error = board
            .claim(&id, "ada", lease)
            .await
            .expect_err("no such lease");
        assert_eq!(error.kind(), ErrorKind::Invalid, "{lease:?}");
        assert_eq!(
            board
                .claim_next("ada", lease)
                .await
                .expect_err("no such lease")
                .kind(),
            ErrorKind::Invalid
        );
    }
    refused(
        board.claim(&id, " ", LEASE).await,
        ErrorKind::Invalid,
        "an agent needs a name",
    );
    board
        .claim(&id, "ada", MAX_LEASE)
        .await
        .expect("that is the longest");
}

pub(super) async fn claim_next_takes_the_highest_priority_then_the_oldest(stage: Stage) {
    let (board, other) = (stage.board(), stage.board());
    let of = [
        ("low", i32::MIN),
        ("usual", 0),
        ("usual too", 0),
        ("less", -1),
        ("high", i32::MAX),
        ("more", 1),
    ];
    for (title, priority) in of {
        board
            .create(NewTask::new(title).priority(priority))
            .await
            .expect("it can be created");
        stage.clock.advance_ms(1);
    }
    for (at, title) in ["high", "more", "usual"].into_iter().enumerate() {
        // In turn, by two processes.
        let board = if at % 2 == 0 { &board } else { &other };
        assert_eq!(next(board, "ada").await.as_deref(), Some(title));
    }
    board
        .create(NewTask::new("urgent").priority(9))
        .await
        .expect("it can be created");
    for title in ["urgent", "usual too", "less", "low"] {
        assert_eq!(next(&other, "ada").await.as_deref(), Some(title));
    }
    assert_eq!(next(&board, "ada").await, None);
}

pub(super) async fn claim_next_gives_none_when_nothing_is_ready(stage: Stage) {
    let board = stage.board();
    assert_eq!(next(&board, "ada").await, None);
    let [id] = tasks(&stage.board(), ["dig"]).await;
    board
        .create(NewTask::new("plant").after(id.clone()))
        .await
        .expect("it can be created");
    assert_eq!(next(&board, "ada").await.as_deref(), Some("dig"));
    assert_eq!(next(&board, "ada").await, None);
    assert_eq!(next(&board, "bob").await, None);
    board.cancel(&id).await.expect("it has not ended");
    assert_eq!(next(&board, "ada").await, None);
}

pub(super) async fn claim_next_never_gives_a_task_twice_when_the_agent_is_the_same(stage: Stage) {
    let (board, other) = (stage.board(), stage.board());
    tasks(&board, ["a", "b", "c", "d"]).await;
    // Both have looked at all four.
    assert_eq!(next(&board, "ada").await.as_deref(), Some("a"));
    assert_eq!(next(&other, "ada").await.as_deref(), Some("b"));
    assert_eq!(next(&board, "ada").await.as_deref(), Some("c"));
    assert_eq!(next(&other, "ada").await.as_deref(), Some("d"));
    assert_eq!(next(&board, "ada").await, None);
    assert_eq!(next(&other, "ada").await, None);
}

pub(super) async fn reserved_tasks_are_for_their_agent_only(stage: Stage) {
    let board = stage.board();
    let [dig, plant, water] = tasks(&board, ["dig", "plant", "water"]).await;
    // Names that would be prefixes of each other.
    let reserved = board.reassign(&plant, "a/b%").await.expect("it is pending");
    assert_eq!(
        standing(&reserved),
        (TaskStatus::Pending, Some("a/b%"), 0, None)
    );
    let message = format!("task {plant} is reserved for a/b%");
    refused(
        board.claim(&plant, "a", LEASE).await,
        ErrorKind::Taken,
        &message,
    );
    assert_eq!(next(&board, "a").await.as_deref(), Some("dig"));
    assert_eq!(next(&board, "a/b%").await.as_deref(), Some("plant"));
    board.reassign(&water, "a/b%").await.expect("it is pending");
    assert_eq!(next(&board, "a").await, None);
    board
        .release(&water, "a/b%")
        .await
        .expect("it is reserved for it");
    assert_eq!(next(&board, "a").await.as_deref(), Some("water"));
    board
        .reassign(&dig, "a/b%")
        .await
        .expect("it is in progress");
    assert_eq!(
        board
            .get(&dig)
            .await
            .expect("it is there")
            .lease
            .map(|lease| lease.holder),
        Some("a/b%".into())
    );
}

pub(super) async fn heartbeat_keeps_a_task_when_time_goes_by(stage: Stage) {
    let (board, other) = (stage.board(), stage.board());
    let [id] = tasks(&board, ["dig"]).await;
    board.claim(&id, "ada", LEASE).await.expect("it is free");
    for _ in 0..3 {
        stage.clock.advance_ms(LEASE_MS - 1);
        assert_eq!(next(&other, "bob").await, None);
        board
            .heartbeat(&id, "ada", LEASE)
            .await
            .expect("it is ada's");
    }
    // Too late, but nobody minded: it is still ada's.
    stage.clock.advance_ms(2 * LEASE_MS);
    let late = board
        .heartbeat(&id, "ada", LEASE)
        .await
        .expect("nobody took it");
    assert_eq!((late.attempts, late.lost), (1, 0));
    assert_eq!(next(&other, "bob").await, None);
}

pub(super) async fn release_gives_a_task_back_when_its_worker_asks(stage: Stage) {
    let board = stage.board();
    let [id] = tasks(&board, ["dig"]).await;
    board.claim(&id, "ada", LEASE).await.expect("it is free");
    let message = format!("task {id} does not belong to bob: ada has it now");
    refused(
        board.release(&id, "bob").await,
        ErrorKind::Conflict,
        &message,
    );
    let released = board.release(&id, "ada").await.expect("it is ada's");
    assert_eq!(standing(&released), (TaskStatus::Pending, None, 1, None));
    let message = format!("task {id} does not belong to ada: it is pending");
    refused(
        board.release(&id, "ada").await,
        ErrorKind::Conflict,
        &message,
    );
    assert_eq!(next(&board, "bob").await.as_deref(), Some("dig"));
}

pub(super) async fn reassign_moves_a_task_when_it_is_in_progress(stage: Stage) {
    let board = stage.board();
    let [id] = tasks(&board, ["dig"]).await;
    board.claim(&id, "ada", LEASE).await.expect("it is free");
    let moved = board.reassign(&id, "bob").await.expect("it has not ended");
    assert_eq!(
        standing(&moved),
        (
            TaskStatus::InProgress,
            Some("bob"),
            1,
            Some(START_MS + LEASE_MS)
        )
    );
    let message = format!("task {id} does not belong to ada: bob has it now");
    refused(
        board.finish(&id, "ada", Finish::success("")).await,
        ErrorKind::Conflict,
        &message,
    );
    board.claim(&id, "bob", LEASE).await.expect("it is bob's");
    board
        .finish(&id, "bob", Finish::success(""))
        .await
        .expect("it is bob's");
}

pub(super) async fn ten_tasks_are_taken_over_when_their_worker_dies(stage: Stage) {
    let (board, other) = (stage.board(), stage.board());
    tasks(&board, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]).await;
    for _ in 0..10 {
        board
            .claim_next("ada", LEASE)
            .await
            .expect("it can be asked for")
            .expect("there is one");
    }
    drop(board);
    stage.clock.advance_ms(LEASE_MS - 1);
    assert_eq!(next(&other, "bob").await, None);
    stage.clock.advance_ms(1);
    for number in 0..10 {
        let task = other
            .claim_next("bob", LEASE)
            .await
            .expect("it can be asked for")
            .expect("there is one");
        assert_eq!(
            (task.title.parse(), task.attempts, task.lost),
            (Ok(number), 2, 1)
        );
        let done = other
            .finish(&task.id, "bob", Finish::success("done"))
            .await
            .expect("it is bob's");
        assert_eq!((done.status, done.lost), (TaskStatus::Completed, 0));
    }
    assert_eq!(next(&other, "bob").await, None);
}

pub(super) async fn task_fails_when_too_many_workers_lose_it(stage: Stage) {
    let board = stage.board().max_lost(2);
    let [id] = tasks(&board, ["dig"]).await;
    for agent in ["ada", "bob"] {
        assert_eq!(next(&board, agent).await.as_deref(), Some("dig"));
        stage.clock.advance_ms(LEASE_MS);
    }
    assert_eq!(next(&board, "cyd").await, None);
    let failed = board.get(&id).await.expect("it is there");
    assert_eq!(
        standing(&failed),
        (TaskStatus::Failed, Some("bob"), 2, None)
    );
    let why = "2 workers in a row lost it; its worker bob was not heard of until its lease ran out";
    assert_eq!(failed.result.as_deref(), Some(why));
    let again = board.retry(&id).await.expect("it has failed");
    assert_eq!(
        (standing(&again), again.lost),
        ((TaskStatus::Pending, None, 2, None), 0)
    );
    assert_eq!(next(&board, "cyd").await.as_deref(), Some("dig"));
}

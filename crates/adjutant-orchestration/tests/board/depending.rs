//! What depends on what.

use std::sync::Arc;

use adjutant_orchestration::{
    ErrorKind,
    board::{Board, Finish, MAX_DEPENDENCIES, NewTask, TaskEdit, TaskId, TaskQuery, TaskStatus},
};

use super::stage::{LEASE, Stage, all, next, refused, tasks};

async fn behind(board: &Board, title: &str, before: &[&TaskId]) -> TaskId {
    let new = before
        .iter()
        .fold(NewTask::new(title), |new, id| new.after((*id).clone()));
    board.create(new).await.expect("it can be created").id
}

async fn done(board: &Board, id: &TaskId, finish: Finish) {
    board.claim(id, "ada", LEASE).await.expect("it is free");
    board.finish(id, "ada", finish).await.expect("it is ada's");
}

fn on(ids: &[&TaskId]) -> TaskEdit {
    TaskEdit::new().dependencies(ids.iter().map(|id| (*id).clone()).collect())
}

pub(super) async fn unknown_dependencies_are_refused(stage: Stage) {
    let board = stage.board();
    let [id] = tasks(&board, ["dig"]).await;
    let unknown = TaskId::from("0123456789abcdef0123456789abcdef");
    let message = format!("there is no task {unknown} to depend on");
    let new = NewTask::new("plant")
        .after(id.clone())
        .after(unknown.clone());
    refused(board.create(new).await, ErrorKind::Missing, &message);
    refused(
        board.update(&id, on(&[&unknown])).await,
        ErrorKind::Missing,
        &message,
    );
    let message = "there is no task \"../x\" to depend on";
    refused(
        board
            .create(NewTask::new("plant").after("../x".into()))
            .await,
        ErrorKind::Missing,
        message,
    );
    let many = (0..=MAX_DEPENDENCIES).fold(NewTask::new("plant"), |new, _| new.after(id.clone()));
    refused(
        board.create(many).await,
        ErrorKind::Invalid,
        "there are 65 dependencies; there may be 64",
    );
    assert_eq!(all(&board).await.len(), 1);
    assert_eq!(board.get(&id).await.expect("it is there").dependents, 0);
}

pub(super) async fn dependent_is_ready_when_all_before_it_are_completed(stage: Stage) {
    let board = stage.board();
    let [dig, buy] = tasks(&board, ["dig", "buy"]).await;
    let plant = behind(&board, "plant", &[&dig, &buy, &dig]).await;
    let water = behind(&board, "water", &[&plant]).await;
    assert_eq!(board.get(&dig).await.expect("it is there").dependents, 1);
    let message = format!("task {plant} is blocked by {dig} (pending), {buy} (pending)");
    refused(
        board.claim(&plant, "bob", LEASE).await,
        ErrorKind::Conflict,
        &message,
    );
    done(&board, &dig, Finish::success("")).await;
    let message = format!("task {plant} is blocked by {buy} (pending)");
    refused(
        board.claim(&plant, "bob", LEASE).await,
        ErrorKind::Conflict,
        &message,
    );
    done(&board, &buy, Finish::success("")).await;
    let other = stage.board();
    assert_eq!(next(&other, "bob").await.as_deref(), Some("plant"));
    assert_eq!(next(&other, "bob").await, None);
    let blocked = other
        .list(&TaskQuery::new().only_blocked())
        .await
        .expect("it can be listed")
        .tasks;
    let blocked: Vec<_> = blocked
        .iter()
        .map(|it| (&it.task.id, &it.blocked_by[0].id, it.blocked_by[0].status))
        .collect();
    assert_eq!(blocked, [(&water, &plant, TaskStatus::InProgress)]);
    other
        .finish(&plant, "bob", Finish::success(""))
        .await
        .expect("it is bob's");
    assert_eq!(next(&board, "bob").await.as_deref(), Some("water"));
    // What depends on completed tasks only is ready at once.
    behind(&board, "rest", &[&dig, &plant]).await;
    assert_eq!(next(&other, "bob").await.as_deref(), Some("rest"));
}

pub(super) async fn failed_dependency_blocks_visibly_until_it_is_retried(stage: Stage) {
    let board = stage.board();
    let [dig] = tasks(&board, ["dig"]).await;
    let plant = behind(&board, "plant", &[&dig]).await;
    done(&board, &dig, Finish::failure("rock")).await;
    assert_eq!(next(&board, "bob").await, None);
    let blocked = board.show(&plant).await.expect("it is there").blocked_by;
    let blocked: Vec<_> = blocked
        .iter()
        .map(|it| (&it.id, &*it.title, it.status))
        .collect();
    assert_eq!(blocked, [(&dig, "dig", TaskStatus::Failed)]);
    board.retry(&dig).await.expect("it has failed");
    done(&board, &dig, Finish::success("")).await;
    assert_eq!(
        board.show(&plant).await.expect("it is there").blocked_by,
        []
    );
    assert_eq!(next(&board, "bob").await.as_deref(), Some("plant"));
}

pub(super) async fn cancelled_dependency_blocks_visibly_until_it_is_dropped(stage: Stage) {
    let board = stage.board();
    let [dig, buy] = tasks(&board, ["dig", "buy"]).await;
    let plant = behind(&board, "plant", &[&dig, &buy]).await;
    board.cancel(&dig).await.expect("it has not ended");
    done(&board, &buy, Finish::success("")).await;
    let blocked = board.show(&plant).await.expect("it is there").blocked_by;
    assert_eq!(
        blocked.iter().map(|it| it.status).collect::<Vec<_>>(),
        [TaskStatus::Cancelled]
    );
    // A blocked task can be cancelled and taken up again; it is blocked still.
    board.cancel(&plant).await.expect("it has not ended");
    board.retry(&plant).await.expect("it was cancelled");
    assert_eq!(next(&board, "bob").await, None);
    let edited = board
        .update(&plant, on(&[&buy]))
        .await
        .expect("it is pending");
    assert_eq!(edited.dependencies, [buy]);
    assert_eq!(board.get(&dig).await.expect("it is there").dependents, 0);
    assert_eq!(next(&board, "bob").await.as_deref(), Some("plant"));
}

pub(super) async fn cycles_are_refused(stage: Stage) {
    let board = stage.board();
    let [a] = tasks(&board, ["a"]).await;
    let b = behind(&board, "b", &[&a]).await;
    let c = behind(&board, "c", &[&b]).await;
    for (through, message) in [(&a, &a), (&b, &b), (&c, &c)].map(|(it, through)| {
        (
            it,
            format!("task {a} would wait for itself, through {through}"),
        )
    }) {
        refused(
            board.update(&a, on(&[through])).await,
            ErrorKind::Invalid,
            &message,
        );
    }
    assert_eq!(board.get(&a).await.expect("it is there").dependencies, []);
    // The other way round it is no cycle.
    board.update(&c, on(&[&a])).await.expect("c may wait for a");
    board
        .update(&b, on(&[&c]))
        .await
        .expect("b may wait for c now");
    for title in ["a", "c", "b"] {
        let task = board
            .claim_next("ada", LEASE)
            .await
            .expect("it can be asked for")
            .expect("one is ready");
        assert_eq!(&*task.title, title);
        board
            .finish(&task.id, "ada", Finish::success(""))
            .await
            .expect("it is ada's");
    }
}

pub(super) async fn cycle_is_refused_when_two_writers_make_it_at_once(stage: Stage) {
    for _ in 0..10 {
        let (one, other) = (stage.board(), stage.board());
        let [a, b] = tasks(&one, ["a", "b"]).await;
        let first = tokio::spawn({
            let (a, edit) = (a.clone(), on(&[&b]));
            async move { one.update(&a, edit).await }
        });
        let second = other.update(&b, on(&[&a])).await;
        let both = [first.await.expect("no panic"), second];
        assert_eq!(
            both.iter().filter(|result| result.is_ok()).count(),
            1,
            "{both:?}"
        );
        let error = both
            .into_iter()
            .find_map(Result::err)
            .expect("one is refused");
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
}

pub(super) async fn dependencies_are_fixed_when_a_task_is_in_progress(stage: Stage) {
    let board = stage.board();
    let [a, b] = tasks(&board, ["a", "b"]).await;
    board.claim(&a, "ada", LEASE).await.expect("it is free");
    let hint = "it can be claimed, kept alive, completed, failed, released, reassigned, taken from its worker, given up, \
                cancelled, edited";
    let message =
        format!("task {a} is in_progress and cannot be made to depend on others; hint: {hint}");
    refused(
        board.update(&a, on(&[&b])).await,
        ErrorKind::Conflict,
        &message,
    );
}

pub(super) async fn dependents_are_told_when_a_task_ends_while_they_are_created(stage: Stage) {
    for _ in 0..20 {
        let (board, other) = (stage.board(), stage.board());
        let [dig] = tasks(&board, ["dig"]).await;
        board.claim(&dig, "ada", LEASE).await.expect("it is free");
        let id = Arc::new(dig.clone());
        let creating = tokio::spawn(async move { behind(&other, "plant", &[&id]).await });
        board
            .finish(&dig, "ada", Finish::success(""))
            .await
            .expect("it is ada's");
        let plant = creating.await.expect("no panic");
        let task = board
            .claim_next("bob", LEASE)
            .await
            .expect("it can be asked for")
            .expect("it is ready");
        assert_eq!(task.id, plant);
    }
}

pub(super) async fn many_dependents_are_ready_when_one_task_is_completed(stage: Stage) {
    let board = stage.board();
    let [dig] = tasks(&board, ["dig"]).await;
    for number in 0..300 {
        behind(&board, &number.to_string(), &[&dig]).await;
    }
    assert_eq!(board.get(&dig).await.expect("it is there").dependents, 300);
    done(&board, &dig, Finish::success("")).await;
    let other = stage.board();
    for _ in 0..300 {
        assert!(next(&other, "bob").await.is_some());
    }
    assert_eq!(next(&other, "bob").await, None);
}

//! The board: what is not there, and what tells tasks apart.

use std::{sync::Arc, time::Duration};

use adjutant_agent::kv::MemoryKvStore;
use adjutant_llm::FixedWorld;
use adjutant_orchestration::{
    ErrorKind,
    board::{Board, BoardTools, Finish, NewTask, TaskId, TaskQuery},
};
use adjutant_tool::CallContext;
use serde_json::json;

fn board() -> Board {
    Board::new(Arc::new(MemoryKvStore::default())).world(FixedWorld::at_ms(1_000))
}

#[tokio::test]
async fn task_is_missing_when_an_unknown_one_is_claimed_or_finished() {
    let board = board();
    let known = board
        .create(NewTask::new("dig"))
        .await
        .expect("it can be created");
    board.delete(&known.id).await.expect_err("it is open");
    board.cancel(&known.id).await.expect("it has not ended");
    board.delete(&known.id).await.expect("it has ended");
    for id in [known.id, TaskId::from("task-9")] {
        let claimed = board.claim(&id, "ada", Duration::from_secs(60)).await;
        assert_eq!(
            claimed.expect_err("there is none").kind(),
            ErrorKind::Missing,
            "{id}"
        );
        let finished = board.finish(&id, "ada", Finish::success("done")).await;
        assert_eq!(
            finished.expect_err("there is none").kind(),
            ErrorKind::Missing,
            "{id}"
        );
    }
}

#[tokio::test]
async fn list_is_empty_until_tasks_are_created_each_with_an_id_of_its_own() {
    let board = board();
    let tools = board.tools(BoardTools::new());
    let list = tools
        .toolset()
        .get("list_tasks")
        .expect("it is there")
        .clone();
    let listed = list
        .call(json!({}), CallContext::detached())
        .await
        .expect("it lists");
    assert_eq!(listed.details, json!({ "tasks": [] }));
    for _ in 0..20 {
        board
            .create(NewTask::new("dig"))
            .await
            .expect("it can be created");
    }
    let page = board
        .list(&TaskQuery::new().limit(50))
        .await
        .expect("it can be listed");
    let ids: std::collections::BTreeSet<String> =
        page.tasks.iter().map(|it| it.task.id.to_string()).collect();
    assert_eq!((page.tasks.len(), ids.len()), (20, 20));
}

//! Where the checks are played: key-value stores of each kind, and a clock that is moved by hand.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use adjutant_agent::{KvStore, kv::MemoryKvStore};
use adjutant_llm::FixedWorld;
use adjutant_orchestration::{
    Error, ErrorKind,
    board::{Board, NewTask, Task, TaskId, TaskQuery, TaskStatus},
};
use adjutant_store::{Postgres, Sqlite};
use adjutant_testing::PostgresServer;
use futures_util::future::BoxFuture;

/// How long a lease is.
pub(super) const LEASE: Duration = Duration::from_secs(60);
pub(super) const LEASE_MS: u64 = 60_000;
/// When the clock begins.
pub(super) const START_MS: u64 = 1_000_000;

type Open = Box<dyn Fn() -> Arc<dyn KvStore> + Send + Sync>;

/// A board that nobody else uses.
pub(super) struct Stage {
    open: Open,
    pub(super) clock: Arc<FixedWorld>,
}

impl Stage {
    pub(super) fn new(open: Open) -> Self {
        Self {
            open,
            clock: Arc::new(FixedWorld::at_ms(START_MS)),
        }
    }

    pub(super) fn kv(&self) -> Arc<dyn KvStore> {
        (self.open)()
    }

    /// The board, as a process of its own has it.
    pub(super) fn board(&self) -> Board {
        Board::new(self.kv()).world(Arc::<FixedWorld>::clone(&self.clock))
    }
}

/// Plays a check on a stage; none is there if the key-value store cannot be had, which is told.
pub(super) fn play<F: Future<Output = ()>>(
    name: &'static str,
    stage: fn(&'static str) -> BoxFuture<'static, Option<Stage>>,
    check: fn(Stage) -> F,
) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(async {
        if let Some(stage) = stage(name).await {
            let played = tokio::time::timeout(Duration::from_secs(60), check(stage)).await;
            played.expect("it ends within a minute");
        }
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
}

pub(super) fn memory(_: &'static str) -> BoxFuture<'static, Option<Stage>> {
    let kv = MemoryKvStore::default();
    Box::pin(async move { Some(Stage::new(Box::new(move || Arc::new(kv.clone())))) })
}

pub(super) fn sqlite(_: &'static str) -> BoxFuture<'static, Option<Stage>> {
    let database = Sqlite::in_memory().expect("it opens");
    Box::pin(async move { Some(Stage::new(Box::new(move || Arc::new(database.kv("board"))))) })
}

pub(super) fn sqlite_file(_: &'static str) -> BoxFuture<'static, Option<Stage>> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = move || folder.path().join("db");
    let open = move || -> Arc<dyn KvStore> {
        Arc::new(Sqlite::open(path()).expect("it opens").kv("board"))
    };
    Box::pin(async move { Some(Stage::new(Box::new(open))) })
}

pub(super) fn postgres(name: &'static str) -> BoxFuture<'static, Option<Stage>> {
    static BOARDS: AtomicU32 = AtomicU32::new(1);
    Box::pin(async move {
        let server = PostgresServer::for_test(name)?;
        let kv = format!("board {}", BOARDS.fetch_add(1, Ordering::Relaxed));
        let database = Postgres::connect(server.url("postgres"))
            .connections(4)
            .await
            .expect("it opens");
        Some(Stage::new(Box::new(move || {
            Arc::new(database.kv(kv.as_str()))
        })))
    })
}

/// Creates tasks with these titles.
pub(super) async fn tasks<const N: usize>(board: &Board, titles: [&str; N]) -> [TaskId; N] {
    let mut ids = titles.map(TaskId::from);
    for id in &mut ids {
        let new = NewTask::new(&*id.0);
        *id = board.create(new).await.expect("it can be created").id;
    }
    ids
}

/// The title and status of each task, oldest first, with those that block it.
pub(super) async fn all(board: &Board) -> Vec<(String, TaskStatus, Vec<TaskStatus>)> {
    let page = board
        .list(&TaskQuery::new().limit(1_000))
        .await
        .expect("it can be listed");
    let tasks = page.tasks.into_iter();
    let line = tasks.map(|it| {
        (
            it.task.title.to_string(),
            it.task.status,
            it.blocked_by.iter().map(|blocker| blocker.status).collect(),
        )
    });
    line.collect()
}

/// The title of the next task that an agent gets.
pub(super) async fn next(board: &Board, agent: &str) -> Option<String> {
    let claimed = board
        .claim_next(agent, LEASE)
        .await
        .expect("it can be asked for");
    claimed.map(|task| task.title.to_string())
}

#[track_caller]
pub(super) fn refused<T: std::fmt::Debug>(
    result: Result<T, Error>,
    kind: ErrorKind,
    message: &str,
) {
    let error = result.expect_err("it is refused");
    assert_eq!((error.kind(), error.message()), (kind, message));
}

/// How a task stands: status, assignee, attempts, and until when it is leased.
pub(super) fn standing(task: &Task) -> (TaskStatus, Option<&str>, u32, Option<u64>) {
    (
        task.status,
        task.assignee.as_deref(),
        task.attempts,
        task.lease.as_ref().map(|lease| lease.until_ms),
    )
}

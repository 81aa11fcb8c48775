//! What a board costs: 10,000 tasks, 50 workers who claim and finish them, on each key-value store. Nothing is claimed
//! twice.
//!
//! A key-value store joins by a line in `kv_stores`; on one that is a server, there are few tasks.

use std::{
    collections::HashSet,
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use adjutant_agent::{KvStore, kv::MemoryKvStore};
use adjutant_benches::Rows;
use adjutant_orchestration::board::{Board, Finish, NewTask, TaskId};
use adjutant_store::{Postgres, Sqlite};
use adjutant_testing::PostgresServer;
use tempfile::TempDir;
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
};

/// How many tasks there are.
const TASKS: usize = 10_000;
/// How many there are on a server.
const FEW: usize = 500;
/// How many workers there are.
const WORKERS: usize = 50;
/// How long a lease is: longer than everything takes.
const LEASE: Duration = Duration::from_secs(3_600);

/// A key-value store by its name, and how many tasks there are on it.
type Store = (&'static str, Arc<dyn KvStore>, usize);

/// Everything that a board can be on; on a disk, in this folder.
fn kv_stores(folder: &Path, runtime: &Runtime, rows: &Rows) -> Vec<Store> {
    let sqlite = Sqlite::open(folder.join("db"))
        .expect("a database")
        .kv("board");
    let mut kv_stores: Vec<Store> = vec![
        ("memory", Arc::new(MemoryKvStore::default()), TASKS),
        ("sqlite", Arc::new(sqlite), TASKS),
    ];
    match PostgresServer::shared() {
        Ok(server) => {
            let url = server.database().expect("a database");
            let connected = runtime
                .block_on(async { Postgres::connect(url).await })
                .expect("a connection");
            kv_stores.push(("postgres", Arc::new(connected.kv("board")), FEW));
        }
        Err(why) => rows.skipped("board, postgres", why),
    }
    kv_stores
}

fn main() -> ExitCode {
    let mut rows = Rows::default();
    // Beside what is built: temporary files of the system may be in memory.
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    for store in kv_stores(folder.path(), &runtime, &rows) {
        runtime.block_on(drain(store, &mut rows));
    }
    rows.end()
}

/// Fills a board, and lets the workers empty it.
async fn drain((name, kv, tasks): Store, rows: &mut Rows) {
    let mut tell = |what: &str, begun: Instant| {
        let took = begun.elapsed();
        let what = format!("board, {name}: {tasks} tasks {what} by {WORKERS} at once, us each");
        rows.figure(
            &what,
            &format!("{took:.2?} in all"),
            took.as_secs_f64() * 1e6 / tasks as f64,
        );
    };
    let board = Board::new(kv);
    let begun = Instant::now();
    let mut authors = JoinSet::new();
    for author in 0..WORKERS {
        authors.spawn(fill(board.clone(), (author..tasks).step_by(WORKERS)));
    }
    authors.join_all().await;
    tell("created", begun);

    let begun = Instant::now();
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        workers.spawn(work(board.clone(), format!("worker-{worker}")));
    }
    let claimed: Vec<TaskId> = workers.join_all().await.into_iter().flatten().collect();
    tell("claimed and finished", begun);
    let once: HashSet<&TaskId> = claimed.iter().collect();
    assert_eq!(
        (claimed.len(), once.len()),
        (tasks, tasks),
        "{name}: a task was claimed twice, or never"
    );
}

async fn fill(board: Board, numbers: impl Iterator<Item = usize>) {
    for number in numbers {
        let new = NewTask::new(format!("Task {number}")).priority((number % 5) as i32);
        board
            .create(new.description("Something that has to be done."))
            .await
            .expect("a task");
    }
}

/// Claims and finishes tasks until there is none; gives what it had.
async fn work(board: Board, agent: String) -> Vec<TaskId> {
    let mut had = Vec::new();
    while let Some(task) = board.claim_next(&agent, LEASE).await.expect("a claim") {
        assert_eq!(task.attempts, 1, "it was claimed before");
        board
            .finish(&task.id, &agent, Finish::success("done"))
            .await
            .expect("nobody else has it");
        had.push(task.id);
    }
    had
}

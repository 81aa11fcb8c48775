//! What workers cost: sessions taken in a second beside many idle ones, what idle ones cost who looks for work, and a turn under
//! a worker beside a plain one.
//!
//! An argument that begins with `postgres` is the URL of an empty database to use instead of a server of the benchmark's own,
//! which does not wait for its disk.

#[expect(dead_code, reason = "the benchmark of stores measures more")]
#[path = "store/spent.rs"]
mod spent;
#[path = "store/worker.rs"]
mod worker;

use std::{
    env,
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use adjutant_agent::{DueWork, Flush, Journal, Lane, LogId, Owner, Post, Work};
use adjutant_benches::{Rows, median};
use adjutant_fleet::Fleet;
use adjutant_llm::{Entry, UserMessage};
use adjutant_store::{Postgres, Sqlite};
use adjutant_testing::PostgresServer;
use adjutant_tool::Cancel;
use futures_util::future::join_all;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use spent::Spent;
use worker::Worker;

/// How many sessions idle while others are taken.
const IDLE: usize = 100_000;
/// How many sessions are taken in a round.
const DUE: usize = 2_000;
/// How many workers take them.
const WORKERS: [usize; 3] = [1, 4, 16];
/// How many sessions a worker takes at a time, as it does by itself.
const AT_A_TIME: usize = 16;
/// How long a worker looks for work that is not there.
const LOOKING: Duration = Duration::from_secs(5);
/// What an idle session may cost a worker, in nanoseconds of CPU in a second: less than can be measured.
const IDLE_NS: f64 = 5.0;
/// How many rows a worker may read in a second of looking, however many sessions idle.
const ROWS_READ: f64 = 20.0;
/// How many rows the server may read for a session that is taken and ended, however many more are due.
const ROWS_TAKEN: f64 = 20.0;
/// What a turn under a worker may cost over a plain one.
const OVER_PLAIN: f64 = 1.3;
/// How many runs a round has, and how many turns each.
const RUNS: usize = 20;
const TURNS: u64 = 10;
const ROUNDS: usize = 7;
/// How many sessions are driven at once, to see what a database carries.
const AT_ONCE: usize = 64;

/// A place for sessions.
enum Place {
    Sqlite(std::path::PathBuf),
    Postgres(String),
}

impl Place {
    fn name(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
            Self::Postgres(_) => "postgres",
        }
    }

    /// A handle of its own, as another process has it.
    async fn open(&self) -> Arc<dyn DueWork> {
        match self {
            Self::Sqlite(path) => Arc::new(Sqlite::open(path).expect("a database").journal()),
            Self::Postgres(url) => Arc::new(
                Postgres::connect(url.as_str())
                    .connections(4)
                    .await
                    .expect("a connection")
                    .journal(),
            ),
        }
    }

    /// Runs a statement; the first number that it gives.
    async fn sql(&self, sqlite: &str, postgres: &str) -> i64 {
        match self {
            Self::Sqlite(path) => {
                let db = rusqlite::Connection::open(path).expect("a database");
                db.busy_timeout(Duration::from_secs(60))
                    .expect("a database");
                let mut statement = db.prepare(sqlite).expect("a statement");
                let mut rows = statement.query([]).expect("it runs");
                rows.next()
                    .expect("it runs")
                    .map_or(0, |row| row.get(0).expect("a number"))
            }
            Self::Postgres(url) => {
                let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
                    .await
                    .expect("a server");
                let connection = tokio::spawn(connection);
                let rows = client.query(postgres, &[]).await.expect("it runs");
                drop(client);
                let _ = connection.await;
                rows.first().map_or(0, |row| row.get(0))
            }
        }
    }

    /// What the server has counted of the table of logs; `None` of a file.
    async fn counted(&self, what: &str) -> Option<i64> {
        if let Self::Sqlite(_) = self {
            return None;
        }
        // What connections count they tell when they have rested for a second.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let what = format!(
            "select coalesce(sum({what}), 0)::bigint from pg_stat_user_tables where relname = 'logs'"
        );
        Some(self.sql("", &what).await)
    }
}

/// The rows of the table of logs and of its indices that the server read, and the statements that it ran on them.
const READ: &str = "seq_tup_read + coalesce(idx_tup_fetch, 0)";
const ASKED: &str = "seq_scan + coalesce(idx_scan, 0)";

fn main() -> ExitCode {
    let mut rows = Rows::default();
    // Beside what is built: temporary files of the system may be in memory.
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    for place in places(folder.path(), &rows) {
        runtime.block_on(looking(&place, &mut rows));
        runtime.block_on(claims(&place, &mut rows));
        turns(&runtime, &place, &mut rows);
        runtime.block_on(carried(&place, &mut rows));
    }
    rows.end()
}

fn places(folder: &Path, rows: &Rows) -> Vec<Place> {
    let mut places = vec![Place::Sqlite(folder.join("db"))];
    let given = env::args()
        .skip(1)
        .find(|argument| argument.starts_with("postgres"));
    match (given, PostgresServer::shared()) {
        (Some(url), _) => places.push(Place::Postgres(url)),
        (None, Ok(server)) => places.push(Place::Postgres(server.database().expect("a database"))),
        (None, Err(why)) => rows.skipped("fleet: postgres", why),
    }
    places
}

/// What a worker that finds nothing costs, without sessions and with many idle ones.
async fn looking(place: &Place, rows: &mut Rows) {
    let name = place.name();
    let journal = place.open().await;
    let none = look(place, &journal).await;
    let began = Instant::now();
    let many = IDLE;
    place
        .sql(
            &format!(
                "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {many}) \
                INSERT INTO logs (id, created_ms, updated_ms, link) SELECT 'idle/' || i, i, i, zeroblob(32) FROM n"
            ),
            &format!(
                "insert into adjutant.logs (name, created_ms, updated_ms, link, about) \
                select convert_to('idle/' || i, 'UTF8'), i, i, decode(repeat('00', 32), 'hex'), '{{}}' \
                from generate_series(1, {many}) as i"
            ),
        )
        .await;
    place
        .sql("ANALYZE logs", "vacuum analyze adjutant.logs")
        .await;
    rows.figure(
        &format!("{name}: {many} sessions made, s"),
        "in one statement",
        began.elapsed().as_secs_f64(),
    );
    let idle = look(place, &journal).await;
    let each = |it: &Look| it.computed.as_secs_f64() / LOOKING.as_secs_f64();
    let measured = format!(
        "{:.3} ms of CPU in a second, {:.3} without any",
        each(&idle) * 1e3,
        each(&none) * 1e3
    );
    let more = (each(&idle) - each(&none)).max(0.0) * 1e9 / many as f64;
    rows.row(
        &format!("{name}: an idle session of {many}, ns of CPU of a worker in a second"),
        &measured,
        more,
        IDLE_NS,
    );
    if let (Some(read), Some(before)) = (idle.read, none.read) {
        let measured = format!(
            "{:.1} statements; without any session {before:.1} rows",
            idle.asked.unwrap_or(0.0)
        );
        rows.row(
            &format!("{name}: rows read in a second for a worker beside {many} idle sessions"),
            &measured,
            read,
            ROWS_READ,
        );
    }
}

struct Look {
    computed: Duration,
    /// The rows of tables and indices that the server read in a second, and the statements that it ran.
    read: Option<f64>,
    asked: Option<f64>,
}

async fn look(place: &Place, journal: &Arc<dyn DueWork>) -> Look {
    let before = (place.counted(READ).await, place.counted(ASKED).await);
    let stop = Cancel::new();
    let fleet = Fleet::new(Arc::clone(journal), |_| Err("nothing is due".into()));
    let computed = spent::computed();
    let worker = tokio::spawn(fleet.run(stop.clone()));
    tokio::time::sleep(LOOKING).await;
    let computed = spent::computed() - computed;
    stop.cancel();
    worker.await.expect("no panic").expect("it ends");
    let after = (place.counted(READ).await, place.counted(ASKED).await);
    let each = |after: Option<i64>, before: Option<i64>| {
        after
            .zip(before)
            .map(|(after, before)| (after - before) as f64 / LOOKING.as_secs_f64())
    };
    Look {
        computed,
        read: each(after.0, before.0),
        asked: each(after.1, before.1),
    }
}

/// Sessions that are taken in a second.
async fn claims(place: &Place, rows: &mut Rows) {
    let name = place.name();
    for at_a_time in [AT_A_TIME, 1] {
        for workers in WORKERS {
            let journals = join_all((0..workers).map(|_| place.open())).await;
            // What is given up late must not free what was taken since.
            place
                .sql(
                    &format!("UPDATE logs SET work = 1, lost = 0, owner = NULL, instance = NULL, epoch = epoch + 1 WHERE created_ms <= {DUE}"),
                    &format!("update adjutant.logs set work = 1, lost = 0, owner = null, epoch = epoch + 1 where created_ms <= {DUE}"),
                )
                .await;
            let read = if workers == 1 {
                place.counted(READ).await
            } else {
                None
            };
            let began = Instant::now();
            let taken = journals
                .iter()
                .map(|journal| tokio::spawn(take(Arc::clone(journal), at_a_time)));
            let all: usize = join_all(taken)
                .await
                .into_iter()
                .map(|taken| taken.expect("no panic"))
                .sum();
            let took = began.elapsed().as_secs_f64();
            assert_eq!(all, DUE, "each is taken once");
            let what = format!(
                "{name}: sessions taken and ended in a second by {workers} workers, {at_a_time} at a time"
            );
            rows.figure(
                &what,
                &format!("beside {IDLE} idle ones"),
                all as f64 / took,
            );
            // Connections tell what they count when they end.
            drop(journals);
            if let Some(before) = read
                && let Some(after) = place.counted(READ).await
            {
                let what =
                    format!("{name}: rows read for a session that is taken, {at_a_time} at a time");
                rows.row(
                    &what,
                    &format!("of {DUE} due ones"),
                    (after - before) as f64 / DUE as f64,
                    ROWS_TAKEN,
                );
            }
        }
    }
}

/// Takes sessions until none is left, and ends the run of each.
async fn take(journal: Arc<dyn DueWork>, at_a_time: usize) -> usize {
    let (owner, mut taken) = (Owner::default(), 0);
    loop {
        let due = journal.due(&owner, at_a_time).await.expect("it is told");
        if due.is_empty() {
            return taken;
        }
        taken += due.len();
        let ended = due.into_iter().map(async |mut due| {
            due.log.mark(Work::Idle);
            due.log.append(&[], Flush::Lazy).await.expect("it is there");
        });
        join_all(ended).await;
    }
}

/// A turn of a run under a worker beside one of a plain run.
fn turns(runtime: &Runtime, place: &Place, rows: &mut Rows) {
    let (name, journal) = (place.name(), runtime.block_on(place.open()));
    for (turns, limit) in [
        (
            TURNS,
            if name == "postgres" {
                OVER_PLAIN
            } else {
                f64::INFINITY
            },
        ),
        (1, f64::INFINITY),
    ] {
        let agent = Worker::agent(turns).journal(Arc::clone(&journal) as Arc<dyn Journal>);
        let (mut plain, mut driven) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let log = |kind: &str, run: usize| LogId::from(format!("{kind} {turns} {round} {run}"));
            plain.push(Spent::best(1, || {
                runtime.block_on(async {
                    for run in 0..RUNS {
                        agent
                            .session(log("plain", run))
                            .run("Go.")
                            .await
                            .expect("a run");
                    }
                });
            }));
            runtime.block_on(post(
                &*journal,
                (0..RUNS).map(|run| log("driven", run)).collect(),
            ));
            driven.push(Spent::best(1, || {
                runtime.block_on(drive(&journal, turns, 1, RUNS))
            }));
        }
        let each = |of: &[Spent], what: fn(&Spent) -> Duration| {
            median(
                of.iter()
                    .map(|it| what(it).as_secs_f64() * 1e6 / (RUNS as u64 * turns) as f64),
            )
        };
        let [plain_us, driven_us] = [&plain, &driven].map(|of| each(of, |it| it.time));
        let [plain_cpu, driven_cpu] = [&plain, &driven].map(|of| each(of, |it| it.computed));
        let measured = format!(
            "{driven_us:.0} and {plain_us:.0} us; {driven_cpu:.0} and {plain_cpu:.0} us of CPU of the worker"
        );
        rows.row(
            &format!("{name}: a turn of {turns} under a worker over a plain one"),
            &measured,
            driven_us / plain_us,
            limit,
        );
    }
}

/// Makes sessions, each with a prompt that waits.
async fn post(journal: &dyn DueWork, logs: Vec<LogId>) {
    for log in logs {
        drop(
            journal
                .own(&log, &Owner::default())
                .await
                .expect("it is free"),
        );
        let content = Entry::from(UserMessage::text("Go."));
        journal
            .post(
                &log,
                Post::Message {
                    lane: Lane::FollowUp,
                    content,
                },
            )
            .await
            .expect("it is posted");
    }
}

/// A worker drives so many runs to their ends.
async fn drive(journal: &Arc<dyn DueWork>, turns: u64, concurrency: usize, runs: usize) {
    let agent = Worker::agent(turns);
    let fleet =
        Fleet::new(Arc::clone(journal), move |_| Ok(agent.clone())).concurrency(concurrency);
    let (stop, status) = (Cancel::new(), fleet.status());
    let worker = tokio::spawn(fleet.run(stop.clone()));
    while status.finish_count() < runs as u64 {
        assert_eq!(status.failure_count(), 0, "every run ends");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    stop.cancel();
    worker.await.expect("no panic").expect("it ends");
}

/// What the database carries: many sessions at once, and what they leave on the disk.
async fn carried(place: &Place, rows: &mut Rows) {
    let Place::Postgres(_) = place else { return };
    let journal = place.open().await;
    post(
        &*journal,
        (0..AT_ONCE)
            .map(|run| LogId::from(format!("carried {run}")))
            .collect(),
    )
    .await;
    let (records, bytes) = (
        "select count(*) from adjutant.records",
        "select sum(pg_total_relation_size('adjutant.' || it))::bigint from unnest(array['logs', 'records', 'folds', 'posts']) as it",
    );
    let before = (place.sql("", records).await, place.sql("", bytes).await);
    let began = Instant::now();
    drive(&journal, TURNS, AT_ONCE, AT_ONCE).await;
    let took = began.elapsed().as_secs_f64();
    let (records, bytes) = (
        place.sql("", records).await - before.0,
        place.sql("", bytes).await - before.1,
    );
    let turns = AT_ONCE as f64 * TURNS as f64;
    let measured = format!(
        "{:.0} turns; {:.0} bytes of disk a turn, {:.1} records",
        turns / took,
        bytes as f64 / turns,
        records as f64 / turns
    );
    rows.figure(
        &format!("postgres: records in a second, {AT_ONCE} sessions at once under a worker"),
        &measured,
        records as f64 / took,
    );
}

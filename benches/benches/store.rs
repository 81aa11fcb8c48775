//! What keeping sessions costs: opening a long one, a turn over a journal, an append early and late in a log, many at once.
//!
//! A store joins by a line in `stores`.

#[path = "store/bytes.rs"]
mod bytes;
#[path = "store/raw.rs"]
mod raw;
#[path = "store/spent.rs"]
mod spent;
#[path = "store/unfolded.rs"]
mod unfolded;
#[path = "store/worker.rs"]
mod worker;

use std::{env, path::Path, process::ExitCode, sync::Arc, time::Duration};

use adjutant_agent::{
    Durability, Flush, Journal, LogId, LogQuery, MemoryJournal, Owner, Seq, Sessions, Stamped,
};
use adjutant_benches::Rows;
use adjutant_store::{JsonlJournal, Postgres, Sqlite};
use adjutant_testing::PostgresServer;
use futures_util::{StreamExt, TryStreamExt, future::join_all, stream};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use bytes::Bytes;
use spent::{Spent, written};
use unfolded::Unfolded;
use worker::Worker;

/// How many turns a long session has, and how many a run of it.
const TURNS: u64 = 10_000;
const RUN: u64 = 100;
/// How long opening it from its fold may take, in milliseconds, for each store.
const OPEN: [(&str, f64); 3] = [("sqlite", 50.0), ("postgres", 80.0), ("json lines", 150.0)];
/// What a turn over SQLite may cost over two commits of the same bytes by hand.
const OVER_RAW: f64 = 1.15;
/// At which turn of a log an append is measured.
const EARLY: u64 = 10;
const LATE: u64 = 10_000;
/// How many sessions go on at once, and how many turns each has.
const AT_ONCE: u64 = 200;
const TURNS_AT_ONCE: u64 = 10;
/// How many appends are measured, and how many sessions are listed.
const APPENDS: usize = 41;
const SESSIONS: usize = 3_000;

/// A journal by its name.
type Store = (&'static str, Arc<dyn Journal>);

/// Everything that keeps sessions; on a disk, in this folder.
fn stores(folder: &Path, runtime: &Runtime, rows: &Rows) -> Vec<Store> {
    let sqlite = Sqlite::open(folder.join("db"))
        .expect("a database")
        .journal();
    let mut stores: Vec<Store> = vec![
        ("memory", Arc::new(MemoryJournal::default())),
        ("bytes", Arc::new(Bytes::keeping(2_000))),
        (
            "json lines",
            Arc::new(JsonlJournal::open(folder.join("jsonl")).expect("a folder")),
        ),
        ("sqlite", Arc::new(sqlite)),
    ];
    match PostgresServer::shared() {
        Ok(server) => {
            let url = server.database().expect("a database");
            let connected = runtime
                .block_on(async { Postgres::connect(url).await })
                .expect("a connection");
            stores.push(("postgres", Arc::new(connected.journal())));
        }
        Err(why) => rows.skipped("stores: postgres", why),
    }
    stores
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
    let wanted: Vec<String> = env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    for store in stores(folder.path(), &runtime, &rows) {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| wanted == store.0) {
            continue;
        }
        opening(&runtime, &store, &mut rows);
        appends(&runtime, &store, &mut rows);
        turns(&runtime, &store, &mut rows);
        at_once(&runtime, &store, &mut rows);
        match store.0 {
            "json lines" => listing(&runtime, folder.path(), &mut rows),
            "sqlite" => raw::compare(&runtime, &store.1, folder.path(), &mut rows),
            _ => {}
        }
    }
    rows.end()
}

/// Opening a session of 10,000 turns, from the fold that is kept beside it and without, and a fork of it.
fn opening(runtime: &Runtime, (name, journal): &Store, rows: &mut Rows) {
    let (log, fork) = (LogId::from("long"), LogId::from("fork"));
    let agent = Worker::agent(RUN)
        .journal(Arc::clone(journal))
        .session(log.clone())
        .durability(Durability::OnExit);
    runtime.block_on(async {
        for _ in 0..TURNS / RUN {
            agent.run("Go on.").await.expect("a run");
        }
    });
    drop(agent);
    let folded = runtime
        .block_on(journal.load_fold(&log))
        .expect("the journal answers");
    let (seq, bytes) = folded.map_or((Seq(0), 0), |folded| (folded.seq, folded.bytes.len()));
    let records = runtime.block_on(head(&**journal, "long"));
    let mut open = |how: &str, journal: &Arc<dyn Journal>, log: &LogId, limit: f64| {
        let open = || {
            let agent = Worker::agent(RUN)
                .journal(Arc::clone(journal))
                .session(log.clone())
                .take_over();
            runtime.block_on(agent.log().open()).expect("the log opens");
        };
        let Spent { time, computed } = Spent::median(11, open);
        let measured = format!(
            "{:.1} ms of CPU, a fold of {seq} records, {bytes} bytes",
            ms(computed)
        );
        rows.row(
            &format!("{name}: open {TURNS} turns ({records} records) {how}, ms"),
            &measured,
            ms(time),
            limit,
        );
    };
    let limit = OPEN
        .iter()
        .find(|(store, _)| store == name)
        .map_or(f64::INFINITY, |it| it.1);
    open("from the fold", journal, &log, limit);
    let whole: Arc<dyn Journal> = Arc::new(Unfolded(Arc::clone(journal)));
    open("read whole", &whole, &log, f64::INFINITY);
    let forked = runtime.block_on(Sessions::new(Arc::clone(journal)).fork(&log, None, &fork));
    if forked.is_ok() {
        open("as a fork", journal, &fork, f64::INFINITY);
    }
}

/// A turn, with each durability.
fn turns(runtime: &Runtime, (name, journal): &Store, rows: &mut Rows) {
    for durability in [Durability::Sync, Durability::Async, Durability::OnExit] {
        let agent = Worker::agent(RUN)
            .journal(Arc::clone(journal))
            .durability(durability);
        let run = || {
            drop(
                runtime
                    .block_on(agent.new_session().run("Go."))
                    .expect("a run"),
            )
        };
        let Spent { time, computed } = Spent::median(5, run);
        let each = |time| ms(time) * 1e3 / RUN as f64;
        let measured = format!("{:.0} us of CPU", each(computed));
        rows.figure(
            &format!("{name}: a turn of {RUN}, {durability:?}, us"),
            &measured,
            each(time),
        );
    }
}

/// An append of the records of a turn, early and late in a log.
fn appends(runtime: &Runtime, (name, journal): &Store, rows: &mut Rows) {
    let records: Vec<Arc<Stamped>> = runtime.block_on(async {
        let read = journal
            .read(&LogId::from("long"), Seq(0))
            .take(4_000)
            .try_collect();
        read.await.expect("the log can be read")
    });
    let turn = usize::try_from(runtime.block_on(head(&**journal, "long")) / TURNS)
        .expect("a turn is small");
    let next = |seq: u64, at: usize| {
        let Stamped {
            at_ms,
            thread,
            record,
            ..
        } = &*records[1_000 + at % turn];
        Arc::new(Stamped::new(
            Seq(seq),
            *at_ms,
            thread.clone(),
            record.clone(),
        ))
    };
    for place in [EARLY, LATE] {
        let id = LogId::from(format!("at {place}"));
        let mut log = runtime
            .block_on(journal.own(&id, &Owner::default()))
            .expect("the log is free");
        let filled = place * turn as u64;
        while log.head().seq.0 < filled {
            let head = log.head().seq.0;
            let batch: Vec<_> = (head + 1..=filled.min(head + 5_000))
                .map(|seq| next(seq, seq as usize))
                .collect();
            runtime
                .block_on(log.append(&batch, Flush::Lazy))
                .expect("there is room");
        }
        for flush in [Flush::Lazy, Flush::Now] {
            let before = written();
            let time = Spent::median(APPENDS, || {
                let head = log.head().seq.0;
                let batch: Vec<_> = (0..turn).map(|at| next(head + 1 + at as u64, at)).collect();
                runtime
                    .block_on(log.append(&batch, flush))
                    .expect("there is room");
            });
            let wrote = before
                .zip(written())
                .map(|(before, after)| (after - before) / APPENDS as u64);
            let measured = wrote.map_or(String::new(), |bytes| format!("{bytes} bytes written"));
            let what =
                format!("{name}: an append of {turn} records at turn {place}, {flush:?}, us");
            rows.figure(&what, &measured, ms(time.time) * 1e3);
        }
    }
}

/// A page of many sessions in files.
fn listing(runtime: &Runtime, folder: &Path, rows: &mut Rows) {
    let journal = JsonlJournal::open(folder.join("many")).expect("a folder");
    // Many at a time: each waits for the disk.
    runtime.block_on(
        stream::iter(0..SESSIONS).for_each_concurrent(64, async |number| {
            drop(
                journal
                    .own(&LogId::from(number.to_string()), &Owner::default())
                    .await
                    .expect("the log is free"),
            );
        }),
    );
    let list = || {
        drop(
            runtime
                .block_on(journal.list(&LogQuery::default()))
                .expect("the folder can be read"),
        )
    };
    let Spent { time, computed } = Spent::median(5, list);
    let measured = format!("{:.1} ms of CPU", ms(computed));
    rows.figure(
        &format!("json lines: a listing of {SESSIONS} sessions, ms"),
        &measured,
        ms(time),
    );
}

/// Many sessions at once.
fn at_once(runtime: &Runtime, (name, journal): &Store, rows: &mut Rows) {
    let sessions = |round: usize| {
        let log = move |number| LogId::from(format!("{round} of {number}"));
        let agents = (0..AT_ONCE).map(move |number| {
            Worker::agent(TURNS_AT_ONCE)
                .journal(Arc::clone(journal))
                .session(log(number))
        });
        agents.collect::<Vec<_>>()
    };
    let mut round = 0;
    let Spent { time, computed } = Spent::median(3, || {
        round += 1;
        let running = sessions(round)
            .into_iter()
            .map(|agent| runtime.spawn(async move { agent.run("Go.").await }));
        let running: Vec<_> = running.collect();
        for ended in runtime.block_on(join_all(running)) {
            ended.expect("no panic").expect("a run");
        }
    });
    let measured = format!("{:.0} ms of CPU", ms(computed));
    rows.figure(
        &format!("{name}: {AT_ONCE} sessions of {TURNS_AT_ONCE} turns at once, ms"),
        &measured,
        ms(time),
    );
    let heads = (0..AT_ONCE).map(|number| async move {
        let name = format!("1 of {number}");
        let seqs: Vec<u64> = journal
            .read(&LogId::from(name), Seq(0))
            .map_ok(|stamped| stamped.seq.0)
            .try_collect()
            .await
            .expect("the log can be read");
        assert!(
            seqs.iter().copied().eq(1..=seqs.len() as u64),
            "records are lost or reordered"
        );
        seqs.len()
    });
    let lengths = runtime.block_on(join_all(heads));
    assert!(
        lengths.iter().all(|length| *length == lengths[0]),
        "records are lost: {lengths:?}"
    );
}

/// The newest record of a log.
async fn head(journal: &dyn Journal, log: &str) -> u64 {
    journal
        .own(
            &LogId::from(log),
            &Owner {
                takes_over: true,
                ..Owner::default()
            },
        )
        .await
        .expect("the log is there")
        .head()
        .seq
        .0
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

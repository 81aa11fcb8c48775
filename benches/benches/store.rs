//! What keeping sessions costs: opening a long one, a turn over a journal, an append early and late in a log, many at once.
//!
//! A store joins by a line in `stores`.
#![expect(clippy::print_stdout, reason = "a benchmark")]

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

use std::{path::Path, process::ExitCode, sync::Arc, time::Duration};

use adjutant_agent::{Durability, Flush, Journal, LogId, MemoryJournal, Owner, Seq, Stamped};
use adjutant_benches::Rows;
use adjutant_store::{JsonlJournal, Postgres, Sqlite};
use adjutant_testing::PostgresServer;
use criterion::Criterion;
use futures_util::{StreamExt, TryStreamExt, future::join_all};
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

/// A journal by its name.
type Store = (&'static str, Arc<dyn Journal>);

/// Everything that keeps sessions; on a disk, in this folder.
fn stores(folder: &Path, runtime: &Runtime) -> Vec<Store> {
    let sqlite = Sqlite::open(folder.join("db")).expect("a database").journal();
    let mut stores: Vec<Store> = vec![
        ("memory", Arc::new(MemoryJournal::default())),
        ("bytes", Arc::new(Bytes::keeping(2_000))),
        ("json lines", Arc::new(JsonlJournal::open(folder.join("jsonl")).expect("a folder"))),
        ("sqlite", Arc::new(sqlite)),
    ];
    match PostgresServer::shared() {
        Ok(server) => {
            let url = server.database().expect("a database");
            let connected = runtime.block_on(async { Postgres::connect(url).await }).expect("a connection");
            stores.push(("postgres", Arc::new(connected.journal())));
        }
        Err(why) => println!("postgres: skipped: {why}"),
    }
    stores
}

fn main() -> ExitCode {
    let mut rows = Rows::default();
    let (warm_up, measurement) = (Duration::from_millis(500), Duration::from_secs(2));
    let criterion = Criterion::default().sample_size(10).warm_up_time(warm_up).measurement_time(measurement);
    let mut criterion = criterion.configure_from_args();
    // Beside what is built: temporary files of the system may be in memory.
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    for store in stores(folder.path(), &runtime) {
        opening(&mut criterion, &runtime, &store, &mut rows);
        appends(&mut criterion, &runtime, &store);
        turns(&mut criterion, &runtime, &store);
        at_once(&runtime, &store);
        if store.0 == "sqlite" {
            raw::compare(&runtime, &store.1, folder.path(), &mut rows);
        }
    }
    criterion.final_summary();
    rows.end()
}

/// Opening a session of 10,000 turns, from the fold that is kept beside it and without.
fn opening(criterion: &mut Criterion, runtime: &Runtime, (name, journal): &Store, rows: &mut Rows) {
    let mut group = criterion.benchmark_group("open 10,000 turns");
    let log = LogId::from("long");
    let agent = Worker::agent(RUN).journal(Arc::clone(journal)).session(log.clone());
    runtime.block_on(async {
        for _ in 0..TURNS / RUN {
            agent.run("Go on.").await.expect("a run");
        }
    });
    drop(agent);
    let folded = runtime.block_on(journal.folded(&log)).expect("the journal answers");
    let (seq, bytes) = folded.map_or((Seq(0), 0), |folded| (folded.seq, folded.bytes.len()));
    println!("{name}: a fold of {seq} records has {bytes} bytes");
    let whole: Arc<dyn Journal> = Arc::new(Unfolded(Arc::clone(journal)));
    for (how, journal) in [("from its fold", journal), ("read whole", &whole)] {
        let open = || {
            let agent = Worker::agent(RUN).journal(Arc::clone(journal)).session(log.clone()).take_over();
            runtime.block_on(agent.log().open()).expect("the log opens");
            agent
        };
        let (Spent { time, computed }, best) = (Spent::median(11, || drop(open())), Spent::best(11, || drop(open())));
        let limit =
            OPEN.iter().find(|(store, _)| store == name && how == "from its fold").map_or(f64::INFINITY, |it| it.1);
        let measured = format!("{computed:?} of computing, at best {best:?}");
        rows.row(&format!("{name}: open {TURNS} turns {how}, ms"), &measured, time.as_secs_f64() * 1e3, limit);
        group.bench_function(format!("{name}, {how}"), |bencher| bencher.iter_with_large_drop(open));
    }
    group.finish();
}

/// A turn, with each durability.
fn turns(criterion: &mut Criterion, runtime: &Runtime, (name, journal): &Store) {
    let mut group = criterion.benchmark_group("a run of 100 turns");
    for durability in [Durability::Sync, Durability::Async, Durability::OnExit] {
        let agent = Worker::agent(RUN).journal(Arc::clone(journal)).durability(durability);
        let run = || drop(runtime.block_on(agent.new_session().run("Go.")).expect("a run"));
        let Spent { time, computed } = Spent::median(5, run);
        println!("{name}, {durability:?}: {RUN} turns took {time:?}, {computed:?} of computing");
        group.bench_function(format!("{name}, {durability:?}"), |bencher| bencher.iter(run));
    }
    group.finish();
}

/// An append of the records of a turn, early and late in a log.
fn appends(criterion: &mut Criterion, runtime: &Runtime, (name, journal): &Store) {
    let mut group = criterion.benchmark_group("append a turn");
    let records: Vec<Arc<Stamped>> = runtime.block_on(async {
        let read = journal.read(&LogId::from("long"), Seq(0)).take(4_000).try_collect();
        read.await.expect("the log can be read")
    });
    let turn = usize::try_from(runtime.block_on(head(&**journal, "long")) / TURNS).expect("a turn is small");
    let (from, bytes) = (1_000, records[1_000..1_000 + turn].iter().map(|it| it.bytes().expect("JSON").len()));
    println!("{name}: a turn has {turn} records of {} bytes", bytes.sum::<usize>());
    let next = |seq: u64, at: usize| {
        let Stamped { at_ms, thread, record, .. } = &*records[from + at % turn];
        Arc::new(Stamped::new(Seq(seq), *at_ms, thread.clone(), record.clone()))
    };
    for place in [EARLY, LATE] {
        let id = LogId::from(format!("at {place}"));
        let mut log = runtime.block_on(journal.own(&id, &Owner::default())).expect("the log is free");
        let filled = place * turn as u64;
        while log.head().seq.0 < filled {
            let head = log.head().seq.0;
            let batch: Vec<_> = (head + 1..=filled.min(head + 5_000)).map(|seq| next(seq, seq as usize)).collect();
            runtime.block_on(log.append(&batch, Flush::Lazy)).expect("there is room");
        }
        for flush in [Flush::Lazy, Flush::Now] {
            let (mut appends, before) = (0, written());
            group.bench_function(format!("{name}, {flush:?}, at turn {place}"), |bencher| {
                bencher.iter(|| {
                    let head = log.head().seq.0;
                    let batch: Vec<_> = (0..turn).map(|at| next(head + 1 + at as u64, at)).collect();
                    appends += 1;
                    runtime.block_on(log.append(&batch, flush)).expect("there is room")
                });
            });
            if let (Some(before), Some(after)) = (before, written()) {
                let each = (after - before) / u64::max(appends, 1);
                println!("{name}, {flush:?}, at turn {place}: {each} bytes written for an append");
            }
        }
    }
    group.finish();
}

/// Many sessions at once.
fn at_once(runtime: &Runtime, (name, journal): &Store) {
    let sessions = |round: usize| {
        let log = move |number| LogId::from(format!("{round} of {number}"));
        let agents = (0..AT_ONCE)
            .map(move |number| Worker::agent(TURNS_AT_ONCE).journal(Arc::clone(journal)).session(log(number)));
        agents.collect::<Vec<_>>()
    };
    let mut round = 0;
    let Spent { time, computed } = Spent::median(3, || {
        round += 1;
        let running = sessions(round).into_iter().map(|agent| runtime.spawn(async move { agent.run("Go.").await }));
        let running: Vec<_> = running.collect();
        for ended in runtime.block_on(join_all(running)) {
            ended.expect("no panic").expect("a run");
        }
    });
    println!("{name}: {AT_ONCE} sessions of {TURNS_AT_ONCE} turns at once took {time:?}, {computed:?} of computing");
    let heads = (0..AT_ONCE).map(|number| async move {
        let name = format!("1 of {number}");
        let seqs: Vec<u64> = journal
            .read(&LogId::from(name), Seq(0))
            .map_ok(|stamped| stamped.seq.0)
            .try_collect()
            .await
            .expect("the log can be read");
        assert!(seqs.iter().copied().eq(1..=seqs.len() as u64), "records are lost or reordered");
        seqs.len()
    });
    let lengths = runtime.block_on(join_all(heads));
    assert!(lengths.iter().all(|length| *length == lengths[0]), "records are lost: {lengths:?}");
}

/// The newest record of a log.
async fn head(journal: &dyn Journal, log: &str) -> u64 {
    journal
        .own(&LogId::from(log), &Owner { takes_over: true, ..Owner::default() })
        .await
        .expect("the log is there")
        .head()
        .seq
        .0
}

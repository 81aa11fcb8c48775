//! What keeping sessions costs: opening a long one, a turn over a journal, an append early and late in a log.
//!
//! A store joins by a line in `stores`.
#![expect(clippy::print_stdout, reason = "a benchmark")]

#[path = "store/bytes.rs"]
mod bytes;
#[path = "store/shared.rs"]
mod shared;
#[path = "store/worker.rs"]
mod worker;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use adjutant_agent::{Durability, Flush, Journal, LogId, MemoryJournal, Owner, Record, Seq, Stamped};
use criterion::Criterion;
use futures_util::StreamExt;
use tokio::runtime::{Builder, Runtime};

use bytes::Bytes;
use shared::Shared;
use worker::Worker;

/// How many turns a long session has, and how many a run of it.
const TURNS: u64 = 10_000;
const RUN: u64 = 100;
/// How long opening it may take.
const OPEN: Duration = Duration::from_millis(150);
/// Where in a log an append is measured.
const EARLY: u64 = 100;
const LATE: u64 = 100_000;

/// A journal by its name.
type Store = (&'static str, Shared);

/// Everything that keeps sessions.
fn stores() -> Vec<Store> {
    vec![
        ("memory", Shared::new(MemoryJournal::new())),
        ("bytes", Shared::new(Bytes::default())),
        ("bytes and a fold", Shared::new(Bytes::keeping(2_000))),
    ]
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args().sample_size(10);
    opening(&mut criterion);
    turns(&mut criterion);
    appends(&mut criterion);
    criterion.final_summary();
}

/// Opening a session of 10,000 turns.
fn opening(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("open 10,000 turns");
    for (name, journal) in stores() {
        let (runtime, log) = (runtime(), LogId::from("long"));
        let agent = Worker::agent(RUN).journal(journal.clone()).session(log.clone());
        runtime.block_on(async {
            for _ in 0..TURNS / RUN {
                agent.run("Go on.").await.expect("a run");
            }
        });
        drop(agent);
        let open = || {
            let agent = Worker::agent(RUN).journal(journal.clone()).session(log.clone()).take_over();
            runtime.block_on(agent.open()).expect("the log opens");
            agent
        };
        let began = Instant::now();
        drop(open());
        println!("{name}: opened in {:?} (limit {OPEN:?})", began.elapsed());
        group.bench_function(name, |bencher| bencher.iter_with_large_drop(open));
    }
    group.finish();
}

/// A turn, with each durability.
fn turns(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a run of 100 turns");
    for (name, journal) in stores() {
        let runtime = runtime();
        for durability in [Durability::Sync, Durability::Async, Durability::OnExit] {
            let agent = Worker::agent(RUN).journal(journal.clone()).durability(durability);
            group.bench_function(format!("{name}, {durability:?}"), |bencher| {
                bencher.iter(|| runtime.block_on(agent.new_session().run("Go.")).expect("a run"));
            });
        }
    }
    group.finish();
}

/// An append of one record, early and late in a log.
fn appends(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("append");
    for (name, journal) in stores() {
        let runtime = runtime();
        for place in [EARLY, LATE] {
            let id = LogId::from(format!("at {place}"));
            let mut log = runtime.block_on(journal.own(&id, &Owner::new())).expect("the log is free");
            let batch: Vec<_> = (1..=place).map(record).collect();
            runtime.block_on(log.append(&batch, Flush::Lazy)).expect("there is room");
            for flush in [Flush::Lazy, Flush::Now] {
                group.bench_function(format!("{name}, {flush:?}, at {place}"), |bencher| {
                    bencher.iter(|| {
                        let next = [record(log.head().seq.0 + 1)];
                        runtime.block_on(log.append(&next, flush)).expect("there is room")
                    });
                });
            }
        }
        let read = runtime.block_on(journal.read(&LogId::from("at 100"), Seq(0)).count());
        assert!(read as u64 > EARLY, "records were lost");
    }
    group.finish();
}

fn record(seq: u64) -> Arc<Stamped> {
    let record = Record::Noted {
        call: adjutant_llm::CallId { turn: 1, attempt: 0, block: 0 },
        key: "note".into(),
        value: "What was found stands here. ".repeat(20).into(),
    };
    Arc::new(Stamped::new(Seq(seq), 1_000, "main".into(), record))
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

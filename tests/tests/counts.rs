//! What a turn, a delta and a waiting agent cost, in counts that cannot flicker: one more of anything fails here.
//!
//! Each is the difference of a long and a short run, divided: what is done once in a run does not count. Debug builds and
//! one thread; `cargo xtask bench` measures time.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use adjutant::{
    Agent,
    agent::{
        Flush, Head, Journal, JournalError, Limits, Log, LogId, MemoryJournal, Owner, RecordStream,
        Seq, Setup, Stamped,
    },
    llm::{Gate, Script, ScriptedModel},
    tool,
};
use allocation_counter::{AllocationInfo, measure};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

/// Fetches a page.
#[tool(replay = "pure")]
fn fetch(
    /// The number of the page.
    n: u64,
) -> String {
    format!("page {n}")
}

/// A journal in memory that counts what is appended.
#[derive(Debug, Clone, Default)]
struct Counting {
    inner: MemoryJournal,
    batches: Arc<AtomicUsize>,
    records: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct CountingLog {
    inner: Box<dyn Log>,
    counts: Counting,
}

#[async_trait::async_trait]
impl Journal for Counting {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        Ok(Box::new(CountingLog {
            inner: self.inner.own(log, owner).await?,
            counts: self.clone(),
        }))
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        self.inner.read(log, after)
    }
}

#[async_trait::async_trait]
impl Log for CountingLog {
    fn head(&self) -> Head {
        self.inner.head()
    }

    async fn append(&mut self, batch: &[Arc<Stamped>], flush: Flush) -> Result<Head, JournalError> {
        self.counts.batches.fetch_add(1, Ordering::Relaxed);
        self.counts
            .records
            .fetch_add(batch.len(), Ordering::Relaxed);
        self.inner.append(batch, flush).await
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// A run of so many turns, each but the last with one call.
fn looping(turns: u64) -> Agent {
    // All numbers have one length, so that texts are equally long.
    let scripts = (1..turns).map(|n| Script::new().call("fetch", json!({"n": 1_000 + n})));
    let model = ScriptedModel::new(scripts.chain([Script::new().text("Done.")]));
    Agent::new(model).tool(fetch).limits(Limits {
        max_turns: None,
        ..Limits::default()
    })
}

/// A rate for one of something, from a short and a long measurement.
#[track_caller]
fn check(what: &str, (short, long): (u64, u64), more: u64, limit: f64) {
    let each = (long - short) as f64 / more as f64;
    assert!(each <= limit, "{what}: {each:.2} (limit {limit})");
    assert!(
        each > limit * 0.9 - 1.0,
        "{what}: {each:.2}; the limit of {limit} can fall"
    );
}

fn both(of: impl Fn(u64) -> AllocationInfo, (short, long): (u64, u64)) -> [(u64, u64); 2] {
    // What is made once in a program is made here.
    of(short);
    let (short, long) = (of(short), of(long));
    [
        (short.count_total, long.count_total),
        (short.bytes_total, long.bytes_total),
    ]
}

#[test]
fn turn_allocates_no_more_than_it_did() {
    let run = |turns| {
        let (agent, runtime) = (looping(turns), runtime());
        measure(|| drop(runtime.block_on(agent.run("Go.")).expect("it runs")))
    };
    let [count, bytes] = both(run, (50, 250));
    check("allocations of a turn", count, 200, 45.5);
    check("bytes of a turn", bytes, 200, 10_650.0);
}

#[test]
fn delta_allocates_no_more_than_it_did() {
    let run = |deltas: u64| {
        let script = Script::new()
            .text("x".repeat(deltas as usize))
            .delta_chars(1);
        let (agent, runtime) = (Agent::new(ScriptedModel::new([script])), runtime());
        measure(|| {
            runtime.block_on(async {
                let mut running = agent.run("Go.").stream().expect("it runs");
                while running.next().await.is_some() {}
            });
        })
    };
    let [count, bytes] = both(run, (1_000, 11_000));
    check("allocations of a delta", count, 10_000, 1.05);
    check("bytes of a delta", bytes, 10_000, 281.0);
}

#[test]
fn waiting_agent_holds_no_more_than_it_did() {
    let runtime = runtime();
    let hold = |agents: u64| {
        let models: Vec<_> = (0..agents)
            .map(|_| {
                let gate = Gate::default();
                (
                    Arc::new(ScriptedModel::new([Script::new()
                        .text("Hi.")
                        .wait_at(0, &gate)])),
                    gate,
                )
            })
            .collect();
        let mut held = Vec::with_capacity(agents as usize);
        let info = measure(|| {
            runtime.block_on(async {
                for (model, gate) in &models {
                    let agent = Agent::new(Arc::clone(model)).tool(fetch);
                    let mut running = agent.run("Go.").stream().expect("it runs");
                    tokio::select! {
                        biased;
                        () = gate.wait_until_reached() => {}
                        () = async { while running.next().await.is_some() {} } => {}
                    }
                    held.push(running);
                }
            });
        });
        drop(held);
        info
    };
    hold(10);
    let (few, many) = (hold(10), hold(110));
    check(
        "live blocks of a waiting agent",
        (few.count_current as u64, many.count_current as u64),
        100,
        96.5,
    );
    check(
        "live bytes of a waiting agent",
        (few.bytes_current as u64, many.bytes_current as u64),
        100,
        18_900.0,
    );
}

#[test]
fn turn_writes_and_wakes_no_more_than_it_did() {
    let run = |turns| {
        let journal = Counting::default();
        let agent = looping(turns).journal(journal.clone());
        let mut polls = 0_u64;
        runtime().block_on(async {
            let mut run = pin!(std::future::IntoFuture::into_future(agent.run("Go.")));
            std::future::poll_fn(|cx| {
                polls += 1;
                run.as_mut().poll(cx)
            })
            .await
            .expect("it runs");
        });
        [
            journal.records.load(Ordering::Relaxed) as u64,
            journal.batches.load(Ordering::Relaxed) as u64,
            polls,
        ]
    };
    let (short, long) = (run(50), run(250));
    for ((what, limit), (short, long)) in [("records", 7.0), ("batches", 2.0), ("polls", 0.1)]
        .into_iter()
        .zip(short.into_iter().zip(long))
    {
        check(&format!("{what} of a turn"), (short, long), 200, limit);
    }
}

#[test]
fn sizes_are_no_larger_than_they_were() {
    let agent = Agent::new(ScriptedModel::new([Script::new().text("Hi.")]));
    let future = std::future::IntoFuture::into_future(agent.run("Go."));
    for (what, size, limit) in [
        ("the future of a run", std::mem::size_of_val(&future), 368),
        ("a record with its stamp", size_of::<Stamped>(), 328),
        ("an agent", size_of::<Agent>(), 168),
        ("what an agent is made of", size_of::<Setup>(), 528),
    ] {
        assert!(size <= limit, "{what}: {size} bytes (limit {limit})");
    }
}

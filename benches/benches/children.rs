//! What an agent that is given a task costs beside its own turns, and how much memory each takes while all of them wait.
//!
//! A lead that delegates to many at once, against the same agents run by hand; time on one thread, memory in processes of their own.
//! The same in one log against separate logs, for each journal; the tools of a fan-out and of background tasks. With names
//! of parts (`time`, `logs`, `memory`, `fan_out`), only those are measured.
#![expect(clippy::print_stdout, reason = "a benchmark")]

#[path = "children/crew.rs"]
mod crew;
#[path = "children/fan_out.rs"]
mod fan_out;
#[path = "store/spent.rs"]
#[expect(dead_code, reason = "several targets share it, each uses its part")]
mod spent;

use std::{
    env, fs,
    process::{Command, ExitCode},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use adjutant_agent::{Journal, MemoryJournal};
use adjutant_benches::Rows;
use adjutant_llm::Gate;
use adjutant_store::{Postgres, Sqlite};
use adjutant_testing::PostgresServer;
use crew::{Crew, Journals, Waits};
use spent::Spent;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// How many agents are given a task at once.
const CHILDREN: usize = 100;
/// What one of a single turn may cost beside it, in microseconds.
const LIMIT: f64 = 25.0;
/// How many agents write to one log, how many turns each has, and what that may cost over separate logs.
const TOGETHER: usize = 50;
const LONG: u64 = 4;
const OVER_LOGS: f64 = 1.5;
/// How many turns each has.
const TURNS: [u64; 2] = [1, 4];
/// How often everything is measured, in turns; what others do at the same time counts least in the best.
const ROUNDS: usize = 60;
/// How many agents one lead has while memory is measured, and how many wait in all.
const SIZES: [usize; 3] = [10, 100, 1_000];
const WAITING: usize = 1_000;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    if let [child, size] = &args[..]
        && child == "waiting"
    {
        waiting(size.parse().expect("a number"));
        return ExitCode::SUCCESS;
    }
    let mut rows = Rows::default();
    let wanted = |part: &str| {
        args.iter().all(|arg| arg.starts_with('-')) || args.iter().any(|arg| arg == part)
    };
    if wanted("time") {
        TURNS
            .into_iter()
            .for_each(|turns| time(turns, ROUNDS, &mut rows));
    }
    if wanted("logs") {
        logs(ROUNDS / 4, &mut rows);
    }
    if wanted("memory") {
        memory(&mut rows);
    }
    if wanted("fan_out") {
        fan_out::measure(&mut rows);
    }
    rows.end()
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Measures a lead and the hand in turns, so that both have the same weather.
fn time(turns: u64, rounds: usize, rows: &mut Rows) {
    let runtime = runtime();
    let crew = Crew::new(turns, Waits::Never);
    let (mut lead, mut hand, mut idle) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        lead.push(Spent::best(1, || runtime.block_on(crew.delegated(CHILDREN, CHILDREN))).computed);
        hand.push(Spent::best(1, || runtime.block_on(crew.by_hand(CHILDREN))).computed);
        idle.push(Spent::best(1, || runtime.block_on(crew.delegated(0, CHILDREN))).computed);
    }
    let [(lead, least), (hand, by_hand), (idle, without)] = [lead, hand, idle].map(median);
    let over = |lead: f64, hand: f64, idle: f64| (lead - idle - hand) / CHILDREN as f64;
    let measured = format!(
        "by hand {:.1}, at best {:.1} over it",
        hand / CHILDREN as f64,
        over(least, by_hand, without)
    );
    let limit = if turns == 1 { LIMIT } else { f64::INFINITY };
    rows.row(
        &format!("a delegated child, turns: {turns}, us over the hand"),
        &measured,
        over(lead, hand, idle),
        limit,
    );
}

/// Measures agents whose records share one log, and the same agents with a log each, for each journal.
fn logs(rounds: usize, rows: &mut Rows) {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    // Beside what is built: temporary files of the system may be in memory.
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let sqlite: Arc<dyn Journal> = Arc::new(
        Sqlite::open(folder.path().join("db"))
            .expect("a database")
            .journal(),
    );
    let mut journals: Vec<(&str, Journals)> = vec![
        ("memory", Box::new(|| Arc::new(MemoryJournal::default()))),
        ("sqlite", Box::new(move || Arc::clone(&sqlite))),
    ];
    match PostgresServer::shared() {
        Ok(server) => {
            let url = server.database().expect("a database");
            let postgres = runtime
                .block_on(async { Postgres::connect(url).await })
                .expect("a connection");
            let journal: Arc<dyn Journal> = Arc::new(postgres.journal());
            journals.push(("postgres", Box::new(move || Arc::clone(&journal))));
        }
        Err(why) => rows.skipped("children in one log, postgres", why),
    }
    for (name, journals) in journals {
        let crew = Crew::new(LONG, Waits::Never).kept_by(journals);
        let (mut one, mut each) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            one.push(
                Spent::best(1, || runtime.block_on(crew.delegated(TOGETHER, TOGETHER))).computed,
            );
            each.push(Spent::best(1, || runtime.block_on(crew.by_hand(TOGETHER))).computed);
        }
        let [(one, _), (each, _)] = [one, each].map(median);
        let measured = format!("{:.1} and {:.1} ms of CPU", one / 1e3, each / 1e3);
        let what =
            format!("{TOGETHER} children of {LONG} turns in one log over separate logs, {name}");
        rows.row(&what, &measured, one / each, OVER_LOGS);
    }
}

/// The median and the least, in microseconds.
fn median(mut all: Vec<Duration>) -> (f64, f64) {
    all.sort();
    (us(all[all.len() / 2]), us(all[0]))
}

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// For each size of a crew, what each agent of it takes while all of them wait for their models.
fn memory(rows: &mut Rows) {
    for size in SIZES {
        let program = env::current_exe().expect("this program has a path");
        let told = Command::new(program)
            .args(["waiting", &size.to_string()])
            .output()
            .expect("a child starts");
        let each: f64 = String::from_utf8_lossy(&told.stdout)
            .trim()
            .parse()
            .expect("a number");
        rows.figure(
            &format!("KB of one of {WAITING} waiting agents, {size} under a lead"),
            "",
            each / 1_024.0,
        );
    }
}

/// Leads with so many agents each, as many in all as for every other size.
fn waiting(size: usize) {
    let runtime = runtime();
    runtime.block_on(async {
        Crew::new(1, Waits::Never)
            .delegated(CHILDREN, CHILDREN)
            .await;
        let (asked, gate) = (Arc::new(AtomicUsize::new(0)), Gate::default());
        let crew = Arc::new(Crew::new(1, Waits::At(Arc::clone(&asked), gate.clone())));
        let before = resident();
        let leads: Vec<_> = (0..WAITING / size)
            .map(|_| {
                let crew = Arc::clone(&crew);
                tokio::spawn(async move { crew.delegated(size, CHILDREN).await })
            })
            .collect();
        while asked.load(Ordering::SeqCst) < WAITING {
            tokio::task::yield_now().await;
        }
        let each = resident().saturating_sub(before) / WAITING;
        println!("{each}");
        gate.open();
        for lead in leads {
            lead.await.expect("a lead ends");
        }
    });
}

/// How many bytes of memory this program has.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("a Linux machine");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("the resident memory is told");
    let kilobytes: usize = line
        .trim()
        .trim_end_matches(" kB")
        .trim()
        .parse()
        .expect("a number");
    kilobytes * 1_024
}

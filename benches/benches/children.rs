//! What an agent that is given a task costs beside its own turns, and how much memory each takes while all of them wait.
//!
//! A lead that delegates to many at once, against the same agents run by hand; time on one thread, memory in processes of their own.
//! With names of parts (`time`, `memory`), only those are measured; with `--test`, few times.
#![expect(clippy::print_stdout, reason = "a benchmark")]

#[path = "children/crew.rs"]
mod crew;
#[path = "store/spent.rs"]
#[expect(dead_code, reason = "several targets share it, each uses its part")]
mod spent;

use std::{
    env, fs,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use adjutant_llm::Gate;
use crew::{Crew, Waits};
use spent::Spent;
use tokio::runtime::{Builder, Runtime};

/// How many agents are given a task at once.
const CHILDREN: usize = 100;
/// What one may cost beside its turns.
const LIMIT: Duration = Duration::from_micros(50);
/// How many turns each has.
const TURNS: [u64; 2] = [1, 4];
/// How often everything is measured, in turns; what others do at the same time counts least in the best.
const ROUNDS: usize = 60;
/// How many agents one lead has while memory is measured, and how many wait in all.
const SIZES: [usize; 3] = [10, 100, 1_000];
const WAITING: usize = 1_000;

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    if let [child, size] = &args[..]
        && child == "waiting"
    {
        return waiting(size.parse().expect("a number"));
    }
    let wanted = |part: &str| args.iter().all(|arg| arg.starts_with('-')) || args.iter().any(|arg| arg == part);
    let rounds = if args.iter().any(|arg| arg == "--test") { 2 } else { ROUNDS };
    if wanted("time") {
        TURNS.into_iter().for_each(|turns| time(turns, rounds));
    }
    if wanted("memory") {
        memory();
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Measures a lead and the hand in turns, so that both have the same weather.
fn time(turns: u64, rounds: usize) {
    let runtime = runtime();
    let crew = Crew::new(turns, Waits::Never);
    let (mut lead, mut hand, mut idle) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        lead.push(Spent::best(1, || runtime.block_on(crew.delegated(CHILDREN, CHILDREN))).computed);
        hand.push(Spent::best(1, || runtime.block_on(crew.by_hand(CHILDREN))).computed);
        idle.push(Spent::best(1, || runtime.block_on(crew.delegated(0, CHILDREN))).computed);
    }
    let [lead, hand, idle] = [lead, hand, idle].map(|mut all| {
        all.sort();
        (all[0], all[all.len() / 2])
    });
    for (name, of) in [("best", 0), ("median", 1)] {
        let figure = |pair: (Duration, Duration)| if of == 0 { pair.0 } else { pair.1 };
        let (lead, hand, idle) = (figure(lead), figure(hand), figure(idle));
        let over = lead.saturating_sub(idle).saturating_sub(hand) / CHILDREN as u32;
        println!(
            "{CHILDREN} agents of {turns} turns, {name} of {rounds}: by hand {:.1} us each, delegated {:.1} us each, over the \
             hand {:.1} us each (limit {}), ratio {:.2}",
            us(hand) / CHILDREN as f64,
            us(lead.saturating_sub(idle)) / CHILDREN as f64,
            us(over),
            LIMIT.as_micros(),
            us(lead) / us(hand),
        );
    }
}

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// For each size of a crew, what each agent of it takes while all of them wait for their models.
fn memory() {
    for size in SIZES {
        let program = env::current_exe().expect("this program has a path");
        let told = Command::new(program).args(["waiting", &size.to_string()]).output().expect("a child starts");
        print!("{}", String::from_utf8_lossy(&told.stdout));
    }
}

/// Leads with so many agents each, as many in all as for every other size.
fn waiting(size: usize) {
    let runtime = runtime();
    runtime.block_on(async {
        Crew::new(1, Waits::Never).delegated(CHILDREN, CHILDREN).await;
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
        println!("{size} agents under a lead, all waiting: {each} bytes each");
        gate.open();
        for lead in leads {
            lead.await.expect("a lead ends");
        }
    });
}

/// How many bytes of memory this program has.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("a Linux machine");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the resident memory is told");
    let kilobytes: usize = line.trim().trim_end_matches(" kB").trim().parse().expect("a number");
    kilobytes * 1_024
}

//! Many machines over one storage, simulated in virtual time: the workers are those of programs, all else is made up.
//!
//! `SIMULATIONS=N` plays so many more seeds, with thousands of machines: `cargo xtask crash --fleet` does.

#[path = "simulation/drill.rs"]
mod drill;
#[path = "simulation/machine.rs"]
mod machine;
#[path = "simulation/place.rs"]
mod place;
#[path = "simulation/server.rs"]
mod server;

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use adjutant_agent::{DueWork, Log};
use adjutant_testing::due_suite;
use async_trait::async_trait;

use drill::Drill;
use machine::Machine;
use place::Place;
use server::Server;

/// A storage whose calls take time, and none of whose faults happen.
struct Lab(Arc<Server>);

impl Lab {
    fn new() -> Self {
        let place = Place::new(1);
        place.has_faults.store(false, Ordering::Relaxed);
        Self(Server::new(&place, Duration::from_secs(30)))
    }
}

#[async_trait]
impl due_suite::DueLab for Lab {
    async fn open(&self) -> Arc<dyn DueWork> {
        Arc::new(Machine::new(&self.0, 0, 0, Duration::from_secs(10)))
    }

    async fn crash(&self, log: Box<dyn Log>) {
        // Nobody gives it up, and its lease ends.
        std::mem::forget(log);
        self.0.end_all().await;
    }
}

mod due {
    adjutant_testing::due_suite!(super::Lab::new());
}

#[track_caller]
fn play(drill: Drill) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let began = Instant::now();
    let survived = runtime.expect("a runtime").block_on(drill.play());
    eprintln!("{drill:?}: {survived:?}, {:.1} s", began.elapsed().as_secs_f64());
    assert!(survived.is_ok(), "seed {}: {survived:?}", drill.seed);
}

#[test]
fn nothing_is_forgotten_or_done_twice_when_machines_are_slow_cut_off_and_killed() {
    let few = |seed| Drill { seed, machines: 12, sessions: 30, faults: Duration::from_secs(60) };
    (1..=4).for_each(|seed| play(few(seed)));
    play(Drill { seed: 5, machines: 1_000, sessions: 100, faults: Duration::from_secs(20) });
    let more: u64 = std::env::var("SIMULATIONS").ok().and_then(|number| number.parse().ok()).unwrap_or(0);
    for seed in 100..100 + more {
        play(few(seed));
        if seed % 20 == 0 {
            play(Drill { seed, machines: 3_000, sessions: 600, faults: Duration::from_secs(60) });
        }
    }
}

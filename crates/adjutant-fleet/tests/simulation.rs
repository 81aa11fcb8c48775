//! Many machines over one storage, simulated in virtual time: the workers are those of programs, all else is made up.
//!
//! `SIMULATIONS=N` plays so many seeds more, one in twenty with thousands of machines: `cargo xtask crash --fleet` does.

#[path = "simulation/drill.rs"]
mod drill;
#[path = "simulation/machine.rs"]
mod machine;
#[path = "simulation/place.rs"]
mod place;
#[path = "simulation/server.rs"]
mod server;

use std::{
    io::Write,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use adjutant_agent::{DueWork, Log};
use adjutant_testing::due_suite;
use async_trait::async_trait;

use drill::{Drill, Survived};
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

    async fn pass(&self, time: Duration) {
        let time = u64::try_from(time.as_millis()).expect("a short time");
        self.0.place.leapt_ms.fetch_add(time, Ordering::Relaxed);
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
fn play(drill: Drill) -> Survived {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let began = Instant::now();
    let survived = runtime.expect("a runtime").block_on(drill.play());
    let took = began.elapsed().as_secs_f64();
    // Not by a macro, whose output a test that passes does not show.
    drop(writeln!(
        std::io::stderr(),
        "{drill:?}: {survived:?}, {took:.1} s"
    ));
    assert_eq!(survived.as_ref().err(), None, "{drill:?}");
    survived.unwrap_or_default()
}

#[test]
fn nothing_is_forgotten_or_done_twice_when_machines_are_slow_cut_off_and_killed() {
    let few = |seed| Drill {
        seed,
        machines: 12,
        sessions: 30,
        faults: Duration::from_secs(60),
    };
    let fenced: u64 = (1..=3).map(|seed| play(few(seed)).fenced).sum();
    assert!(fenced > 0, "somebody was taken over");
    play(Drill {
        seed: 4,
        machines: 1_000,
        sessions: 100,
        faults: Duration::from_secs(15),
    });
    let more: u64 = std::env::var("SIMULATIONS")
        .ok()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0);
    for seed in 100..100 + more {
        play(few(seed));
        if seed % 20 == 0 {
            play(Drill {
                seed,
                machines: 3_000,
                sessions: 600,
                faults: Duration::from_secs(60),
            });
        }
    }
}

//! What watching costs: 10,000 transitions of one agent, seen by 1,000 who watch. Every one of them must see the last.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use adjutant_benches::Rows;
use adjutant_runtime::{Reason, Status, StatusTracker};
use tokio::{
    runtime::Builder,
    time::{MissedTickBehavior, interval},
};

/// How many watch.
const WATCHES: usize = 1_000;
/// How many transitions there are.
const TRANSITIONS: usize = 10_000;

fn main() -> ExitCode {
    let mut rows = Rows::default();
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    for (how, per_ms) in [("at once", None), ("10 a ms", Some(10))] {
        let took = runtime
            .block_on(told(WATCHES, TRANSITIONS, per_ms))
            .as_secs_f64()
            * 1e3;
        rows.figure(
            &format!("{TRANSITIONS} transitions seen by {WATCHES} watches, {how}, ms"),
            "",
            took,
        );
    }
    rows.end()
}

/// How long it takes until everybody has seen the last status; so many transitions a millisecond, or as fast as it goes.
async fn told(watches: usize, transitions: usize, per_ms: Option<usize>) -> Duration {
    let tracker = StatusTracker::new(Status::Ready);
    let last = Status::failed(Reason::Crashed, "the end");
    let waiting: Vec<_> = (0..watches)
        .map(|_| {
            let mut watch = tracker.subscribe();
            tokio::spawn(async move {
                let mut seen = watch.current();
                while let Some(status) = watch.changed().await {
                    seen = status;
                }
                seen
            })
        })
        .collect();
    let begun = Instant::now();
    let mut beat = interval(Duration::from_millis(1));
    beat.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for number in 0..transitions {
        if per_ms.is_some_and(|per_ms| number % per_ms == 0) {
            beat.tick().await;
        }
        let next = if number % 2 == 0 {
            Status::Working
        } else {
            Status::Ready
        };
        tracker.set(next).expect("the table allows it");
    }
    tracker.set(last.clone()).expect("the table allows it");
    drop(tracker);
    for watch in waiting {
        assert_eq!(
            watch.await.expect("it ends"),
            last,
            "everybody sees the last status"
        );
    }
    begun.elapsed()
}

//! The end of a supervisor: everything is accounted for.

use std::time::Duration;

use adjutant_runtime::{Goal, Instance, Status, supervisor::Settings};
use tokio::time::{Instant, sleep};

use super::fake::{Begin, End, Place, lock};

#[tokio::test(start_paused = true)]
async fn every_agent_is_accounted_for_when_the_supervisor_ends() {
    let place = Place::new();
    let (well, fails, hangs) = (
        place.running("well", []),
        place.running("fails", []),
        place.running("hangs", []),
    );
    let (begins, idle) = (
        place.running("begins", [Begin::Hangs]),
        place.agent("idle", []),
    );
    *lock(&fails.end) = End::Fails;
    *lock(&hangs.end) = End::Hangs;
    let working = place.supervise(Settings::new().end_within(Duration::from_secs(9)));
    sleep(Duration::from_secs(1)).await;
    let began = Instant::now();
    let mut report = working.report().await;
    assert_eq!(began.elapsed(), Duration::from_secs(9));
    report.stopped.sort();
    assert_eq!(report.stopped, ["begins".into(), "well".into()]);
    assert_eq!(report.idle, ["idle".into()]);
    let names: Vec<&str> = report.left.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["fails", "hangs"]);
    assert_eq!(&*report.left[1].1, "it had not ended in time");
    assert_eq!(
        [well.status(), begins.status(), idle.status()],
        [Status::Stopped, Status::Stopped, Status::Created]
    );
    // Where they should stand is as it was.
    assert_eq!(
        place.home.desired(well.id()).expect("it is there").goal,
        Goal::Running
    );
}

#[tokio::test(start_paused = true)]
async fn supervisor_ends_at_once_when_it_is_told_twice() {
    let place = Place::new();
    let hangs = place.running("hangs", []);
    *lock(&hangs.end) = End::Hangs;
    let mut working = place.supervise(Settings::new());
    working.until_status("hangs", &Status::Ready).await;
    let began = Instant::now();
    working.end.cancel();
    sleep(Duration::from_secs(1)).await;
    working.at_once.cancel();
    let report = working.ended().await;
    assert_eq!(
        (began.elapsed(), report.left.len()),
        (Duration::from_secs(1), 1)
    );
}

#[tokio::test(start_paused = true)]
async fn next_supervisor_starts_what_should_run_when_one_has_ended() {
    let place = Place::new();
    let agent = place.running("a", []);
    for _ in 0..3 {
        let mut working = place.supervise(Settings::new());
        working.until_status("a", &Status::Ready).await;
        working.report().await;
        assert_eq!(agent.status(), Status::Stopped);
    }
    // Ends that were asked for are no failures.
    assert_eq!(
        place.home.course(agent.id()).expect("it is kept").restarts,
        0
    );
}

//! What should run does, and what should not does not.

use std::{sync::atomic::Ordering, time::Duration};

use adjutant_runtime::{
    Goal, Instance, Lock, Reason, Status,
    supervisor::{AgentRow, Notice, Settings},
};
use tokio::time::sleep;

use super::fake::{Begin, End, Place, lock};

fn crashed() -> Status {
    Status::failed(Reason::Crashed, "killed")
}

fn row(rows: &[AgentRow], name: &str) -> AgentRow {
    rows.iter()
        .find(|row| *row.agent == *name)
        .expect("it is in the table")
        .clone()
}

#[tokio::test(start_paused = true)]
async fn agents_stand_where_they_should_when_the_supervisor_begins() {
    let place = Place::new();
    let (runs, rests) = (place.running("runs", []), place.agent("rests", []));
    let adopted = place.running("adopted", []);
    [Status::Preparing, Status::Starting, Status::Ready]
        .into_iter()
        .for_each(|status| adopted.force(status));
    let mut working = place.supervise(Settings::new());
    working.until_status("runs", &Status::Ready).await;
    assert_eq!(
        [runs.status(), rests.status(), adopted.status()],
        [Status::Ready, Status::Created, Status::Ready]
    );
    assert_eq!(
        (runs.seconds(), rests.seconds(), adopted.seconds()),
        (vec![0], vec![], vec![])
    );
    let report = working.report().await;
    assert_eq!(
        (report.stopped, report.idle, report.left),
        (
            vec!["runs".into(), "adopted".into()],
            vec!["rests".into()],
            vec![]
        )
    );
}

#[tokio::test(start_paused = true)]
async fn agent_that_somebody_held_when_the_supervisor_began_is_cared_for_afterwards() {
    let place = Place::new();
    let agent = place.running("a", []);
    let held = Lock::take(&agent.workspace().file("life.lock")).expect("nobody holds it");
    let mut working = place.supervise(Settings::new());
    working
        .until(|notice| matches!(notice, Notice::Problem { .. }))
        .await;
    drop(held);
    let ready = working.until_status("a", &Status::Ready);
    tokio::time::timeout(Duration::from_secs(60), ready)
        .await
        .expect("it is found");
    working.report().await;
}

#[tokio::test(start_paused = true)]
async fn agent_is_started_again_after_pauses_when_its_model_fails() {
    let place = Place::new();
    let agent = place.running("a", vec![Begin::Fails(Reason::Model); 7]);
    let mut working = place.supervise(Settings::new());
    working.until_status("a", &Status::Ready).await;
    assert_eq!(agent.seconds(), [0, 1, 3, 7, 15, 31, 61, 91]);
    assert_eq!(row(&working.table.rows(), "a").restarts, 7);
    // What is written down is what an operator that begins later goes on with.
    assert_eq!(
        place.home.course(agent.id()).expect("it is kept").restarts,
        7
    );
    working.report().await;
}

#[tokio::test(start_paused = true)]
async fn agent_is_not_started_again_when_its_configuration_is_wrong() {
    let place = Place::new();
    let agent = place.running("a", [Begin::Fails(Reason::Config)]);
    let mut working = place.supervise(Settings::new());
    let notice = working
        .until(|notice| matches!(notice, Notice::GivenUp { .. }))
        .await;
    assert!(matches!(notice, Notice::GivenUp { why, .. } if &*why == "it broke"));
    sleep(Duration::from_secs(3_600)).await;
    assert_eq!(agent.seconds(), [0]);
    assert_eq!(
        row(&working.table.rows(), "a").given_up.as_deref(),
        Some("it broke")
    );
    place
        .home
        .desire(agent.id(), Goal::Running)
        .expect("it is written");
    working.until_status("a", &Status::Ready).await;
    assert_eq!(
        (
            agent.seconds().len(),
            row(&working.table.rows(), "a").given_up
        ),
        (2, None)
    );
    working.report().await;
}

#[tokio::test(start_paused = true)]
async fn agent_is_given_up_when_it_crashes_too_often_and_begins_anew_when_it_is_started() {
    let place = Place::new();
    let agent = place.running("a", []);
    let mut working = place.supervise(Settings::new());
    for _ in 0..5 {
        working.until_status("a", &Status::Ready).await;
        agent.crash();
        working.until_status("a", &crashed()).await;
    }
    working
        .until(|notice| matches!(notice, Notice::GivenUp { .. }))
        .await;
    sleep(Duration::from_secs(3_600)).await;
    assert_eq!(agent.seconds().len(), 5);
    working.report().await;
    // Nor by the next operator.
    let mut working = place.supervise(Settings::new());
    sleep(Duration::from_secs(60)).await;
    assert_eq!(agent.seconds().len(), 5);
    place
        .home
        .desire(agent.id(), Goal::Running)
        .expect("it is written");
    working.until_status("a", &Status::Ready).await;
    assert_eq!(row(&working.table.rows(), "a").restarts, 0);
    working.report().await;
}

#[tokio::test(start_paused = true)]
async fn stop_ends_a_pause_when_an_agent_had_failed() {
    let place = Place::new();
    let agent = place.running(
        "a",
        [Begin::Fails(Reason::Init), Begin::Fails(Reason::Init)],
    );
    let mut working = place.supervise(Settings::new());
    working
        .until(|notice| matches!(notice, Notice::Pause { attempts: 2, .. }))
        .await;
    place
        .home
        .desire(agent.id(), Goal::Stopped)
        .expect("it is written");
    sleep(Duration::from_secs(600)).await;
    assert_eq!(
        (agent.seconds(), row(&working.table.rows(), "a").next_ms),
        (vec![0, 1], None)
    );
    working.report().await;
}

#[tokio::test(start_paused = true)]
async fn stop_is_no_failure_when_an_agent_begins() {
    let place = Place::new();
    let agent = place.running("a", [Begin::Hangs]);
    let mut working = place.supervise(Settings::new());
    working.until_status("a", &Status::Starting).await;
    place
        .home
        .desire(agent.id(), Goal::Stopped)
        .expect("it is written");
    working.until_status("a", &Status::Stopped).await;
    sleep(Duration::from_secs(600)).await;
    let course = place.home.course(agent.id()).expect("it is kept");
    assert_eq!((agent.seconds(), course.attempts), (vec![0], 0));
    working.report().await;
}

#[tokio::test(start_paused = true)]
async fn agent_is_stopped_and_tried_again_when_it_does_not_become_ready() {
    let place = Place::new();
    let agent = place.running("a", [Begin::Hangs]);
    let mut working = place.supervise(Settings::new().ready_within(Duration::from_secs(20)));
    let notice = working
        .until(|notice| matches!(notice, Notice::Pause { .. }))
        .await;
    assert!(
        matches!(notice, Notice::Pause { why, .. } if &*why == "it did not become ready within 20 s")
    );
    working.until_status("a", &Status::Ready).await;
    assert_eq!(
        (agent.seconds(), agent.stops.load(Ordering::SeqCst)),
        (vec![0, 21], 1)
    );
    working.report().await;
}

#[tokio::test(start_paused = true)]
async fn restart_stops_and_starts_when_it_is_ordered_and_only_once() {
    let place = Place::new();
    let agent = place.running("a", []);
    let mut working = place.supervise(Settings::new());
    working.until_status("a", &Status::Ready).await;
    place
        .home
        .desire_restart(agent.id())
        .expect("it is written");
    working.until_status("a", &Status::Stopped).await;
    working.until_status("a", &Status::Ready).await;
    working.report().await;
    let mut working = place.supervise(Settings::new());
    working.until_status("a", &Status::Ready).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(
        (agent.seconds().len(), agent.stops.load(Ordering::SeqCst)),
        (3, 2)
    );
    working.report().await;
}

#[tokio::test(start_paused = true)]
async fn agent_is_removed_when_it_should_be_and_new_ones_are_found() {
    let place = Place::new();
    let agent = place.running("a", []);
    let mut working = place.supervise(Settings::new());
    working.until_status("a", &Status::Ready).await;
    let new = place.running("b", []);
    place
        .home
        .desire(agent.id(), Goal::Removed)
        .expect("it is written");
    working.until_status("a", &Status::Removed).await;
    if new.status() != Status::Ready {
        working.until_status("b", &Status::Ready).await;
    }
    assert!(!place.home.workspace(agent.id()).root().exists());
    assert_eq!(working.table.rows().len(), 1);
    working.report().await;
}

#[tokio::test(start_paused = true)]
async fn removal_is_finished_when_it_was_interrupted() {
    let place = Place::new();
    let agent = place.agent("a", []);
    agent.force(Status::Removing);
    let mut working = place.supervise(Settings::new());
    working.until_status("a", &Status::Removed).await;
    assert!(!place.home.workspace(agent.id()).root().exists());
    working.report().await;
}

#[tokio::test(start_paused = true)]
async fn agents_wait_for_a_place_and_are_seen_to_when_so_many_run() {
    let place = Place::new();
    let agents = ["a", "b", "c", "d"].map(|name| place.running(name, []));
    let mut working = place.supervise(Settings::new().max_running(2));
    working
        .until(|it| matches!(it, Notice::Waiting { agent, max_running: 2, .. } if &**agent == "d"))
        .await;
    sleep(Duration::from_secs(1)).await;
    let waiting: Vec<bool> = working
        .table
        .rows()
        .iter()
        .map(|row| row.is_waiting)
        .collect();
    assert_eq!(waiting, [false, false, true, true]);
    assert!(
        place
            .home
            .course(agents[3].id())
            .expect("it is kept")
            .is_waiting
    );
    // One that is stopped leaves its place to the one that waited longest, not to one that is asked for later.
    place
        .home
        .desire(agents[0].id(), Goal::Stopped)
        .expect("it is written");
    working.until_status("c", &Status::Ready).await;
    place
        .home
        .desire(agents[0].id(), Goal::Running)
        .expect("it is written");
    place
        .home
        .desire(agents[1].id(), Goal::Stopped)
        .expect("it is written");
    working.until_status("d", &Status::Ready).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(agents.each_ref().map(|it| it.seconds().len()), [1, 1, 1, 1]);
    let report = working.report().await;
    assert_eq!((report.stopped.len(), report.idle.len()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn agent_begins_anew_when_it_does_not_answer() {
    let place = Place::new();
    let agent = place.running("a", []);
    let mut working = place.supervise(Settings::new());
    working.until_status("a", &Status::Ready).await;
    sleep(Duration::from_secs(100)).await;
    assert_eq!(agent.stops.load(Ordering::SeqCst), 0);
    agent.mute.store(1, Ordering::SeqCst);
    let notice = working
        .until(|notice| matches!(notice, Notice::Pause { .. }))
        .await;
    assert!(matches!(notice, Notice::Pause { why, .. } if &*why == "it did not answer, 3 times"));
    agent.mute.store(0, Ordering::SeqCst);
    working.until_status("a", &Status::Ready).await;
    working.report().await;
}

#[tokio::test(start_paused = true)]
async fn others_go_on_when_the_backend_breaks_for_one() {
    let place = Place::new();
    let (broken, other) = (
        place.running("broken", [Begin::Panics]),
        place.running("other", []),
    );
    let mut working = place.supervise(Settings::new());
    working.until_status("other", &Status::Ready).await;
    working
        .until(|notice| matches!(notice, Notice::Pause { agent, .. } if &**agent == "broken"))
        .await;
    // Its status is stuck, so nobody can tell what became of it: it is stopped before the next attempt.
    *lock(&broken.end) = End::Stops;
    assert_eq!(other.status(), Status::Ready);
    working.report().await;
}

#[tokio::test(start_paused = true)]
async fn agent_is_left_as_it_is_when_nobody_can_tell_where_it_should_stand() {
    let place = Place::new();
    let agent = place.running("a", []);
    [Status::Preparing, Status::Starting, Status::Ready]
        .into_iter()
        .for_each(|status| agent.force(status));
    let file = place.home.workspace(agent.id()).file("desired.json");
    let (aside, link) = (
        file.with_extension("aside"),
        std::os::unix::fs::symlink::<&std::path::Path, _>,
    );
    std::fs::rename(&file, &aside).expect("it is there");
    link(&aside, &file).expect("a link");
    let mut working = place.supervise(Settings::new());
    working
        .until(|notice| matches!(notice, Notice::Problem { .. }))
        .await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(
        (agent.status(), agent.stops.load(Ordering::Relaxed)),
        (Status::Ready, 0)
    );
    // It is obeyed once it can be read, without anybody asking anew.
    std::fs::write(&aside, r#"{"goal":"stopped","order":2}"#).expect("it is written");
    std::fs::rename(&aside, &file).expect("it takes the link's place");
    working.until_status("a", &Status::Stopped).await;
    working.report().await;
}

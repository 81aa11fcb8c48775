//! The decisions of a course, as a table and as properties over any order of events.

use proptest::prelude::*;

use super::*;

const RUN: Desired = Desired {
    goal: Goal::Running,
    order: 1,
    restart: false,
};

fn failed(reason: Reason) -> Status {
    Status::failed(reason, "it broke")
}

fn rests() -> Flight {
    Flight::default()
}

/// Checks the step for a new agent.
#[track_caller]
fn check(goal: Goal, status: &Status, flight: Flight, expect: SupervisorStep) {
    let mut course = Course::default();
    course.take(&Desired { goal, ..RUN });
    assert_eq!(
        course.step(goal, status, flight, true, 0),
        expect,
        "{goal:?} {status:?} {flight:?}"
    );
}

#[test]
fn step_is_that_of_the_table_when_nothing_happened_before() {
    use Goal::{Removed, Running, Stopped};
    let starting = Flight {
        starting: true,
        ending: false,
    };
    let ending = Flight {
        starting: false,
        ending: true,
    };
    let both = Flight {
        starting: true,
        ending: true,
    };
    for status in [
        Status::Created,
        Status::Stopped,
        failed(Reason::Crashed),
        failed(Reason::Config),
    ] {
        check(Running, &status, rests(), SupervisorStep::Start);
        check(Running, &status, starting, SupervisorStep::Rest);
        check(Stopped, &status, rests(), SupervisorStep::Rest);
        check(Stopped, &status, starting, SupervisorStep::Stop);
        check(Removed, &status, rests(), SupervisorStep::Remove);
    }
    for status in [Status::Ready, Status::Working] {
        check(Running, &status, rests(), SupervisorStep::Rest);
    }
    // A start in progress without a waiter is waited for.
    for status in [Status::Preparing, Status::Starting] {
        check(Running, &status, rests(), SupervisorStep::Start);
        check(Running, &status, starting, SupervisorStep::Rest);
    }
    for status in [
        Status::Preparing,
        Status::Starting,
        Status::Ready,
        Status::Working,
    ] {
        check(Stopped, &status, rests(), SupervisorStep::Stop);
        check(Removed, &status, rests(), SupervisorStep::Remove);
        check(Removed, &status, starting, SupervisorStep::Remove);
    }
    for goal in [Running, Stopped, Removed] {
        check(goal, &Status::Removing, rests(), SupervisorStep::Remove);
        check(goal, &Status::Removed, rests(), SupervisorStep::Rest);
        for flight in [ending, both] {
            check(goal, &Status::Ready, flight, SupervisorStep::Rest);
            check(goal, &Status::Removing, flight, SupervisorStep::Rest);
        }
    }
}

#[test]
fn pause_is_over_when_the_clock_was_set_back() {
    let (year, mut course) = (365 * 24 * 3_600_000, Course::default());
    course.take(&RUN);
    course.see(&Status::Ready, year, || 0.5);
    course.see(&failed(Reason::Crashed), year, || 0.5);
    let step = |course: &Course, now| {
        course.step(Goal::Running, &failed(Reason::Crashed), rests(), true, now)
    };
    assert_eq!(
        step(&course, year),
        SupervisorStep::Pause {
            until_ms: year + 1_000
        }
    );
    assert_eq!(step(&course, 1_000), SupervisorStep::Start);
    course.starts();
    course.fail(DownReason::Crash, "again", 1_000, 0.5);
    assert_eq!(course.crashes, [1_000], "what lies ahead is forgotten");
}

#[test]
fn pauses_double_to_thirty_seconds_when_it_fails_again_and_again() {
    let pauses: Vec<u64> = (1..=7).map(|attempt| millis(pause(attempt, 0.5))).collect();
    assert_eq!(pauses, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    assert_eq!(
        [
            millis(pause(1, 0.0)),
            millis(pause(2, 0.999_999)),
            millis(pause(u32::MAX, 0.9))
        ],
        [750, 2_499, 30_000]
    );
}

#[test]
fn one_that_can_heal_is_tried_without_end_and_config_never_again() {
    let mut course = Course::default();
    course.take(&RUN);
    for attempt in 1..200 {
        course.starts();
        course.fail(
            DownReason::from_reason(Reason::Model),
            "no key",
            attempt * 1_000_000,
            0.5,
        );
        assert_eq!(
            (course.attempts, &course.given_up),
            (u32::try_from(attempt).expect("it is small"), &None)
        );
    }
    assert_eq!(course.restarts, 198);
    course.fail(
        DownReason::from_reason(Reason::Config),
        "the binary was changed",
        0,
        0.5,
    );
    assert_eq!(course.given_up.as_deref(), Some("the binary was changed"));
    assert_eq!(
        course.step(
            Goal::Running,
            &failed(Reason::Config),
            rests(),
            true,
            u64::MAX
        ),
        SupervisorStep::Rest
    );
    assert!(course.take(&Desired { order: 2, ..RUN }));
    assert_eq!(
        course.step(Goal::Running, &failed(Reason::Config), rests(), true, 0),
        SupervisorStep::Start
    );
}

/// Simulates crashes at this interval, each after this time of being ready; returns their number, and whether the agent
/// was given up.
fn crashes(apart_ms: u64, ready_ms: u64) -> (usize, bool) {
    let (mut course, mut now) = (Course::default(), 1);
    course.take(&RUN);
    for count in 1..=20 {
        course.starts();
        course.see(&Status::Ready, now, || 0.5);
        assert!(course.see(&failed(Reason::Crashed), now + ready_ms, || 0.5));
        now += ready_ms + apart_ms;
        if course.given_up.is_some() {
            return (count, true);
        }
    }
    (20, false)
}

#[test]
fn one_that_crashes_too_often_is_given_up() {
    assert_eq!(crashes(0, 0), (5, true));
    assert_eq!(crashes(10_000, 50_000), (5, true));
    assert_eq!(crashes(0, 59_999), (5, true));
    // A minute of being ready resets earlier failures.
    assert_eq!(crashes(0, 60_000), (20, false));
    // Four within five minutes are not too many.
    assert_eq!(crashes(75_000, 0), (20, false));
}

#[test]
fn end_that_nobody_asked_for_counts_when_it_says_it_stopped() {
    let mut course = Course::default();
    course.take(&RUN);
    course.see(&Status::Ready, 5, || 0.5);
    assert!(course.see(&Status::Stopped, 6, || 0.5));
    assert!(!course.see(&Status::Stopped, 7, || 0.5));
    assert_eq!(
        course.step(Goal::Running, &Status::Stopped, rests(), true, 7),
        SupervisorStep::Pause { until_ms: 1_006 }
    );
    assert_eq!(
        course.step(Goal::Running, &Status::Stopped, rests(), false, 1_006),
        SupervisorStep::Queue
    );
    assert_eq!(
        course.step(Goal::Running, &Status::Stopped, rests(), true, 1_006),
        SupervisorStep::Start
    );
}

#[test]
fn order_ends_a_pause_when_it_is_new_and_changes_nothing_when_it_is_old() {
    let mut course = Course::default();
    course.take(&RUN);
    course.fail(DownReason::Heals, "no", 0, 0.5);
    let failed = failed(Reason::Init);
    assert!(!course.take(&RUN));
    assert_eq!(
        course.step(Goal::Running, &failed, rests(), true, 0),
        SupervisorStep::Pause { until_ms: 1_000 }
    );
    assert!(course.take(&Desired {
        goal: Goal::Stopped,
        order: 2,
        restart: false
    }));
    assert_eq!(
        course.step(Goal::Stopped, &failed, rests(), true, 0),
        SupervisorStep::Rest
    );
    assert!(course.take(&Desired { order: 3, ..RUN }));
    assert_eq!(
        (
            course.step(Goal::Running, &failed, rests(), true, 0),
            course.attempts
        ),
        (SupervisorStep::Start, 0)
    );
}

#[test]
fn restart_stops_it_once_when_it_runs() {
    let mut course = Course::default();
    course.take(&RUN);
    course.see(&Status::Ready, 0, || 0.5);
    course.take(&Desired {
        goal: Goal::Running,
        order: 2,
        restart: true,
    });
    assert_eq!(
        course.step(Goal::Running, &Status::Ready, rests(), true, 0),
        SupervisorStep::Stop
    );
    // A start order before the stop was carried out does not cancel the stop.
    course.take(&Desired {
        goal: Goal::Running,
        order: 3,
        restart: false,
    });
    assert_eq!(
        course.step(Goal::Running, &Status::Ready, rests(), true, 0),
        SupervisorStep::Stop
    );
    course.stopped();
    assert_eq!(
        course.step(Goal::Running, &Status::Stopped, rests(), true, 0),
        SupervisorStep::Start
    );
    course.take(&Desired {
        goal: Goal::Running,
        order: 4,
        restart: true,
    });
    // There is nothing to stop, so it only starts.
    course.starts();
    course.see(&Status::Ready, 9, || 0.5);
    assert_eq!(
        (
            course.step(Goal::Running, &Status::Ready, rests(), true, 9),
            course.restarts
        ),
        (SupervisorStep::Rest, 0)
    );
}

#[test]
fn course_goes_on_when_it_was_written_down() {
    let mut course = Course::default();
    course.take(&RUN);
    (1..=4).for_each(|now| course.fail(DownReason::Crash, "killed", now, 0.5));
    let text = serde_json::to_string(&course).expect("it is written");
    let mut read: Course = serde_json::from_str(&text).expect("it is read");
    assert_eq!(read, course);
    read.fail(DownReason::Crash, "killed", 5, 0.5);
    let why = "it crashed 5 times within 5 minutes, the last time so: killed";
    assert_eq!(read.given_up.as_deref(), Some(why));
}

/// An event of an agent.
#[derive(Debug, Clone)]
enum Event {
    Order(Goal, bool),
    Stand(Status),
    Fail(Reason),
    Pass(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let goal = prop_oneof![
        Just(Goal::Running),
        Just(Goal::Stopped),
        Just(Goal::Removed)
    ];
    let reasons = [
        Reason::Init,
        Reason::Pull,
        Reason::Model,
        Reason::Config,
        Reason::Readiness,
        Reason::Crashed,
    ];
    let reason = prop::sample::select(reasons.to_vec());
    let mut all = vec![
        Status::Created,
        Status::Preparing,
        Status::Starting,
        Status::Ready,
        Status::Working,
    ];
    all.extend([
        Status::Stopped,
        Status::Removing,
        failed(Reason::Crashed),
        failed(Reason::Model),
    ]);
    prop_oneof![
        (goal, any::<bool>()).prop_map(|(goal, restart)| Event::Order(goal, restart)),
        prop::sample::select(all).prop_map(Event::Stand),
        reason.prop_map(Event::Fail),
        (0_u64..90_000).prop_map(Event::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn course_keeps_its_promises_whatever_happens(events in prop::collection::vec(event(), 1..80), unit in 0.0..1.0) {
        let (mut course, mut now, mut goal, mut order) = (Course::default(), 1_000_000_u64, Goal::Stopped, 0);
        let (mut status, mut failed_at) = (Status::Created, None::<u64>);
        for event in events {
            match event {
                Event::Order(to, restart) => {
                    (goal, order, failed_at) = (to, order + 1, None);
                    let desired = Desired { goal, order, restart: restart && goal == Goal::Running };
                    prop_assert!(course.take(&desired));
                    prop_assert_eq!((course.attempts, course.next_ms, &course.given_up), (0, None, &None));
                }
                Event::Stand(to) => {
                    status = to;
                    if matches!(status, Status::Ready | Status::Working) {
                        failed_at = None;
                    }
                    if course.see(&status, now, || unit) {
                        failed_at = Some(now);
                    }
                }
                Event::Fail(reason) => {
                    (status, failed_at) = (failed(reason), Some(now));
                    course.fail(DownReason::from_reason(reason), "it broke", now, unit);
                }
                Event::Pass(ms) => now += ms,
            }
            prop_assert!(course.crashes.len() <= 5);
            let step = course.step(goal, &status, rests(), true, now);
            match step {
                SupervisorStep::Start => {
                    prop_assert_eq!(goal, Goal::Running);
                    prop_assert!(course.given_up.is_none());
                    // Never before three quarters of the shortest pause.
                    prop_assert!(failed_at.is_none_or(|at| now >= at + 750) || matches!(status, Status::Preparing | Status::Starting));
                }
                SupervisorStep::Pause { until_ms } => prop_assert!(until_ms > now && until_ms <= now + 30_000),
                SupervisorStep::Stop => prop_assert!(is_up(&status) && (goal == Goal::Stopped || course.restart)),
                SupervisorStep::Remove => prop_assert!(goal == Goal::Removed || status == Status::Removing),
                SupervisorStep::Queue => prop_assert!(false, "there is a place"),
                SupervisorStep::Rest => {}
            }
            // An agent that should run does, is given up, or is started after the pause.
            if goal == Goal::Running && course.given_up.is_none() && status != Status::Removing {
                let later = course.step(goal, &status, rests(), true, now + 30_000);
                let expect = match (is_up(&status), course.restart) {
                    (true, true) => SupervisorStep::Stop,
                    _ if matches!(status, Status::Ready | Status::Working) => SupervisorStep::Rest,
                    _ => SupervisorStep::Start,
                };
                prop_assert_eq!(later, expect);
            }
        }
    }
}

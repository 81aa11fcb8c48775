//! Statuses: the table of transitions, and those who watch.

use std::{sync::Arc, thread, time::Duration};

use adjutant_runtime::{ErrorKind, Reason, Status, StatusTracker};

fn every() -> [Status; 9] {
    [
        Status::Created,
        Status::Preparing,
        Status::Starting,
        Status::Ready,
        Status::Working,
        Status::Stopped,
        Status::failed(Reason::Crashed, "it fell"),
        Status::Removing,
        Status::Removed,
    ]
}

#[test]
fn status_becomes_what_the_table_says_and_nothing_else() {
    let rows = every().map(|from| {
        let next: Vec<&str> = every()
            .iter()
            .filter(|to| from.may_become(to))
            .map(Status::word)
            .collect();
        format!("{} -> {}", from.word(), next.join(" "))
    });
    assert_eq!(
        rows,
        [
            "created -> preparing removing",
            "preparing -> starting stopped failed",
            "starting -> ready stopped failed",
            "ready -> working stopped failed",
            "working -> ready stopped failed",
            "stopped -> preparing starting removing",
            "failed -> preparing starting removing",
            "removing -> removed",
            "removed -> ",
        ]
    );
}

#[test]
fn tracker_keeps_its_status_when_a_transition_is_illegal() {
    for from in every() {
        for to in every() {
            let tracker = StatusTracker::new(from.clone());
            let mut watch = tracker.subscribe();
            let set = tracker.set(to.clone()).map_err(|error| error.kind());
            let allowed = from == to || from.may_become(&to);
            assert_eq!(
                set,
                if allowed {
                    Ok(())
                } else {
                    Err(ErrorKind::Conflict)
                },
                "{from} to {to}"
            );
            assert_eq!(
                tracker.get(),
                if allowed { to.clone() } else { from.clone() }
            );
            drop(tracker);
            // What is no change is not told.
            let told = futures_util::FutureExt::now_or_never(watch.changed()).expect("it is over");
            assert_eq!(told, (allowed && from != to).then_some(to));
        }
    }
}

#[test]
fn cleaning_up_does_not_overwrite_a_failure_or_a_removal() {
    for end in [
        Status::failed(Reason::Model, "no key"),
        Status::Removing,
        Status::Removed,
    ] {
        let tracker = StatusTracker::new(end.clone());
        assert!(!tracker.set_unless(Status::Stopped, |now| !now.is_active()));
        assert_eq!(tracker.get(), end);
    }
    let tracker = StatusTracker::new(Status::Working);
    assert!(
        !tracker.set_unless(Status::Stopped, |now| *now == Status::Working),
        "the guard holds"
    );
    assert!(tracker.set_unless(Status::Stopped, |now| !now.is_active()));
    assert!(
        tracker.set_unless(Status::Stopped, |_| true),
        "it stands there already"
    );
}

#[test]
fn statuses_are_written_as_words_and_unknown_words_are_refused() {
    let written = |status: &Status| serde_json::to_string(status).expect("it can be written");
    assert_eq!(written(&Status::Ready), r#"{"status":"ready"}"#);
    let failed = Status::failed(Reason::Readiness, "too slow");
    assert_eq!(
        written(&failed),
        r#"{"status":"failed","reason":"readiness","message":"too slow"}"#
    );
    for status in every() {
        assert_eq!(
            serde_json::from_str::<Status>(&written(&status)).expect("it can be read"),
            status
        );
    }
    for text in [
        r#"{"status":"sleeping"}"#,
        r#"{"status":"failed","reason":"tired","message":""}"#,
        "{}",
    ] {
        assert!(serde_json::from_str::<Status>(text).is_err(), "{text}");
    }
    assert_eq!(failed.to_string(), "failed (readiness): too slow");
    assert_eq!(Status::Working.to_string(), "working");
    let reasons = [
        Reason::Init,
        Reason::Pull,
        Reason::Model,
        Reason::Config,
        Reason::Readiness,
        Reason::Crashed,
    ];
    assert_eq!(
        reasons.map(Reason::word),
        ["init", "pull", "model", "config", "readiness", "crashed"]
    );
}

#[tokio::test]
async fn slow_watcher_sees_the_newest_status_then_the_end() {
    let tracker = StatusTracker::new(Status::Stopped);
    let mut watch = tracker.subscribe();
    for status in [
        Status::Starting,
        Status::Ready,
        Status::Stopped,
        Status::Removing,
        Status::Removed,
    ] {
        tracker.set(status).expect("it may");
    }
    assert_eq!(watch.changed().await, Some(Status::Removed));
    assert_eq!(
        watch.changed().await,
        None,
        "nothing follows, though the tracker is there"
    );
    assert_eq!(watch.current(), Status::Removed);
}

#[tokio::test]
async fn watcher_sees_the_last_status_of_a_tracker_that_is_gone() {
    let tracker = StatusTracker::new(Status::Ready);
    let mut watch = tracker.subscribe();
    tracker
        .set(Status::failed(Reason::Crashed, "it fell"))
        .expect("it may");
    drop(tracker);
    assert_eq!(
        watch.changed().await,
        Some(Status::failed(Reason::Crashed, "it fell"))
    );
    assert_eq!(watch.changed().await, None);
}

#[tokio::test]
async fn waiting_looks_at_the_current_status_first() {
    let tracker = StatusTracker::new(Status::Ready);
    let mut watch = tracker.subscribe();
    assert_eq!(
        watch.wait_for(Status::is_up).await.expect("it is there"),
        Status::Ready
    );
    let other = tracker.subscribe();
    let waiting = tokio::spawn(async move {
        let mut other = other;
        other.wait_for(|status| *status == Status::Stopped).await
    });
    tracker.set(Status::Working).expect("it may");
    tracker.set(Status::Stopped).expect("it may");
    assert_eq!(
        waiting.await.expect("it ends").expect("it got there"),
        Status::Stopped
    );
}

#[tokio::test]
async fn waiting_ends_when_the_status_can_never_come() {
    let tracker = StatusTracker::new(Status::Removing);
    let mut watch = tracker.subscribe();
    tracker.set(Status::Removed).expect("it may");
    let error = watch
        .wait_for(Status::is_up)
        .await
        .expect_err("it is removed");
    assert_eq!(
        (error.kind(), error.message()),
        (
            ErrorKind::Closed,
            "the agent will not get there: it is removed"
        )
    );
    let tracker = StatusTracker::new(Status::Ready);
    let mut watch = tracker.subscribe();
    drop(tracker);
    assert_eq!(
        watch
            .wait_for(|_| false)
            .await
            .expect_err("nobody holds it")
            .kind(),
        ErrorKind::Closed
    );
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_time_tells_where_it_stands_then() {
    let tracker = StatusTracker::new(Status::Starting);
    let mut watch = tracker.subscribe();
    let waited = watch
        .wait_for_within(Duration::from_secs(3), Status::is_up)
        .await;
    let error = waited.expect_err("nobody sets it");
    assert_eq!(
        (error.kind(), error.message()),
        (
            ErrorKind::TimedOut,
            "waited 3000 ms, and the agent is starting"
        )
    );
    tracker.set(Status::Ready).expect("it may");
    assert_eq!(
        watch
            .wait_for_within(Duration::ZERO, Status::is_up)
            .await
            .expect("it is there"),
        Status::Ready
    );
}

#[tokio::test]
async fn address_is_told_as_a_change_of_the_same_status() {
    let tracker = StatusTracker::new(Status::Ready);
    let mut watch = tracker.subscribe();
    let address = "127.0.0.1:4000".parse().ok();
    tracker.set_address(address);
    tracker.set_address(address);
    assert_eq!(
        (watch.changed().await, watch.address()),
        (Some(Status::Ready), address)
    );
    assert!(
        futures_util::FutureExt::now_or_never(watch.changed()).is_none(),
        "told once"
    );
}

/// 50 threads set and drop watches at once, while others wait: nothing breaks, and every one of them sees the end.
#[test]
fn watches_are_set_and_dropped_by_fifty_threads() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .expect("it can be made");
    let tracker = Arc::new(StatusTracker::new(Status::Ready));
    let waiting: Vec<_> = (0..50)
        .map(|_| {
            let mut watch = tracker.subscribe();
            runtime.spawn(async move {
                let mut last = watch.current();
                while let Some(status) = watch.changed().await {
                    last = status;
                }
                last
            })
        })
        .collect();
    thread::scope(|scope| {
        for number in 0..50 {
            let tracker = &tracker;
            scope.spawn(move || {
                for _ in 0..200 {
                    let watch = tracker.subscribe();
                    // Both are refused now and then: another thread was there first.
                    let _refused = tracker.set(if number % 2 == 0 {
                        Status::Working
                    } else {
                        Status::Ready
                    });
                    assert!(watch.current().is_up());
                    drop(watch);
                }
            });
        }
    });
    assert_eq!(tracker.watches(), 50);
    for status in [Status::Stopped, Status::Removing, Status::Removed] {
        tracker.set(status).expect("nobody else sets it any more");
    }
    for watch in waiting {
        assert_eq!(runtime.block_on(watch).expect("it ends"), Status::Removed);
    }
    assert_eq!(tracker.watches(), 0);
}

/// A thousand who watch and ten thousand transitions: every one of them sees the last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousand_watchers_see_the_end_of_ten_thousand_transitions() {
    let tracker = StatusTracker::new(Status::Ready);
    let waiting: Vec<_> = (0..1_000)
        .map(|_| {
            let mut watch = tracker.subscribe();
            tokio::spawn(async move {
                let mut last = watch.current();
                while let Some(status) = watch.changed().await {
                    last = status;
                }
                last
            })
        })
        .collect();
    let begun = std::time::Instant::now();
    for number in 0..10_000 {
        tracker
            .set(if number % 2 == 0 {
                Status::Working
            } else {
                Status::Ready
            })
            .expect("it may");
    }
    tracker
        .set(Status::failed(Reason::Crashed, "it fell"))
        .expect("it may");
    drop(tracker);
    for watch in waiting {
        assert_eq!(
            watch.await.expect("it ends"),
            Status::failed(Reason::Crashed, "it fell")
        );
    }
    println!(
        "1,000 watchers, 10,000 transitions: {} ms",
        begun.elapsed().as_millis()
    );
}

//! When compaction cannot do what it should: nothing is lost, and it does not try for ever.

use std::{collections::BTreeSet, sync::Arc};

use adjutant_agent::{CancelBy, Effect, EventKind, Floor, Outcome, effects::Truncate};
use adjutant_context::Compact;
use adjutant_llm::{Error, ErrorKind, Gate, Overflow, Script, Usage};
use serde_json::{Value, json};

use super::{
    stage::{WINDOW, Worker, reports, shown, size, summaries, writer},
    summary,
};

type Write = fn(usize) -> Script;

fn broken() -> Script {
    Script::new()
        .usage(Usage::default())
        .fail(Error::new(ErrorKind::Overloaded, "too busy"))
}

#[tokio::test]
async fn compact_keeps_all_when_the_summary_is_empty_or_fails() {
    let table: [(Write, &str); 3] = [
        (|_| Script::new().text("  \n"), "the summary is empty"),
        (|_| broken(), "no summary: too busy"),
        (
            |_| Script::from_fn(|_| panic!("ouch")),
            "the model panicked: ouch",
        ),
    ];
    for (write, expect) in table {
        let (worker, writer) = (Worker::new(24), writer(write));
        let agent = worker.agent(1_200).effect(Compact {
            model: Some(writer.model.clone()),
            ..Compact::default()
        });
        let mut running = agent
            .run("Read all pages.")
            .stream()
            .expect("the session is free");
        let reports = reports(&mut running).await;
        assert_eq!(
            running
                .result()
                .expect("it has ended")
                .expect("it answers")
                .text(),
            "Done."
        );
        assert_eq!(
            (
                reports[0]["failed"].as_str(),
                reports[0]["failures"].as_u64()
            ),
            (Some(expect), Some(1))
        );
        let last = worker.requests().pop().expect("there were requests");
        assert_eq!(
            (last.entries.len(), summaries(&last)),
            (25, 0),
            "the view is as it was"
        );
    }
}

#[tokio::test]
async fn compact_gives_up_when_it_fails_or_gains_too_little() {
    let (worker, failing) = (Worker::new(27), writer(|_| broken()));
    let agent = worker.agent(1_200).effect(Compact {
        model: Some(failing.model.clone()),
        ..Compact::default()
    });
    let mut running = agent
        .run("Read all pages.")
        .stream()
        .expect("the session is free");
    let told: Vec<bool> = reports(&mut running)
        .await
        .iter()
        .map(|report| report["given_up"] == Value::Bool(true))
        .collect();
    assert_eq!(
        (told, failing.requests().len()),
        (vec![false, false, true], 3)
    );
    drop(running);

    // The next run tries again.
    let next = agent.model(Worker::of([Script::new().text("Yes.")]).model);
    next.run("And now?").await.expect("it answers");
    assert_eq!(failing.requests().len(), 4);

    let (worker, wordy) = (
        Worker::new(25),
        writer(|_| Script::new().text("too many words ".repeat(1_300))),
    );
    let agent = worker.agent(1_200).effect(Compact {
        model: Some(wordy.model.clone()),
        ..Compact::default()
    });
    let mut running = agent
        .run("Read all pages.")
        .stream()
        .expect("the session is free");
    let told = reports(&mut running).await;
    let why = told[0]["failed"].as_str().expect("it says why");
    assert!(why.ends_with("gains too little"), "{why}");
    assert_eq!(
        (told.len(), wordy.requests().len()),
        (1, 1),
        "it waits for real growth"
    );
}

fn too_long(limit: u64) -> Script {
    let overflow = Overflow {
        used: Some(limit + 1),
        limit: Some(limit),
    };
    Script::new()
        .usage(Usage::default())
        .fail(Error::new(ErrorKind::Overflow, "too long").with(|it| it.overflow = Some(overflow)))
}

/// Ten pages, then a request that does not fit.
fn overflowing(times: usize) -> Worker {
    let pages = (0..10).map(|at| Script::new().call("read", json!({"page": at})));
    Worker::of(
        pages
            .chain((0..times).map(|_| too_long(3_000)))
            .chain([Script::new().text("Done.")]),
    )
}

#[tokio::test]
async fn compact_tries_the_turn_again_once_when_the_provider_says_it_does_not_fit() {
    let (worker, helper) = (overflowing(1), writer(summary));
    let agent = worker.agent(1_200).effect(Compact {
        model: Some(helper.model.clone()),
        ..Compact::default()
    });
    let mut running = agent
        .run("Read all pages.")
        .stream()
        .expect("the session is free");
    let mut overflowed = 0;
    while let Some(event) = running.next().await {
        overflowed += u32::from(event.kind == EventKind::Overflowed);
    }
    let result = running
        .result()
        .expect("it has ended")
        .expect("it answers")
        .clone();
    assert_eq!(
        (overflowed, result.turns, result.text().as_str()),
        (1, 11, "Done.")
    );
    let again = worker.requests().pop().expect("there were requests");
    assert_eq!(shown(&again), ["Read all pages.", "[Notes 0.]", "<turn>"]);
    drop(running);

    let (worker, helper) = (overflowing(2), writer(summary));
    let agent = worker.agent(1_200).effect(Compact {
        model: Some(helper.model.clone()),
        ..Compact::default()
    });
    let error = agent
        .run("Read all pages.")
        .await
        .expect_err("it never fits");
    assert!(
        error
            .model_error()
            .is_some_and(|error| error.kind() == ErrorKind::Overflow),
        "{error:?}"
    );
    assert_eq!((worker.requests().len(), helper.requests().len()), (12, 1));
}

#[tokio::test]
async fn compact_leaves_out_the_oldest_when_the_summary_fails_and_something_must_go() {
    let (worker, helper) = (overflowing(1), writer(|_| broken()));
    let agent = worker.agent(1_200).effect(Compact {
        model: Some(helper.model.clone()),
        ..Compact::default()
    });
    assert_eq!(
        agent
            .run("Read all pages.")
            .await
            .expect("it answers")
            .text(),
        "Done."
    );
    let again = worker.requests().pop().expect("there were requests");
    let note = "[[Left out to make room: 9 entries of the conversation up to here, in all.]]";
    assert_eq!(shown(&again), ["Read all pages.", note, "<turn>"]);
}

#[tokio::test]
async fn compact_is_a_step_of_the_floor_that_gives_way_when_it_fails() {
    // (what the summariser says, the kinds that made room, the most requests to it)
    let table: [(Write, &str, usize); 3] = [
        (summary, "compact", 12),
        (|_| broken(), "truncate", 3),
        (|_| Script::new().text(" "), "truncate", 3),
    ];
    for (write, expect, most) in table {
        let (worker, helper) = (Worker::new(90), writer(write));
        let compact = Compact {
            model: Some(helper.model.clone()),
            ..Compact::default()
        };
        let agent = Floor::new([
            Arc::new(compact) as Arc<dyn Effect>,
            Arc::new(Truncate::default()),
        ])
        .install(worker.agent(1_200));
        let mut running = agent
            .run("Read all pages.")
            .stream()
            .expect("the session is free");
        let mut made_room = BTreeSet::new();
        while let Some(event) = running.next().await {
            match event.kind {
                EventKind::Report { by, data } if data["failed"].is_null() && &*by != "floor" => {
                    made_room.insert(by.to_string());
                }
                _ => {}
            }
        }
        assert_eq!(
            running
                .result()
                .expect("it has ended")
                .expect("it answers")
                .text(),
            "Done."
        );
        assert_eq!(made_room.into_iter().collect::<Vec<_>>(), [expect]);
        let asked = helper.requests();
        assert!(
            (1..=most).contains(&asked.len()),
            "{expect}: {} summaries",
            asked.len()
        );
        assert!(
            asked.iter().all(|request| size(request) < WINDOW - 1_000),
            "{expect}: what it is asked fits too"
        );
        assert!(
            worker.largest() <= WINDOW - 1_000,
            "{expect}: {}",
            worker.largest()
        );
    }
}

#[tokio::test]
async fn run_ends_without_a_trace_of_it_when_it_is_cancelled_while_a_summary_is_written() {
    let gate = Gate::default();
    let held = gate.clone();
    let (worker, slow) = (
        Worker::new(24),
        writer(move |_| Script::new().text("Notes.").wait_at(0, &held)),
    );
    let agent = worker.agent(1_200).effect(Compact {
        model: Some(slow.model.clone()),
        ..Compact::default()
    });
    let running = agent
        .run("Read all pages.")
        .stream()
        .expect("the session is free");
    let (stopper, detached) = (running.stopper(), running.detach());
    gate.wait_until_reached().await;
    stopper.stop(CancelBy::User);
    let result = detached
        .await
        .expect("nobody panics")
        .expect("a cancel is no failure");
    assert!(
        matches!(result.outcome, Outcome::Cancelled { .. }),
        "{:?}",
        result.outcome
    );
    assert_eq!(result.total_usage, result.usage);
    assert!(
        worker
            .requests()
            .iter()
            .all(|request| summaries(request) == 0)
    );
    assert!(worker.largest() < WINDOW);
}

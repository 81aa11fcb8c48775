//! Tasks that are kept: they go on when their run has ended, and are found again by a later program.

use std::sync::Arc;

use adjutant_agent::{Agent, Flush, Journal, LogId, MemoryJournal, Owner, Record};
use adjutant_llm::{Gate, Model, Status};
use adjutant_orchestration::{Background, BackgroundOptions, ErrorKind, TaskState};
use serde_json::json;

use super::{
    super::fan_out::desk::{answering, calls, doing, messages, records, results, says},
    lead, run, waits_for,
};

fn keeping(journal: &MemoryJournal, model: impl Model + 'static) -> Background {
    let background = Background::new(BackgroundOptions::new()).keep_in(journal.clone());
    background.agent("helper", "Helps.", Agent::new(model).name("helper"))
}

fn keeps(task: &str) -> adjutant_llm::Script {
    calls(
        "launch_task",
        json!({"agent": "helper", "task": task, "keep": true}),
    )
}

/// The name of the log of the first task.
fn log_of(background: &Background) -> LogId {
    LogId(background.snapshot()[0].thread.as_str().into())
}

/// Copies a log up to the first record of this kind, or all of it.
async fn copy(from: &MemoryJournal, log: &LogId, into: &MemoryJournal, until: fn(&Record) -> bool) {
    let records = records(from, log).await;
    let end = records
        .iter()
        .position(|it| until(&it.record))
        .map_or(records.len(), |end| end + 1);
    let mut own = into
        .own(log, &Owner::default())
        .await
        .expect("nobody has it");
    own.append(&records[..end], Flush::Now)
        .await
        .expect("there is room");
}

async fn ended(background: &Background) {
    let mut watch = background.watch();
    while watch.next().await.iter().any(|task| !task.state.is_ended()) {}
}

#[tokio::test(start_paused = true)]
async fn kept_task_is_told_to_a_later_run_when_its_own_has_ended() {
    let (journal, gate) = (MemoryJournal::default(), Gate::default());
    let held = gate.clone();
    let background = keeping(
        &journal,
        answering(1, move |_| says("did it.").wait_at(0, &held)),
    );
    let script = [
        keeps("a"),
        says("Done."),
        calls("list_tasks", json!({})),
        says("Heard."),
        says("Never."),
    ];
    let (model, agent) = lead(&background, script);
    let agent = agent.journal(journal.clone());
    let result = run(&agent).await;
    assert_eq!(
        (result.text().as_str(), background.snapshot()[0].state),
        ("Done.", TaskState::Running)
    );
    gate.open();
    ended(&background).await;
    let result = agent.run("And now?").await.expect("the run finishes");
    assert_eq!(result.text(), "Heard.");
    let told = messages(&model.requests()[2]);
    assert_eq!(
        told[1..],
        [
            "And now?",
            "The background task task-1 (helper) is completed:\ndid it."
        ]
    );
    assert!(results(&result)[0].contains(r#""status":"completed""#));
}

#[tokio::test(start_paused = true)]
async fn task_is_refused_when_it_should_be_kept_without_a_journal() {
    let background =
        Background::new(BackgroundOptions::new()).agent("helper", "Helps.", Agent::new(doing(0)));
    let (_, agent) = lead(&background, [keeps("a"), says("Done.")]);
    let result = run(&agent).await;
    let call = &result.calls[0].result;
    assert_eq!(call.status, Status::Failed);
    assert!(
        call.text()
            .contains("nothing can be kept here: there is no journal for it"),
        "{}",
        call.text()
    );
    assert!(background.snapshot().is_empty());
    let error = background
        .resume_kept(&agent)
        .await
        .expect_err("there is no journal");
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[tokio::test(start_paused = true)]
async fn kept_task_goes_on_when_the_program_began_again() {
    let (journal, gate) = (MemoryJournal::default(), Gate::default());
    let held = gate.clone();
    let background = keeping(
        &journal,
        answering(1, move |_| says("Never.").wait_at(0, &held)),
    );
    let (_, first) = lead(&background, [keeps("a"), says("Done.")]);
    let first = first.journal(journal.clone());
    run(&first).await;
    gate.wait_until_reached().await;
    let left = MemoryJournal::default();
    copy(&journal, first.session_id(), &left, |_| false).await;
    copy(&journal, &log_of(&background), &left, |_| false).await;

    let helper = doing(1);
    let background = keeping(&left, Arc::clone(&helper));
    let (model, again) = lead(&background, [waits_for("task-1"), says("Done.")]);
    let again = again
        .journal(left.clone())
        .session(first.session_id().clone());
    let tasks = background
        .resume_kept(&again)
        .await
        .expect("the session is there");
    assert_eq!(
        tasks
            .iter()
            .map(|task| (&*task.id, task.state))
            .collect::<Vec<_>>(),
        [("task-1", TaskState::Running)]
    );
    let result = again.run("And now?").await.expect("the run finishes");
    assert!(
        results(&result)[0].contains(r#""result":"did a.""#),
        "{:?}",
        results(&result)
    );
    assert_eq!((helper.requests().len(), model.requests().len()), (1, 2));
    assert!(
        messages(&model.requests()[0])
            .iter()
            .all(|text| !text.contains("lost"))
    );

    let later = MemoryJournal::default();
    copy(&left, first.session_id(), &later, |_| false).await;
    let background = keeping(&later, doing(0));
    let (_, third) = lead(&background, []);
    let third = third.journal(later).session(first.session_id().clone());
    assert_eq!(
        background
            .resume_kept(&third)
            .await
            .expect("the session is there"),
        [],
        "it was read"
    );
}

#[tokio::test(start_paused = true)]
async fn result_of_a_kept_task_is_told_when_it_ended_before_the_program_did() {
    let journal = MemoryJournal::default();
    let background = keeping(&journal, doing(1));
    let (_, first) = lead(&background, [keeps("a"), says("Done.")]);
    let first = first.journal(journal.clone());
    run(&first).await;
    ended(&background).await;
    let left = MemoryJournal::default();
    let launched = |it: &Record| matches!(it, Record::Returned { .. });
    copy(&journal, first.session_id(), &left, launched).await;
    copy(&journal, &log_of(&background), &left, |_| false).await;

    let helper = doing(0);
    let background = keeping(&left, Arc::clone(&helper));
    let (model, again) = lead(&background, [says("Heard."), says("Heard.")]);
    let again = again.journal(left).session(first.session_id().clone());
    let tasks = background
        .resume_kept(&again)
        .await
        .expect("the session is there");
    assert_eq!(
        (tasks[0].state, &*tasks[0].text, tasks[0].usage.total()),
        (TaskState::Completed, "did a.", 110)
    );
    again.resume(Vec::new()).await.expect("the run finishes");
    let told = messages(model.requests().last().expect("there is one"));
    let told = told
        .iter()
        .filter(|text| text.starts_with("The background task task-1 (helper) is completed"))
        .count();
    assert_eq!((told, helper.requests().len()), (1, 0));
}

//! Background tasks over a restart: what was at work goes on, and the model is told so once; ids are given once.

use adjutant_agent::{Agent, Journal, MemoryJournal, Record};
use adjutant_llm::{Gate, Script};
use adjutant_orchestration::{Background, BackgroundOptions};
use serde_json::json;

use super::{
    super::fan_out::desk::{
        answering, answers, calls, died_after, doing, messages, records, results, says,
    },
    helped_by, launches, lead, waits_for,
};

/// A helper that never answers.
fn never() -> impl adjutant_llm::Model + 'static {
    let gate = Gate::default();
    answering(9, move |_| says("Never.").wait_at(0, &gate))
}

/// The log of a run that launched a task and died when its second request was prepared.
async fn died(scripts: Vec<Script>) -> (MemoryJournal, Agent) {
    let whole = MemoryJournal::default();
    let (_, first) = lead(&helped_by(never()), scripts);
    let first = first.journal(whole.clone());
    first.run("Go.").await.expect("the run finishes");
    let left = died_after(&whole, first.session_id(), |it| {
        matches!(it, Record::Returned { .. })
    })
    .await;
    (left, first)
}

#[tokio::test(start_paused = true)]
async fn task_goes_on_and_is_told_of_when_the_program_was_lost_with_a_prepared_turn() {
    let whole = MemoryJournal::default();
    let (_, first) = lead(&helped_by(never()), [launches("a"), says("Done.")]);
    let first = first.journal(whole.clone());
    first.run("Go.").await.expect("the run finishes");
    let records = records(&whole, first.session_id()).await;
    let prepared = records.iter().filter(|it| it.thread == "main".into());
    let second = prepared
        .filter(|it| matches!(it.record, Record::Prepared { .. }))
        .nth(1)
        .expect("a second turn")
        .seq;
    let left = MemoryJournal::default();
    let mut own = left
        .own(first.session_id(), &adjutant_agent::Owner::default())
        .await
        .expect("nobody has it");
    let kept: Vec<_> = records
        .iter()
        .filter(|it| it.seq <= second)
        .cloned()
        .collect();
    own.append(&kept, adjutant_agent::Flush::Now)
        .await
        .expect("there is room");
    drop(own);
    let (model, again) = lead(&helped_by(doing(1)), [waits_for("task-1"), says("I see.")]);
    let again = again.journal(left).session(first.session_id().clone());
    let result = again.resume(Vec::new()).await.expect("the run finishes");
    let told = messages(&model.requests()[0]);
    assert!(
        told.iter()
            .any(|text| text.contains("go on: task-1 (helper)")),
        "{told:?}"
    );
    assert_eq!(answers(&result)[1]["result"], "did a.");
    let later = model.requests()[1].clone();
    assert_eq!(
        messages(&later)
            .iter()
            .filter(|text| text.contains("begun again"))
            .count(),
        1,
        "not again"
    );
}

#[tokio::test(start_paused = true)]
async fn task_is_lost_and_why_is_told_when_its_agent_is_not_known_any_more() {
    let (left, first) = died(vec![launches("a"), says("Done.")]).await;
    let other =
        Background::new(BackgroundOptions::new()).agent("other", "Helps.", Agent::new(doing(0)));
    let (model, again) = lead(
        &other,
        [
            calls("get_task", json!({"task_id": "task-1"})),
            says("I see."),
        ],
    );
    let again = again.journal(left).session(first.session_id().clone());
    let result = again.resume(Vec::new()).await.expect("the run finishes");
    let told = messages(&model.requests()[0]);
    let why = "no agent \"helper\" can be launched any more";
    assert!(
        told.iter()
            .any(|text| text.contains("task-1 (helper) is failed") && text.contains(why)),
        "{told:?}"
    );
    assert!(
        results(&result)[1].contains("is lost"),
        "{:?}",
        results(&result)
    );
}

#[tokio::test(start_paused = true)]
async fn id_is_given_once_when_the_program_began_again() {
    let (left, first) = died(vec![launches("a"), says("Done.")]).await;
    let (_, again) = lead(
        &helped_by(doing(1)),
        [launches("b"), waits_for("task-2"), says("Done.")],
    );
    let again = again.journal(left).session(first.session_id().clone());
    let result = again.resume(Vec::new()).await.expect("the run finishes");
    let ids: Vec<_> = answers(&result)
        .into_iter()
        .map(|it| it["task_id"].clone())
        .collect();
    assert_eq!(ids, ["task-1", "task-2", "task-2"]);
}

#[tokio::test(start_paused = true)]
async fn task_goes_on_when_the_program_died_before_its_launch_was_answered() {
    let whole = MemoryJournal::default();
    let (_, first) = lead(&helped_by(never()), [launches("a"), says("Done.")]);
    let first = first.journal(whole.clone());
    first.run("Go.").await.expect("the run finishes");
    let left = died_after(&whole, first.session_id(), |it| {
        matches!(it, Record::Launched { .. })
    })
    .await;
    let (model, again) = lead(&helped_by(doing(1)), [waits_for("task-1"), says("Done.")]);
    let again = again.journal(left).session(first.session_id().clone());
    let result = again.resume(Vec::new()).await.expect("the run finishes");
    let answers = answers(&result);
    assert_eq!(
        (&answers[0]["status"], &answers[1]["result"]),
        (&json!("launched"), &json!("did a."))
    );
    assert!(
        messages(&model.requests()[1])
            .iter()
            .all(|text| !text.contains("lost"))
    );
}

#[tokio::test(start_paused = true)]
async fn task_goes_on_when_another_program_launched_it_in_a_session_that_was_seen_before() {
    let (left, first) = died(vec![launches("a"), says("Done.")]).await;
    let background = helped_by(doing(1));
    let (_, before) = lead(&background, [says("Hi.")]);
    before
        .journal(MemoryJournal::default())
        .session(first.session_id().clone())
        .run("Hi.")
        .await
        .expect("it answers");
    let (_, again) = lead(&background, [waits_for("task-1"), says("I see.")]);
    let again = again.journal(left).session(first.session_id().clone());
    let result = again.resume(Vec::new()).await.expect("the run finishes");
    assert_eq!(answers(&result)[1]["result"], "did a.");
}

//! Background tasks over a restart: what was at work is lost, and the model is told so once; ids are given once.

use adjutant_agent::{Agent, MemoryJournal, Record};
use adjutant_llm::{Gate, Script};
use serde_json::json;

use super::{
    super::fan_out::desk::{answering, answers, calls, died_after, doing, messages, results, says},
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
    let left = died_after(&whole, first.session_id(), |it| matches!(it, Record::Returned { .. })).await;
    (left, first)
}

#[tokio::test(start_paused = true)]
async fn model_is_told_once_when_its_tasks_were_lost_with_the_program() {
    let (left, first) = died(vec![launches("a"), says("Done.")]).await;
    let script = [calls("list_tasks", json!({})), calls("get_task", json!({"task_id": "task-1"})), says("I see.")];
    let (model, again) = lead(&helped_by(doing(0)), script);
    let again = again.journal(left).session(first.session_id().clone());
    let result = again.resume(Vec::new()).await.expect("the run finishes");
    let requests = model.requests();
    let told: Vec<_> = messages(&requests[0]).into_iter().filter(|text| text.contains("lost")).collect();
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("task-1 (helper)"), "{told:?}");
    let later = messages(&requests[2]).into_iter().filter(|text| text.contains("lost")).count();
    assert_eq!(later, 1, "not again");
    assert_eq!(results(&result)[1], "[]");
    assert!(results(&result)[2].contains("no task \"task-1\""));
}

#[tokio::test(start_paused = true)]
async fn id_is_given_once_when_the_program_began_again() {
    let (left, first) = died(vec![launches("a"), says("Done.")]).await;
    let (_, again) = lead(&helped_by(doing(1)), [launches("b"), waits_for("task-2"), says("Done.")]);
    let again = again.journal(left).session(first.session_id().clone());
    let result = again.resume(Vec::new()).await.expect("the run finishes");
    let ids: Vec<_> = answers(&result).into_iter().map(|it| it["task_id"].clone()).collect();
    assert_eq!(ids, ["task-1", "task-2", "task-2"]);
}

#[tokio::test(start_paused = true)]
async fn task_goes_on_when_the_program_died_before_its_launch_was_answered() {
    let whole = MemoryJournal::default();
    let (_, first) = lead(&helped_by(never()), [launches("a"), says("Done.")]);
    let first = first.journal(whole.clone());
    first.run("Go.").await.expect("the run finishes");
    let left = died_after(&whole, first.session_id(), |it| matches!(it, Record::Launched { .. })).await;
    let (model, again) = lead(&helped_by(doing(1)), [waits_for("task-1"), says("Done.")]);
    let again = again.journal(left).session(first.session_id().clone());
    let result = again.resume(Vec::new()).await.expect("the run finishes");
    let answers = answers(&result);
    assert_eq!((&answers[0]["status"], &answers[1]["result"]), (&json!("launched"), &json!("did a.")));
    assert!(messages(&model.requests()[1]).iter().all(|text| !text.contains("lost")));
}

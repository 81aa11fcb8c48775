//! Bounds: how many tasks run, how many results wait, and whose they are.

use adjutant_agent::Agent;
use adjutant_llm::{Gate, Script, Status};
use adjutant_orchestration::{Background, BackgroundOptions, TaskState};
use serde_json::json;

use super::{
    super::fan_out::desk::{answering, calls, calls_all, doing, messages, says},
    helped_by, launches, lead, opens, run, waits_for,
};

fn order(task: &str) -> (&'static str, serde_json::Value) {
    ("launch_task", json!({"agent": "helper", "task": task}))
}

#[tokio::test(start_paused = true)]
async fn launch_is_refused_when_enough_tasks_run() {
    let gate = Gate::default();
    let helper = answering(8, move |_| says("Never.").wait_at(0, &gate));
    let orders: Vec<_> = (0..9).map(|_| order("a")).collect();
    let (_, agent) = lead(
        &helped_by(helper),
        [
            calls_all(&orders[..8]),
            calls_all(&orders[8..]),
            says("Done."),
        ],
    );
    let result = run(&agent).await;
    let statuses: Vec<_> = result.calls.iter().map(|call| call.result.status).collect();
    assert_eq!(
        (&statuses[..8], statuses[8]),
        (&[Status::Ok; 8][..], Status::Failed)
    );
    assert!(
        result.calls[8]
            .result
            .text()
            .contains("8 tasks run already"),
        "{}",
        result.calls[8].result.text()
    );
}

#[tokio::test(start_paused = true)]
async fn launch_is_refused_when_too_many_results_wait_to_be_read() {
    let long = "long ".repeat(1_000);
    let helper = answering(3, move |_| says(long.clone()));
    let background = Background::new(BackgroundOptions::new().max_unread(2));
    let background = background.agent("helper", "Helps.", Agent::new(helper));
    let gate = Gate::default();
    let script = [
        calls_all(&[order("a"), order("b")]),
        calls("open", json!({})),
        launches("c"),
        calls("get_task", json!({"task_id": "task-2"})),
        launches("c"),
        says("Done."),
    ];
    let (_, agent) = lead(&background, script);
    let result = run(&agent.tool(opens(&gate))).await;
    let (refused, taken) = (&result.calls[3].result, &result.calls[5].result);
    assert_eq!((refused.status, taken.status), (Status::Failed, Status::Ok));
    let text =
        "2 results wait to be read: read them with get_task first, task-1, task-2 for example";
    assert!(refused.text().starts_with(text), "{}", refused.text());
    let states: Vec<_> = background
        .snapshot()
        .iter()
        .map(|task| (task.id.to_string(), task.read))
        .collect();
    assert_eq!(
        states[..2],
        [("task-1".to_owned(), false), ("task-2".to_owned(), true)],
        "nothing unread is dropped"
    );
}

#[tokio::test(start_paused = true)]
async fn tasks_stay_bounded_when_an_agent_launches_a_thousand() {
    let rounds = (0..125).flat_map(|round| {
        let ids = (1..=8).map(|number| format!("task-{}", 8 * round + number));
        let waits: Vec<_> = ids
            .map(|id| ("get_task", json!({"task_id": id, "wait": true})))
            .collect();
        [calls_all(&vec![order("a"); 8]), calls_all(&waits)]
    });
    let script: Vec<Script> = rounds.chain([says("Done.")]).collect();
    let background = helped_by(doing(1_000));
    let (_, agent) = lead(&background, script);
    let result = agent
        .limits(adjutant_agent::Limits {
            max_turns: None,
            ..adjutant_agent::Limits::default()
        })
        .run("Go.")
        .await
        .expect("it finishes");
    assert_eq!(result.calls.len(), 2_000);
    assert!(
        result
            .calls
            .iter()
            .all(|call| call.result.status == Status::Ok)
    );
    let kept = background.snapshot();
    // Those of the last round were read after the last launch.
    let ids = (
        kept.first().map(|task| &*task.id),
        kept.last().map(|task| &*task.id),
    );
    assert_eq!(
        (kept.len(), ids),
        (40, (Some("task-961"), Some("task-1000"))),
        "the oldest that were read are gone"
    );
}

#[tokio::test(start_paused = true)]
async fn tasks_are_those_of_their_session_when_two_share_the_background() {
    let background = helped_by(doing(2));
    let (_, one) = lead(
        &background,
        [launches("a"), waits_for("task-1"), says("Done.")],
    );
    let (_, two) = lead(
        &background,
        [launches("b"), waits_for("task-1"), says("Done.")],
    );
    let (first, second) = (run(&one).await, run(&two).await);
    let texts = [first, second].map(|result| result.calls[1].result.text());
    assert!(
        texts[0].contains("did a.") && texts[1].contains("did b."),
        "{texts:?}"
    );
    background.forget(one.session_id());
    let left: Vec<_> = background
        .snapshot()
        .iter()
        .map(|task| task.session.clone())
        .collect();
    assert_eq!(left, [two.session_id().clone()]);
}

#[tokio::test(start_paused = true)]
async fn result_survives_its_run_when_it_was_not_read() {
    let gate = Gate::default();
    let long = "long ".repeat(1_000);
    let said = long.clone();
    let background = helped_by(answering(1, move |_| says(said.clone())));
    let script = [
        launches("a"),
        calls("open", json!({})),
        says("Done."),
        calls("get_task", json!({"task_id": "task-1"})),
        says("Read."),
    ];
    let (model, agent) = lead(&background, script);
    let agent = agent.tool(opens(&gate));
    run(&agent).await;
    assert_eq!(background.snapshot()[0].state, TaskState::Completed);
    assert!(!background.snapshot()[0].read);
    let result = agent.run("And now?").await.expect("the run finishes");
    assert!(result.calls[0].result.text().contains(&long));
    let reminders = messages(&model.requests()[4])
        .iter()
        .filter(|text| text.contains("lost"))
        .count();
    assert_eq!((reminders, background.snapshot()[0].read), (0, true));
}

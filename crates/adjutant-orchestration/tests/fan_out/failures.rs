//! What one task's failure means for the call and for the other tasks.

use std::sync::Arc;

use adjutant_agent::{Agent, AtLimit, EventKind, Limits, Outcome};
use adjutant_llm::{CallResult, Error, ErrorKind, Gate, Script, Status};
use adjutant_orchestration::{AtFailure, FanOutOptions};
use adjutant_tool::Replay;
use serde_json::{Value, json};

use super::{
    desk::{answering, calls, events, last, results, says, tool},
    lead, worker,
};

/// A reply that fails.
fn fails() -> Script {
    Script::new().fail(Error::new(ErrorKind::Invalid, "no such thing"))
}

fn statuses(details: &Value) -> Vec<&str> {
    details
        .as_array()
        .expect("one for each")
        .iter()
        .map(|it| it["status"].as_str().expect("a word"))
        .collect()
}

fn cancelling() -> FanOutOptions {
    FanOutOptions::new()
        .at_failure(AtFailure::CancelOthers)
        .max_concurrency(2)
}

#[tokio::test]
async fn failure_is_told_per_task_when_others_succeed() {
    let model = answering(3, |task| {
        if task == "b" {
            fails()
        } else {
            says(format!("did {task}."))
        }
    });
    let agent = lead(
        json!({"tasks": ["a", "b", "c"]}),
        worker(model),
        FanOutOptions::new(),
    );
    let result = agent.run("Go.").await.expect("the run finishes");
    let call = &result.calls[0].result;
    assert_eq!(
        (call.status, statuses(&call.details)),
        (Status::Ok, vec!["completed", "failed", "completed"])
    );
    let text = results(&result).remove(0);
    assert!(
        text.contains("## Task 2: b\n**Error:** the agent failed"),
        "{text}"
    );
    assert!(text.contains("no such thing"), "{text}");
    assert!(text.contains("## Task 3: c\ndid c.\n"), "{text}");
}

#[tokio::test]
async fn call_fails_when_every_task_has_failed() {
    let model = answering(2, |_| fails());
    let agent = lead(
        json!({"tasks": ["a", "b"]}),
        worker(model),
        FanOutOptions::new(),
    );
    let result = agent.run("Go.").await.expect("the run finishes");
    let call = &result.calls[0].result;
    assert_eq!(
        (call.status, statuses(&call.details)),
        (Status::Failed, vec!["failed", "failed"])
    );
    assert_eq!(result.text(), "Done.", "the model goes on");
}

#[tokio::test]
async fn agent_that_reached_its_limit_has_failed_when_it_is_one_of_many() {
    let step = tool("step", Replay::Pure, |_| async {
        Ok(CallResult::ok("stepped"))
    });
    let model = answering(1, |_| calls("step", json!({})));
    let agent = lead(
        json!({"tasks": ["a"]}),
        worker(model).tool(step).max_turns(1),
        FanOutOptions::new(),
    );
    let result = agent.run("Go.").await.expect("the run finishes");
    let text = "## Task 1: a\n**Error:** the agent reached its limit of max turns\n\n";
    assert_eq!(results(&result), [text]);
}

#[tokio::test]
async fn others_are_cancelled_when_one_fails_and_the_options_say_so() {
    let held = Gate::default();
    let model = answering(2, move |task| {
        if task == "slow" {
            says("Never.").wait_at(0, &held)
        } else {
            fails()
        }
    });
    let agent = lead(
        json!({"tasks": ["slow", "bad", "late"]}),
        worker(Arc::clone(&model)),
        cancelling(),
    );
    let result = agent.run("Go.").await.expect("the run finishes");
    let call = &result.calls[0].result;
    assert_eq!(
        statuses(&call.details),
        ["cancelled", "failed", "cancelled"]
    );
    assert_eq!(call.status, Status::Failed, "no task was completed");
    assert_eq!(
        call.details[0]["error"],
        "the agent was stopped by the parent"
    );
    assert_eq!(call.details[2]["error"], "not begun: another task failed");
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn model_decides_what_a_failure_stops_when_it_says_so() {
    let stops = [
        (Some(true), FanOutOptions::new(), "cancelled"),
        (Some(false), cancelling(), "completed"),
    ];
    for (stop, options, expected) in stops {
        let model = answering(2, |task| if task == "bad" { fails() } else { says("ok") });
        let args = json!({"tasks": ["bad", "good"], "stop_on_failure": stop});
        let agent = lead(args, worker(model), options.max_concurrency(1));
        let result = agent.run("Go.").await.expect("the run finishes");
        assert_eq!(
            statuses(&result.calls[0].result.details),
            ["failed", expected]
        );
    }
}

#[tokio::test]
async fn agent_that_waits_for_the_outside_is_given_up_when_another_fails() {
    let step = tool("step", Replay::Pure, |_| async {
        Ok(CallResult::ok("stepped"))
    });
    let gate = Gate::default();
    let held = gate.clone();
    let model = answering(2, move |task| match task {
        "asks" => calls("step", json!({})),
        _ => fails().wait_at(0, &held),
    });
    let asks = Agent::new(model).tool(step).limits(Limits {
        max_turns: Some(1),
        at_limit: AtLimit::Ask,
        ..Limits::default()
    });
    let agent = lead(json!({"tasks": ["asks", "bad"]}), asks, cancelling());
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let mut outcome = None;
    while let Some(event) = running.next().await {
        match &event.kind {
            EventKind::RunPaused { .. } if event.who.depth == 1 => gate.open(),
            EventKind::RunFinished { result } if event.who.depth == 0 => {
                outcome = Some(Arc::clone(result))
            }
            _ => {}
        }
    }
    let result = outcome.expect("the run does not wait");
    assert!(
        matches!(result.outcome, Outcome::Finished { .. }),
        "{:?}",
        result.outcome
    );
    assert_eq!(
        statuses(&result.calls[0].result.details),
        ["cancelled", "failed"]
    );
}

#[tokio::test]
async fn agent_that_panics_has_failed_when_others_go_on() {
    let model = answering(2, |task| {
        if task == "bad" {
            panic!("a defect of the model")
        } else {
            says("ok")
        }
    });
    let agent = lead(
        json!({"tasks": ["bad", "good"]}),
        worker(model),
        FanOutOptions::new().max_concurrency(1),
    );
    let result = last(&events(&agent).await);
    assert_eq!(
        statuses(&result.calls[0].result.details),
        ["failed", "completed"]
    );
}

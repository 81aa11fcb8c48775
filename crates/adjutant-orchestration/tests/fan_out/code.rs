//! Fan-out from code: by first agents, or by the children of a call.

use std::sync::Arc;

use adjutant_agent::{Agent, AgentFactory, EventKind};
use adjutant_llm::{CallResult, Gate, ScriptedModel};
use adjutant_orchestration::{ErrorKind, FanOut, FanOutOptions};
use adjutant_tool::{Replay, ToolError};
use serde_json::json;

use super::{
    desk::{answering, calls, doing, events, last, results, says, tool},
    worker,
};

fn tasks(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[tokio::test]
async fn first_agents_answer_in_order_when_code_fans_out() {
    let fan_out = FanOut::new(worker(doing(3))).options(FanOutOptions::new().max_concurrency(2));
    let mut ended = Vec::new();
    let factory = AgentFactory::root();
    let results = fan_out
        .run_with(&factory, &tasks(&["a", "b", "c"]), |at, _| ended.push(at))
        .await;
    let texts: Vec<_> = results
        .expect("there are tasks")
        .into_iter()
        .map(|it| it.expect("it ran").text())
        .collect();
    assert_eq!(texts, ["did a.", "did b.", "did c."]);
    ended.sort_unstable();
    assert_eq!(ended, [0, 1, 2]);
}

#[tokio::test]
async fn nothing_begins_when_code_gives_no_tasks_or_blank_ones() {
    let (model, factory) = (doing(0), AgentFactory::root());
    let fan_out =
        FanOut::new(worker(Arc::clone(&model))).options(FanOutOptions::new().max_tasks(2));
    for (names, expected) in [
        (&[][..], "at least one task is required"),
        (&["a", " "], "task 2 is blank: say what to do"),
        (&["a", "b", "c"], "3 tasks are too many at once: at most 2"),
    ] {
        let error = fan_out
            .run(&factory, &tasks(names))
            .await
            .expect_err("they are refused");
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::Invalid, expected)
        );
    }
    assert_eq!(model.requests().len(), 0);
}

#[tokio::test]
async fn children_are_cancelled_when_the_fan_out_is_dropped() {
    let gate = Gate::default();
    let held = gate.clone();
    let model = answering(1, move |_| says("Never.").wait_at(0, &held));
    let work = tool("work", Replay::Once, move |cx| {
        let (fan_out, gate) = (FanOut::new(worker(Arc::clone(&model))), gate.clone());
        async move {
            let (factory, tasks) = (AgentFactory::from_context(&cx)?, tasks(&["a"]));
            tokio::select! {
                _ = fan_out.run(&factory, &tasks) => Err(ToolError::failed("it ended")),
                () = gate.wait_until_reached() => Ok(CallResult::ok("Left it.")),
            }
        }
    });
    let model = ScriptedModel::new([calls("work", json!({})), says("Done.")]);
    let events = events(&Agent::new(model).tool(work)).await;
    let cancelled = events.iter().any(|event| match &event.kind {
        EventKind::ChildEnded { outcome, .. } => outcome.kind() == "cancelled",
        _ => false,
    });
    assert_eq!(
        (results(&last(&events)), cancelled),
        (vec!["Left it.".to_owned()], true)
    );
}

#[tokio::test]
async fn run_of_a_first_agent_stops_when_the_fan_out_is_dropped() {
    let gate = Gate::default();
    let held = gate.clone();
    let agent = worker(answering(1, move |_| says("Never.").wait_at(0, &held)));
    let (fan_out, factory, tasks) = (FanOut::new(agent), AgentFactory::root(), tasks(&["a"]));
    tokio::select! {
        _ = fan_out.run(&factory, &tasks) => unreachable!("the gate is closed"),
        () = gate.wait_until_reached() => {}
    }
}

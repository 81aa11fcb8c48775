//! What becomes of tasks when their run ends.

use std::sync::Arc;

use adjutant_agent::{Agent, EventKind, Limits, Outcome};
use adjutant_llm::{CallResult, Gate, Terminate};
use adjutant_orchestration::{AtEnd, Background, BackgroundOptions, TaskState};
use adjutant_tool::Replay;
use serde_json::json;

use super::{
    super::fan_out::desk::{answering, calls, calls_all, doing, events, messages, says, tool},
    helped_by, launches, lead, run,
};

fn waiting(model: impl adjutant_llm::Model + 'static) -> Background {
    let options = BackgroundOptions::new().at_end(AtEnd::Wait);
    Background::new(options).agent("helper", "Helps.", Agent::new(model).name("helper"))
}

async fn ended(background: &Background) -> Vec<TaskState> {
    let mut watch = background.watch();
    loop {
        let states: Vec<_> = watch.next().await.iter().map(|task| task.state).collect();
        if states.iter().all(|state| state.is_ended()) {
            return states;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_are_cancelled_when_their_run_ends() {
    let gate = Gate::default();
    let held = gate.clone();
    let background = helped_by(answering(1, move |_| says("Never.").wait_at(0, &held)));
    let script = [
        launches("a"),
        calls("wait", json!({})),
        says("Done."),
        says("Again."),
    ];
    let (model, agent) = lead(&background, script);
    let wait = tool("wait", Replay::Once, move |_| {
        let gate = gate.clone();
        async move {
            gate.wait_until_reached().await;
            Ok(CallResult::ok("reached"))
        }
    });
    let agent = agent.tool(wait);
    let events = events(&agent).await;
    let cancelled = events.iter().position(|event| match &event.kind {
        EventKind::ChildEnded { outcome, .. } => matches!(**outcome, Outcome::Cancelled { .. }),
        _ => false,
    });
    assert!(
        cancelled.expect("it ended") < events.len() - 1,
        "before the run did"
    );
    assert_eq!(ended(&background).await, [TaskState::Cancelled]);
    assert!(
        agent.queue().is_empty(),
        "of what ended with the run, nobody is told at once"
    );
    agent.run("And now?").await.expect("the run finishes");
    let told = messages(&model.requests()[3]);
    assert!(
        told[2].starts_with("These background tasks are lost"),
        "{told:?}"
    );
    assert!(told[2].contains("task-1 (helper)"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn run_goes_on_until_all_tasks_have_ended_when_the_options_say_so() {
    let gate = Gate::default();
    let held = gate.clone();
    let background = waiting(answering(2, move |task| match task {
        "slow" => says("did slow.").wait_at(0, &held),
        other => says(format!("did {other}.")),
    }));
    let order = |task: &str| ("launch_task", json!({"agent": "helper", "task": task}));
    let script = [
        calls_all(&[order("slow"), order("fast")]),
        says("Waiting."),
        says("One more."),
        says("All."),
    ];
    let (model, agent) = lead(&background, script);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let mut ended = 0;
    while let Some(event) = running.next().await {
        if matches!(event.kind, EventKind::ChildEnded { .. }) {
            ended += 1;
            gate.open();
        }
    }
    let result = running
        .result()
        .expect("it has ended")
        .expect("it did not fail")
        .clone();
    assert_eq!((result.text().as_str(), ended), ("All.", 2));
    let told = messages(model.requests().last().expect("there are some"));
    assert_eq!(
        told,
        [
            "Go.",
            "The background task task-2 (helper) is completed:\ndid fast.",
            "The background task task-1 (helper) is completed:\ndid slow.",
        ]
    );
    model.assert_done();
}

#[tokio::test(start_paused = true)]
async fn run_ends_when_it_waits_for_tasks_and_is_stopped() {
    let gate = Gate::default();
    let held = gate.clone();
    let background = waiting(answering(1, move |_| says("Never.").wait_at(0, &held)));
    let (_, agent) = lead(&background, [launches("a"), says("Waiting.")]);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let stopper = running.stopper();
    let mut replies = 0;
    while let Some(event) = running.next().await {
        if matches!(event.kind, EventKind::ReplyFinished { .. }) && event.who.depth == 0 {
            replies += 1;
            if replies == 2 {
                stopper.stop(adjutant_agent::CancelBy::User);
            }
        }
    }
    let result = running
        .result()
        .expect("it has ended")
        .expect("it did not fail");
    assert_eq!(result.text(), "Waiting.");
    assert_eq!(ended(&background).await, [TaskState::Cancelled]);
}

#[tokio::test(start_paused = true)]
async fn run_does_not_wait_for_tasks_when_a_limit_or_a_tool_ends_it() {
    let finish = tool("finish", Replay::Once, |_| async {
        Ok(CallResult {
            terminate: Terminate::Now,
            ..CallResult::ok("bye")
        })
    });
    let never = || {
        let gate = Gate::default();
        answering(1, move |_| says("Never.").wait_at(0, &gate))
    };
    let (_, agent) = lead(
        &waiting(never()),
        [launches("a"), calls("finish", json!({}))],
    );
    let result = run(&agent.tool(finish)).await;
    assert!(matches!(result.outcome, Outcome::Finished { .. }));
    let (_, agent) = lead(&waiting(never()), [launches("a")]);
    let result = run(&agent.limits(Limits {
        max_turns: Some(1),
        ..Limits::default()
    }))
    .await;
    assert!(matches!(result.outcome, Outcome::Limit { .. }));
}

#[tokio::test(start_paused = true)]
async fn run_ends_at_once_when_it_would_wait_and_nothing_runs() {
    let background = waiting(doing(1));
    let (model, agent) = lead(
        &background,
        [launches("a"), super::waits_for("task-1"), says("Done.")],
    );
    assert_eq!(run(&agent).await.text(), "Done.");
    assert_eq!(Arc::clone(&model).requests().len(), 3);
}

//! Background tasks: launched, looked at, waited for, stopped, told of.

#[path = "background/ends.rs"]
mod ends;
#[path = "background/kept.rs"]
mod kept;
#[path = "background/lost.rs"]
mod lost;
#[path = "background/rooms.rs"]
mod rooms;
#[path = "background/told.rs"]
mod told;

use std::{sync::Arc, time::Duration};

use adjutant_agent::{Agent, RunResult};
use adjutant_llm::{CallResult, Gate, Model, Script, ScriptedModel, Status};
use adjutant_orchestration::{Background, BackgroundOptions, TaskState};
use adjutant_tool::Replay;
use serde_json::{Value, json};

use super::fan_out::desk::{
    answering, answers, calls, calls_all, doing, newest, results, says, tool,
};

/// Tasks for a `helper` with this model.
pub(super) fn helped_by(model: impl Model + 'static) -> Background {
    Background::new(BackgroundOptions::new()).agent(
        "helper",
        "Helps.",
        Agent::new(model).name("helper"),
    )
}

/// An agent with these replies that launches tasks.
pub(super) fn lead(
    background: &Background,
    scripts: impl IntoIterator<Item = Script>,
) -> (Arc<ScriptedModel>, Agent) {
    let model = Arc::new(ScriptedModel::new(scripts));
    let agent = background.install(Agent::new(Arc::clone(&model)).name("lead"));
    (model, agent)
}

/// A reply that launches the helper.
pub(super) fn launches(task: &str) -> Script {
    calls("launch_task", json!({"agent": "helper", "task": task}))
}

/// A reply that waits for a task.
pub(super) fn waits_for(task_id: &str) -> Script {
    calls("get_task", json!({"task_id": task_id, "wait": true}))
}

async fn run(agent: &Agent) -> RunResult {
    agent.run("Go.").await.expect("the run finishes")
}

/// A tool `open` that opens a gate, and lets everyone else go on.
pub(super) fn opens(gate: &Gate) -> impl adjutant_tool::ErasedTool + 'static {
    let gate = gate.clone();
    tool("open", Replay::Once, move |_| {
        let gate = gate.clone();
        async move {
            gate.open();
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok(CallResult::ok("opened"))
        }
    })
}

#[tokio::test(start_paused = true)]
async fn tools_are_there_when_tasks_are_installed() {
    let (model, agent) = lead(&helped_by(doing(0)), [says("Done.")]);
    run(&agent).await;
    let names: Vec<_> = model.requests()[0]
        .tools
        .iter()
        .map(|it| it.name.to_string())
        .collect();
    assert_eq!(
        names,
        ["launch_task", "get_task", "list_tasks", "stop_task"]
    );
    let (model, agent) = lead(&Background::new(BackgroundOptions::new()), [says("Done.")]);
    run(&agent).await;
    assert_eq!(
        model.requests()[0].tools.len(),
        3,
        "nothing can be launched"
    );
}

#[tokio::test(start_paused = true)]
async fn result_is_given_when_the_model_waits_for_it() {
    let (model, agent) = lead(
        &helped_by(doing(1)),
        [launches("a"), waits_for("task-1"), says("Done.")],
    );
    let result = run(&agent).await;
    assert_eq!(
        answers(&result),
        [
            json!({"task_id": "task-1", "agent": "helper", "status": "launched"}),
            json!({"task_id": "task-1", "agent": "helper", "status": "completed", "result": "did a."}),
        ]
    );
    assert_eq!(
        model.requests().len(),
        3,
        "the message that would tell it was taken back"
    );
    assert!(agent.queue().is_empty());
    assert_eq!(
        (result.usage.total(), result.total_usage.total()),
        (330, 440)
    );
}

#[tokio::test(start_paused = true)]
async fn status_is_running_when_the_model_does_not_wait_or_waits_too_short() {
    let gate = Gate::default();
    let held = gate.clone();
    let helper = answering(1, move |_| says("did it.").wait_at(0, &held));
    let script = [
        launches("a"),
        calls("get_task", json!({"task_id": "task-1"})),
        calls(
            "get_task",
            json!({"task_id": "task-1", "wait": true, "timeout_ms": 5_000}),
        ),
        says("Done."),
    ];
    let began = tokio::time::Instant::now();
    let (_, agent) = lead(&helped_by(helper), script);
    let result = run(&agent).await;
    let running =
        json!({"task_id": "task-1", "agent": "helper", "status": "running", "progress": ""});
    assert_eq!(answers(&result)[1..], [running.clone(), running]);
    assert_eq!(began.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_when_the_run_is_stopped() {
    let gate = Gate::default();
    let helper = answering(1, move |_| says("Never.").wait_at(0, &gate));
    let (_, agent) = lead(&helped_by(helper), [launches("a"), waits_for("task-1")]);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let stopper = running.stopper();
    let mut started = 0;
    while let Some(event) = running.next().await {
        if matches!(event.kind, adjutant_agent::EventKind::ToolStarted { .. }) {
            started += 1;
            if started == 2 {
                stopper.stop(adjutant_agent::CancelBy::User);
            }
        }
    }
    let result = running
        .result()
        .expect("it has ended")
        .expect("it did not fail");
    assert_eq!(
        (result.outcome.kind(), result.calls[1].result.status),
        ("cancelled", Status::Cancelled)
    );
}

#[tokio::test(start_paused = true)]
async fn task_is_unknown_when_there_is_none_of_that_id() {
    let script = [
        calls_all(&[
            ("get_task", json!({"task_id": "task-9"})),
            ("stop_task", json!({"task_id": "task-9"})),
        ]),
        says("Done."),
    ];
    let (_, agent) = lead(&helped_by(doing(0)), script);
    let result = run(&agent).await;
    for call in &result.calls {
        assert_eq!(call.result.status, Status::InvalidArguments);
        assert!(
            call.result.text().contains("no task \"task-9\""),
            "{}",
            call.result.text()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn launch_is_refused_when_agent_or_task_are_missing() {
    let orders = [
        json!({"task": "a"}),
        json!({"agent": "helper"}),
        json!({"agent": "nobody", "task": "a"}),
        json!({"agent": "helper", "task": " "}),
        json!({"agent": "helper", "task": "a", "max_turns": 0}),
    ];
    let calls: Vec<_> = orders
        .into_iter()
        .map(|order| ("launch_task", order))
        .collect();
    let (_, agent) = lead(&helped_by(doing(0)), [calls_all(&calls), says("Done.")]);
    let result = run(&agent).await;
    let statuses: Vec<_> = result.calls.iter().map(|call| call.result.status).collect();
    assert_eq!(statuses, [Status::InvalidArguments; 5]);
}

#[tokio::test(start_paused = true)]
async fn tasks_are_listed_in_the_order_of_their_launch_when_several_run() {
    let (gate, opened) = (Gate::default(), Gate::default());
    let held = gate.clone();
    let helper = answering(3, move |task| match task {
        "b" => says("did b."),
        other => says(format!("did {other}.")).wait_at(0, &held),
    });
    let order = |task: &str| ("launch_task", json!({"agent": "helper", "task": task}));
    let script = [
        calls_all(&[order("a"), order("b"), order("c")]),
        calls("open", json!({})),
        calls("list_tasks", json!({})),
        says("Done."),
    ];
    let (_, agent) = lead(&helped_by(helper), script);
    let result = run(&agent.tool(opens(&opened))).await;
    let listed = serde_json::from_str::<Value>(&results(&result)[4]).expect("the result is JSON");
    let line = |id: &str, task: &str, status: &str, progress: &str| json!({"task_id": id, "agent": "helper", "status": status, "task": task, "progress": progress});
    let expected = [
        line("task-1", "a", "running", ""),
        line("task-2", "b", "completed", "did b."),
        line("task-3", "c", "running", ""),
    ];
    assert_eq!(listed, Value::from_iter(expected));
}

#[tokio::test(start_paused = true)]
async fn progress_is_what_the_agent_did_last_when_it_is_listed() {
    let gate = Gate::default();
    let held = gate.clone();
    let step = tool("step", Replay::Pure, move |_| {
        let held = held.clone();
        async move {
            held.wait_until_reached().await;
            Ok(CallResult::ok("stepped"))
        }
    });
    let helper = ScriptedModel::new([calls("step", json!({})), says("Stepped.")]);
    let background = Background::new(BackgroundOptions::new());
    let background = background.agent("helper", "Helps.", Agent::new(helper).tool(step));
    let script = [
        launches("a"),
        calls(
            "get_task",
            json!({"task_id": "task-1", "wait": true, "timeout_ms": 1_000}),
        ),
        says("Done."),
    ];
    let (_, agent) = lead(&background, script);
    assert_eq!(answers(&run(&agent).await)[1]["progress"], "calls step");
}

#[tokio::test(start_paused = true)]
async fn task_is_cancelled_when_the_model_stops_it() {
    let gate = Gate::default();
    let helper = answering(1, move |_| says("Never.").wait_at(0, &gate));
    let script = [
        launches("a"),
        calls("stop_task", json!({"task_id": "task-1"})),
        calls("get_task", json!({"task_id": "task-1"})),
        calls("stop_task", json!({"task_id": "task-1"})),
        says("Done."),
    ];
    let (model, agent) = lead(&helped_by(helper), script);
    let answers = answers(&run(&agent).await);
    assert_eq!(
        answers[1],
        json!({"task_id": "task-1", "status": "cancelled", "message": "it was stopped"})
    );
    assert_eq!(
        (&answers[2]["status"], &answers[2]["error"]),
        (
            &json!("cancelled"),
            &json!("the agent was stopped by the parent")
        )
    );
    assert_eq!(answers[3]["message"], "it had ended before");
    assert_eq!(model.requests().len(), 5, "nothing more is told");
}

#[tokio::test(start_paused = true)]
async fn task_counts_as_completed_when_it_had_a_result_before_it_was_stopped() {
    let gate = Gate::default();
    let script = [
        launches("a"),
        calls("open", json!({})),
        calls("stop_task", json!({"task_id": "task-1"})),
        waits_for("task-1"),
        says("Done."),
        says("Done."),
    ];
    let background = helped_by(doing(1));
    let (_, agent) = lead(&background, script);
    let answers = results(&run(&agent.tool(opens(&gate))).await);
    let stopped: Value = serde_json::from_str(&answers[2]).expect("the result is JSON");
    assert_eq!(
        stopped,
        json!({"task_id": "task-1", "status": "completed", "message": "it had ended before"})
    );
    assert_eq!(background.snapshot()[0].state, TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn turns_are_limited_when_the_launch_says_so() {
    let step = || {
        tool("step", Replay::Pure, |_| async {
            Ok(CallResult::ok("stepped"))
        })
    };
    let model = Arc::new(ScriptedModel::new((0..9).map(|_| calls("step", json!({})))));
    let helper = || Agent::new(Arc::clone(&model)).tool(step());
    let background = Background::new(BackgroundOptions::new()).agent("helper", "Helps.", helper());
    let both = background.tool("research", "Finds things out.", helper());
    let script = [
        calls(
            "launch_task",
            json!({"agent": "helper", "task": "a", "max_turns": 2}),
        ),
        waits_for("task-1"),
        calls("research", json!({"task": "b", "max_turns": 3})),
        calls(
            "research",
            json!({"task": "b", "max_turns": 1, "background": true}),
        ),
        waits_for("task-2"),
        says("Done."),
    ];
    let (_, agent) = lead(&background, script);
    let results = results(&run(&agent.tool(both)).await);
    let error =
        |at: usize| serde_json::from_str::<Value>(&results[at]).expect("JSON")["error"].clone();
    assert_eq!(
        (error(1), error(4)),
        (json!("the agent reached its limit of max turns"), error(1))
    );
    assert_eq!(
        (&*results[2], model.requests().len()),
        ("the agent reached its limit of max turns", 6)
    );
}

#[tokio::test(start_paused = true)]
async fn agent_tool_answers_in_place_when_it_is_not_called_in_the_background() {
    let background = Background::new(BackgroundOptions::new());
    let both = background.tool(
        "research",
        "Finds things out.",
        Agent::new(doing(2)).name("researcher"),
    );
    let script = [
        calls("research", json!({"task": "a"})),
        calls("research", json!({"task": "b", "background": true})),
        waits_for("task-1"),
        calls("research", json!({"background": true})),
        says("Done."),
    ];
    let (model, agent) = lead(&background, script);
    let result = run(&agent.tool(both)).await;
    let texts = results(&result);
    assert_eq!(texts[0], "did a.");
    assert_eq!(
        texts[1],
        r#"{"task_id":"task-1","agent":"research","status":"launched"}"#
    );
    assert_eq!(
        texts[2],
        r#"{"task_id":"task-1","agent":"research","status":"completed","result":"did b."}"#
    );
    assert_eq!(result.calls[3].result.status, Status::InvalidArguments);
    let shown = model.requests()[0]
        .tools
        .iter()
        .find(|it| it.name.as_str() == "research")
        .expect("shown")
        .clone();
    assert_eq!(shown.schema["properties"]["background"]["type"], "boolean");
}

#[tokio::test(start_paused = true)]
async fn task_knows_nothing_of_the_conversation_when_it_is_launched() {
    let helper = doing(1);
    let (_, agent) = lead(
        &helped_by(Arc::clone(&helper)),
        [launches("a"), waits_for("task-1"), says("Done.")],
    );
    run(&agent).await;
    let request = &helper.requests()[0];
    assert_eq!(
        (newest(request), request.entries.len(), request.tools.len()),
        ("a".to_owned(), 1, 0)
    );
}

//! How the agent that launched a task, hooks and applications hear of its end.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use adjutant_agent::{
    Agent, EventKind, Verdict,
    points::{SubagentStarted, SubagentStopped},
};
use adjutant_llm::{CallResult, Entry, Error, ErrorKind, Gate, Origin, Script};
use adjutant_orchestration::{Background, BackgroundOptions, TaskState};
use adjutant_tool::{Approval, ToolSpec, tool_fn};
use serde_json::json;

use super::{
    super::fan_out::desk::{
        answering, answers, calls, doing, events, last, messages, results, says,
    },
    helped_by, launches, lead, opens, run,
};

#[tokio::test(start_paused = true)]
async fn agent_is_told_when_a_task_has_ended() {
    let gate = Gate::default();
    let (model, agent) = lead(
        &helped_by(doing(1)),
        [
            launches("a"),
            calls("open", json!({})),
            says("Heard."),
            says("Never."),
        ],
    );
    let result = run(&agent.tool(opens(&gate))).await;
    assert_eq!(result.text(), "Heard.");
    let told = messages(&model.requests()[2]);
    assert_eq!(
        told,
        [
            "Go.",
            "The background task task-1 (helper) is completed:\ndid a."
        ]
    );
    let origins = result.entries.iter().filter_map(|entry| match entry {
        Entry::User(message) => Some(message.origin.clone()),
        _ => None,
    });
    let origins: Vec<_> = origins.collect();
    assert!(
        matches!(&origins[1], Origin::Peer { from } if from.as_str().ends_with("/task")),
        "{origins:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn rest_can_be_read_when_the_message_holds_only_the_beginning() {
    let gate = Gate::default();
    let long = "é".repeat(5_000);
    let said = long.clone();
    let background = helped_by(answering(1, move |_| says(said.clone())));
    let script = [
        launches("a"),
        calls("open", json!({})),
        calls("get_task", json!({"task_id": "task-1"})),
        says("Done."),
    ];
    let (model, agent) = lead(&background, script);
    let result = run(&agent.tool(opens(&gate))).await;
    let told = messages(&model.requests()[2]).remove(1);
    assert!(
        told.len() < 4_200 && told.ends_with("[10000 bytes in all: get_task gives the rest]"),
        "{}",
        told.len()
    );
    assert!(results(&result)[2].contains(&long));
    assert!(background.snapshot()[0].read);
}

#[tokio::test(start_paused = true)]
async fn agent_is_told_why_when_a_task_has_failed() {
    let failing = answering(2, |task| match task {
        "panics" => panic!("a defect of the model"),
        _ => Script::new().fail(Error::new(ErrorKind::Invalid, "no such thing")),
    });
    let gate = Gate::default();
    let background = helped_by(failing);
    let order = |task: &str| ("launch_task", json!({"agent": "helper", "task": task}));
    let both = super::super::fan_out::desk::calls_all(&[order("fails"), order("panics")]);
    let (model, agent) = lead(
        &background,
        [both, calls("open", json!({})), says("One."), says("Two.")],
    );
    run(&agent.tool(opens(&gate))).await;
    let told = messages(model.requests().last().expect("there are some"));
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(
        told[1].starts_with("The background task task-1 (helper) is failed:\n"),
        "{told:?}"
    );
    assert!(
        told.iter().any(|text| text.contains("no such thing")),
        "{told:?}"
    );
    let states: Vec<_> = background
        .snapshot()
        .iter()
        .map(|task| (task.state, task.read))
        .collect();
    assert_eq!(
        states,
        [(TaskState::Failed, true), (TaskState::Failed, true)]
    );
}

#[tokio::test(start_paused = true)]
async fn agent_is_named_when_it_is_registered_under_a_name() {
    let gate = Gate::default();
    let nameless =
        Background::new(BackgroundOptions::new()).agent("helper", "Helps.", Agent::new(doing(1)));
    let (_, agent) = lead(
        &nameless,
        [launches("a"), calls("open", json!({})), says("Done.")],
    );
    let events = events(&agent.tool(opens(&gate))).await;
    let names: Vec<_> = events
        .iter()
        .filter(|it| it.who.depth == 1)
        .map(|it| it.who.name.to_string())
        .collect();
    assert!(
        !names.is_empty() && names.iter().all(|name| name == "helper"),
        "{names:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn agent_is_told_when_the_application_stops_a_task() {
    let held = Gate::default();
    let background = helped_by(answering(1, move |_| says("Never.").wait_at(0, &held)));
    let stopping = background.clone();
    let stop = super::super::fan_out::desk::tool("open", adjutant_tool::Replay::Once, move |_| {
        let background = stopping.clone();
        async move {
            let task = background.snapshot().remove(0);
            assert!(background.stop(&task), "it runs");
            // Time passes only when nothing else can move: the task has ended.
            tokio::time::sleep(Duration::from_millis(1)).await;
            assert_ne!(background.snapshot()[0].state, TaskState::Running);
            assert!(!background.stop(&task), "it has ended");
            Ok(adjutant_llm::CallResult::ok("stopped"))
        }
    });
    let (model, agent) = lead(
        &background,
        [launches("a"), calls("open", json!({})), says("Done.")],
    );
    run(&agent.tool(stop)).await;
    let told = messages(&model.requests()[2]);
    assert_eq!(
        told[1],
        "The background task task-1 (helper) is cancelled:\nthe agent was stopped by the parent"
    );
}

#[tokio::test(start_paused = true)]
async fn events_tell_of_a_task_when_it_is_launched_and_when_it_has_ended() {
    let gate = Gate::default();
    let (_, agent) = lead(
        &helped_by(doing(1)),
        [launches("a"), calls("open", json!({})), says("Done.")],
    );
    let events = events(&agent.tool(opens(&gate))).await;
    let told = events.iter().filter_map(|event| match &event.kind {
        EventKind::App { kind, data, .. } => Some((kind.to_string(), data["status"].clone())),
        EventKind::ChildOpened { .. } => Some(("child opened".to_owned(), json!(null))),
        EventKind::ChildEnded { .. } => Some(("child ended".to_owned(), json!(null))),
        _ => None,
    });
    let mut told: Vec<_> = told.collect();
    // Which of the two is first, the launch or the child, is not said.
    told[..2].sort_by(|one, two| one.0.cmp(&two.0));
    let expected = [
        ("background.launched", json!(null)),
        ("child opened", json!(null)),
        ("child ended", json!(null)),
        ("background.ended", json!("completed")),
    ];
    assert_eq!(
        told,
        expected.map(|(kind, status)| (kind.to_owned(), status))
    );
}

#[tokio::test(start_paused = true)]
async fn hooks_hear_of_tasks_when_they_begin_and_when_they_end() {
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let (one, two) = (Arc::clone(&heard), Arc::clone(&heard));
    let helper = answering(2, |task| match task {
        "bad" => Script::new().fail(Error::new(ErrorKind::Invalid, "no")),
        _ => says("ok"),
    });
    let (_, agent) = lead(
        &helped_by(helper),
        [
            launches("good"),
            super::waits_for("task-1"),
            launches("bad"),
            super::waits_for("task-2"),
            says("Done."),
        ],
    );
    let agent = agent
        .on(move |_, point: SubagentStarted| {
            one.lock()
                .expect("nobody panics inside")
                .push(format!("started {}", point.child.name));
            async move { Verdict::Pass(point) }
        })
        .on(move |_, point: SubagentStopped| {
            two.lock()
                .expect("nobody panics inside")
                .push(format!("stopped {}", point.result.outcome.kind()));
            async move { Verdict::Pass(point) }
        });
    run(&agent).await;
    let heard = heard.lock().expect("nobody panics inside").clone();
    assert_eq!(
        heard,
        [
            "started helper",
            "stopped finished",
            "started helper",
            "stopped failed"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn task_fails_when_a_hook_denies_its_agent() {
    let (_, agent) = lead(
        &helped_by(doing(0)),
        [launches("a"), super::waits_for("task-1"), says("Done.")],
    );
    let agent = agent
        .on(|_, _: SubagentStarted| async { Verdict::<SubagentStarted>::Deny("not today".into()) });
    let answer = answers(&run(&agent).await).remove(1);
    assert_eq!(
        (&answer["status"], &answer["error"]),
        (
            &json!("failed"),
            &json!("the agent may not begin: not today")
        )
    );
}

#[tokio::test(start_paused = true)]
async fn watcher_sees_each_state_when_tasks_come_and_go() {
    let gate = Gate::default();
    let held = gate.clone();
    let background = helped_by(answering(1, move |_| says("did a.").wait_at(0, &held)));
    let mut watch = background.watch();
    assert_eq!(watch.next().await, []);
    let (_, agent) = lead(
        &background,
        [launches("a"), super::waits_for("task-1"), says("Done.")],
    );
    let running = tokio::spawn(async move { last(&events(&agent).await) });
    let mut states = Vec::new();
    while states.last() != Some(&(TaskState::Completed, true)) {
        let state = watch
            .next()
            .await
            .first()
            .map(|task| (task.state, task.read));
        if let Some(state) = state.filter(|state| states.last() != Some(state)) {
            states.push(state);
            gate.open();
        }
    }
    assert_eq!(running.await.expect("it does not panic").text(), "Done.");
    assert_eq!(states.first(), Some(&(TaskState::Running, false)));
    let task = background.snapshot().remove(0);
    assert_eq!(
        (&*task.id, &*task.agent, &*task.task, &*task.text),
        ("task-1", "helper", "a", "did a.")
    );
    assert_eq!(task.usage.total(), 110);
}

#[tokio::test(start_paused = true)]
async fn pause_is_known_at_once_when_a_task_is_still_at_work() {
    let gate = Gate::default();
    let until = gate.clone();
    let background = helped_by(answering(1, move |_| says("Found.").wait_at(0, &until)));
    let (_, agent) = lead(&background, [launches("a"), calls("pay", json!({}))]);
    let spec = ToolSpec {
        approval: Approval::Always,
        ..ToolSpec::new("pay", "Pays.", json!({"type": "object"}))
    };
    let agent = agent.tool(tool_fn(spec, |_, _| async { Ok(CallResult::ok("paid")) }));
    let mut running = agent.run("Go.").stream().expect("the session is free");
    // Until nothing happens any more: the task waits, and the run for an answer.
    while tokio::time::timeout(Duration::from_secs(1), running.next())
        .await
        .is_ok_and(|event| event.is_some())
    {}
    let pauses = agent.log().pauses();
    assert_eq!((pauses.len(), pauses[0].agent.as_ref()), (1, "lead"));
    gate.open();
    let result = running.finish().await.expect("the run waits");
    assert_eq!(result.pauses(), pauses);
}

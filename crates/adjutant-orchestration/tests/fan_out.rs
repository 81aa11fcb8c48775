//! Fan-out: each of several tasks for an agent of its own.

#[path = "fan_out/code.rs"]
mod code;
#[path = "fan_out/desk.rs"]
pub(crate) mod desk;
#[path = "fan_out/failures.rs"]
mod failures;
#[path = "fan_out/resumed.rs"]
mod resumed;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use adjutant_agent::{Agent, Caps, EventKind, Limits};
use adjutant_llm::{CallResult, Gate, Model, ScriptedModel, Status};
use adjutant_orchestration::{FanOutOptions, fan_out_tool};
use adjutant_tool::Replay;
use serde_json::{Value, json};

use desk::{answering, calls, doing, events, last, results, says, tool};

/// An agent that fans out these tasks with these options, and then is done.
pub(super) fn lead(args: Value, template: Agent, options: FanOutOptions) -> Agent {
    let model = ScriptedModel::new([calls("each", args), says("Done.")]);
    Agent::new(model)
        .name("lead")
        .tool(fan_out_tool("each", "Does each.", template, options))
}

/// An agent with this model that can be opened many times.
pub(super) fn worker(model: impl Model + 'static) -> Agent {
    Agent::new(model).name("worker")
}

#[tokio::test]
async fn answers_come_in_the_order_of_tasks_when_agents_end_in_another() {
    let gate = Gate::default();
    let (held, opened) = (gate.clone(), gate);
    let model = answering(3, move |task| match task {
        "a" => says("did a.").wait_at(0, &held),
        other => says(format!("did {other}.")),
    });
    let agent = lead(
        json!({"tasks": ["a", "b", "c"]}),
        worker(model),
        FanOutOptions::new(),
    );
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let (mut ended, mut result) = (Vec::new(), None);
    while let Some(event) = running.next().await {
        match &event.kind {
            EventKind::ToolProgress { progress, .. } => {
                ended.push(progress.details.clone());
                if ended.len() == 2 {
                    opened.open();
                }
            }
            EventKind::RunFinished { result: at_end } => result = Some(Arc::clone(at_end)),
            _ => {}
        }
    }
    let result = result.expect("the run finishes");
    let text = "## Task 1: a\ndid a.\n\n## Task 2: b\ndid b.\n\n## Task 3: c\ndid c.\n\n";
    assert_eq!(
        (results(&result), result.text().as_str()),
        (vec![text.to_owned()], "Done.")
    );
    let at = |done: usize, task: usize| json!({"done": done, "of": 3, "task": task, "status": "completed"});
    assert_eq!(ended, [at(1, 2), at(2, 3), at(3, 1)]);
}

#[tokio::test]
async fn call_is_refused_when_there_are_no_tasks_or_they_are_none() {
    let orders = [
        json!({"tasks": []}),
        json!({}),
        json!({"tasks": "a"}),
        json!({"tasks": ["a", "  "]}),
        json!({"tasks": ["a", "b", "c", "d"]}),
    ];
    let model = doing(0);
    for args in orders {
        let agent = lead(
            args.clone(),
            worker(Arc::clone(&model)),
            FanOutOptions::new().max_tasks(3),
        );
        let result = agent.run("Go.").await.expect("the run finishes");
        assert_eq!(
            result.calls[0].result.status,
            Status::InvalidArguments,
            "{args}"
        );
    }
    assert_eq!(model.requests().len(), 0);
}

#[tokio::test]
async fn details_tell_each_task_when_the_application_looks() {
    let agent = lead(
        json!({"tasks": ["a", "b"]}),
        worker(doing(2)),
        FanOutOptions::new().max_concurrency(1),
    );
    let result = agent.run("Go.").await.expect("the run finishes");
    let details = &result.calls[0].result.details;
    assert_eq!(details[0]["task"], "a");
    assert_eq!(
        (&details[1]["status"], &details[1]["result"]),
        (&json!("completed"), &json!("did b."))
    );
    assert_eq!(
        (
            &details[0]["usage"]["input_uncached"],
            &details[0]["usage"]["output"]
        ),
        (&json!(100), &json!(10))
    );
    assert_eq!(
        (result.usage.total(), result.total_usage.total()),
        (220, 440),
        "each agent counts once"
    );
}

/// Runs `tasks` tasks and says how many agents were at work at a time at most.
async fn busiest(tasks: usize, options: FanOutOptions, caps: Option<Caps>) -> (usize, Vec<Status>) {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let max = Arc::clone(&most);
    let step = tool("step", Replay::Pure, move |_| {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // Time passes only when nothing else can move: whoever may work beside this one does.
            tokio::time::sleep(Duration::from_millis(1)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(CallResult::ok("stepped"))
        }
    });
    let model = answering(2 * tasks, |task| {
        if task.is_empty() {
            says("ok")
        } else {
            calls("step", json!({}))
        }
    });
    let names: Vec<_> = (0..tasks).map(|number| number.to_string()).collect();
    let agent = lead(json!({"tasks": names}), worker(model).tool(step), options);
    let agent = match caps {
        Some(caps) => agent.limits(Limits {
            caps,
            ..Limits::default()
        }),
        None => agent,
    };
    let result = agent.run("Go.").await.expect("the run finishes");
    let details = result.calls[0]
        .result
        .details
        .as_array()
        .expect("one for each")
        .clone();
    assert!(
        details.iter().all(|it| it["status"] == "completed"),
        "{details:?}"
    );
    (
        max.load(Ordering::SeqCst),
        result.calls.iter().map(|call| call.result.status).collect(),
    )
}

#[tokio::test(start_paused = true)]
async fn agents_at_work_are_as_many_as_the_options_allow_when_there_are_more_tasks() {
    assert_eq!(
        busiest(9, FanOutOptions::new().max_concurrency(2), None).await,
        (2, vec![Status::Ok])
    );
    assert_eq!(
        busiest(20, FanOutOptions::new(), None).await,
        (8, vec![Status::Ok])
    );
    assert_eq!(
        busiest(3, FanOutOptions::new().max_concurrency(0), None).await,
        (1, vec![Status::Ok])
    );
}

#[tokio::test(start_paused = true)]
async fn agents_wait_for_a_seat_when_the_budget_allows_fewer_than_the_options() {
    let caps = Caps {
        agents: Some(3),
        ..Caps::default()
    };
    let (most, statuses) = busiest(9, FanOutOptions::new(), Some(caps)).await;
    assert!((1..=3).contains(&most), "{most}");
    assert_eq!(statuses, [Status::Ok]);
}

#[tokio::test]
async fn output_is_bounded_when_answers_are_long_and_tasks_are_many() {
    let long = "é".repeat(50_000);
    let model = answering(100, move |_| says(long.clone()).delta_chars(100_000));
    let tasks: Vec<_> = (0..100)
        .map(|number| format!("{number} {}", "#\n".repeat(500)))
        .collect();
    let agent = lead(json!({"tasks": tasks}), worker(model), FanOutOptions::new());
    let result = agent.run("Go.").await.expect("the run finishes");
    let text = results(&result).remove(0);
    assert!((50_000..=100_000).contains(&text.len()), "{}", text.len());
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("## Task "))
            .count(),
        100
    );
    assert_eq!(
        text.lines().filter(|line| line.starts_with('#')).count(),
        100,
        "a task makes no sections of its own"
    );
    assert!(
        text.contains("bytes more were left out]"),
        "{}",
        &text[..500]
    );
}

#[tokio::test]
async fn events_of_all_agents_are_in_one_stream_when_tasks_are_fanned_out() {
    let agent = lead(
        json!({"tasks": ["a", "b"]}),
        worker(doing(2)),
        FanOutOptions::new(),
    );
    let events = events(&agent).await;
    let opened = events
        .iter()
        .filter(|it| matches!(it.kind, EventKind::ChildOpened { .. }))
        .count();
    let ended = events
        .iter()
        .filter(|it| matches!(it.kind, EventKind::ChildEnded { .. }))
        .count();
    assert_eq!(
        (opened, ended, last(&events).text()),
        (2, 2, "Done.".to_owned())
    );
    let threads: std::collections::BTreeSet<_> =
        events.iter().map(|it| it.who.thread.to_string()).collect();
    assert_eq!(threads.len(), 3, "{threads:?}");
    let mut tasks: Vec<_> = events
        .iter()
        .filter_map(|it| match &it.kind {
            EventKind::ChildOpened { child, .. } => child.task.as_deref(),
            _ => None,
        })
        .collect();
    tasks.sort_unstable();
    assert_eq!(tasks, ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_tasks_are_done_once_when_a_hundred_work_on_several_threads() {
    let tasks: Vec<_> = (0..100).map(|number| number.to_string()).collect();
    let model = doing(100);
    let options = FanOutOptions::new().max_concurrency(100);
    let result = lead(json!({"tasks": tasks}), worker(Arc::clone(&model)), options)
        .run("Go.")
        .await;
    let result = result.expect("the run finishes");
    let details = result.calls[0]
        .result
        .details
        .as_array()
        .expect("one for each")
        .clone();
    let done: Vec<_> = details
        .iter()
        .map(|it| it["result"].as_str().expect("a text").to_owned())
        .collect();
    assert_eq!(
        done,
        tasks
            .iter()
            .map(|task| format!("did {task}."))
            .collect::<Vec<_>>()
    );
    assert_eq!(result.total_usage.total(), 110 * 102);
    model.assert_done();
}

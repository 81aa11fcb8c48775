//! What a fan-out of 1, 10 and 100 tasks costs for each, by a tool and as first agents, and a background task that is
//! launched and waited for.

use std::hint::black_box;

use adjutant_agent::{Agent, AgentFactory};
use adjutant_benches::Rows;
use adjutant_llm::{Script, ScriptedModel};
use adjutant_orchestration::{Background, BackgroundOptions, FanOut, FanOutOptions, fan_out_tool};
use serde_json::json;

use crate::{median, runtime, spent::Spent};

/// How many agents work at a time.
const TASKS: [usize; 3] = [1, 10, 100];
const ROUNDS: usize = 41;

pub(crate) fn measure(rows: &mut Rows) {
    for tasks in TASKS {
        each(
            rows,
            &format!("a child of a fan-out of {tasks}"),
            tasks,
            async || by_tool(tasks).await,
        );
        each(
            rows,
            &format!("a first agent of a fan-out of {tasks}"),
            tasks,
            async || first(tasks).await,
        );
    }
    each(
        rows,
        "a background task launched and waited for",
        1,
        async || background().await,
    );
}

fn each(rows: &mut Rows, what: &str, tasks: usize, work: impl AsyncFn()) {
    let runtime = runtime();
    let all = (0..ROUNDS)
        .map(|_| Spent::best(1, || runtime.block_on(work())).computed)
        .collect();
    rows.figure(
        &format!("{what}, us of CPU"),
        "",
        median(all).0 / tasks as f64,
    );
}

fn worker(requests: usize) -> Agent {
    let scripts = (0..requests).map(|_| Script::new().text("Done."));
    Agent::new(ScriptedModel::new(scripts)).name("worker")
}

fn names(tasks: usize) -> Vec<String> {
    (0..tasks).map(|number| number.to_string()).collect()
}

async fn by_tool(tasks: usize) {
    let tool = fan_out_tool(
        "each",
        "Does each.",
        worker(tasks),
        FanOutOptions::new().max_concurrency(tasks),
    );
    let script = [
        Script::new().call("each", json!({"tasks": names(tasks)})),
        Script::new().text("Done."),
    ];
    let result = Agent::new(ScriptedModel::new(script))
        .tool(tool)
        .run("Go.")
        .await;
    black_box(result.expect("the run finishes"));
}

async fn first(tasks: usize) {
    let fan_out = FanOut::new(worker(tasks)).options(FanOutOptions::new().max_concurrency(tasks));
    black_box(
        fan_out
            .run(&AgentFactory::root(), &names(tasks))
            .await
            .expect("there are tasks"),
    );
}

async fn background() {
    let background = Background::new(BackgroundOptions::new()).agent("worker", "Works.", worker(1));
    let script = [
        Script::new().call("launch_task", json!({"agent": "worker", "task": "a"})),
        Script::new().call("get_task", json!({"task_id": "task-1", "wait": true})),
        Script::new().text("Done."),
    ];
    let agent = background.install(Agent::new(ScriptedModel::new(script)));
    black_box(agent.run("Go.").await.expect("the run finishes"));
}

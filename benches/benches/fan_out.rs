//! What agents under one lead cost beyond their own turns: fan-out of 1, 10 and 100 tasks at a time, and background
//! tasks that are launched and waited for.

use std::hint::black_box;

use adjutant_agent::{Agent, AgentFactory};
use adjutant_llm::{Script, ScriptedModel};
use adjutant_orchestration::{Background, BackgroundOptions, FanOut, FanOutOptions, fan_out_tool};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

/// How many agents work at a time.
const TASKS: [usize; 3] = [1, 10, 100];

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn worker(requests: usize) -> Agent {
    let scripts = (0..requests).map(|_| Script::new().text("Done."));
    Agent::new(ScriptedModel::new(scripts)).name("worker")
}

fn fan_out(criterion: &mut Criterion) {
    let runtime = runtime();
    let mut group = criterion.benchmark_group("fan_out");
    for tasks in TASKS {
        let names: Vec<_> = (0..tasks).map(|number| number.to_string()).collect();
        let options = || FanOutOptions::new().max_concurrency(tasks);
        group.throughput(Throughput::Elements(tasks as u64));
        group.bench_function(BenchmarkId::new("children", tasks), |bencher| {
            bencher.iter(|| {
                runtime.block_on(async {
                    let tool = fan_out_tool("each", "Does each.", worker(tasks), options());
                    let script = [Script::new().call("each", json!({"tasks": names})), Script::new().text("Done.")];
                    let result = Agent::new(ScriptedModel::new(script)).tool(tool).run("Go.").await;
                    black_box(result.expect("the run finishes"));
                })
            });
        });
        group.bench_function(BenchmarkId::new("first_agents", tasks), |bencher| {
            bencher.iter(|| {
                runtime.block_on(async {
                    let fan_out = FanOut::new(worker(tasks)).options(options());
                    black_box(fan_out.run(&AgentFactory::root(), &names).await.expect("there are tasks"));
                })
            });
        });
    }
    group.finish();
}

fn background(criterion: &mut Criterion) {
    let runtime = runtime();
    criterion.bench_function("background/launch_and_wait", |bencher| {
        bencher.iter(|| {
            runtime.block_on(async {
                let background = Background::new(BackgroundOptions::new()).agent("worker", "Works.", worker(1));
                let script = [
                    Script::new().call("launch_task", json!({"agent": "worker", "task": "a"})),
                    Script::new().call("get_task", json!({"task_id": "task-1", "wait": true})),
                    Script::new().text("Done."),
                ];
                let agent = background.install(Agent::new(ScriptedModel::new(script)));
                black_box(agent.run("Go.").await.expect("the run finishes"));
            })
        });
    });
}

criterion_group!(benches, fan_out, background);
criterion_main!(benches);

//! What the agent core costs: building an agent, what stands around a turn and does nothing, children, compaction.

use std::{hint::black_box, sync::Arc};

use adjutant_agent::{
    Action, Agent, DriveContext, Effect, EffectContext, EffectError, Failure, HookContext, Limits, Middleware,
    NextDrive, RunResult, Verdict,
    points::{AfterTool, BeforeModel, BeforeTool},
};
use adjutant_llm::{Block, Call, CallId, Chunk, Model, ModelInfo, Reply, Request, Stop, model_fn};
use adjutant_tool::tool;
use async_trait::async_trait;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures_util::stream;
use tokio::runtime::{Builder, Runtime};

/// How many turns one run of the loop has.
const TURNS: u64 = 100;

/// Fetches a page.
#[tool(replay = "pure")]
fn fetch(
    /// The number of the page.
    n: u64,
) -> String {
    format!("page {n}")
}

/// An effect that looks and does nothing.
struct Idle(&'static str);

#[async_trait]
impl Effect for Idle {
    fn kind(&self) -> &str {
        self.0
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        black_box(cx.tokens());
        Ok(Vec::new())
    }
}

/// A middleware that only goes on.
struct Through;

#[async_trait]
impl Middleware for Through {
    fn name(&self) -> &str {
        "through"
    }

    async fn drive(&self, cx: DriveContext, next: NextDrive<'_>) -> Result<RunResult, Failure> {
        next.run(cx).await
    }
}

/// A model that calls the tool until its turns are over.
fn caller(turns: u64) -> impl Model {
    model_fn(ModelInfo::new("bench/caller"), move |request| {
        let reply = Arc::new(reply(&request, turns));
        let start = Chunk::Start {
            attempt: request.attempt,
            model: reply.model.clone(),
            limits: Box::default(),
            warnings: Vec::new(),
        };
        Box::pin(stream::iter([Ok(start), Ok(Chunk::Done(reply))]))
    })
}

fn reply(request: &Request, turns: u64) -> Reply {
    let (turn, attempt) = (request.turn(), request.attempt);
    let mut reply = Reply::new("bench/caller".into(), Stop::End);
    if turn < turns {
        let id = CallId { turn, attempt, block: 0 };
        reply.blocks.push(Arc::new(Block::Call(Call::new(id, "fetch", format!("{{\"n\":{turn}}}")))));
        reply.stop = Stop::Calls;
    }
    reply
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn build(criterion: &mut Criterion) {
    let model = Arc::new(caller(0));
    criterion.bench_function("build/agent with one tool", |bench| {
        bench.iter(|| black_box(Agent::new(Arc::clone(&model)).tool(fetch)));
    });
}

fn around(criterion: &mut Criterion) {
    let (runtime, bare) = (runtime(), Agent::new(caller(TURNS)).tool(fetch).limits(Limits::new().unlimited_turns()));
    let loaded =
        ["one", "two", "three", "four", "five"].into_iter().fold(bare.clone(), |it, kind| it.effect(Idle(kind)));
    let loaded = loaded
        .on(|_: HookContext, point: BeforeModel| async { Verdict::Pass(point) })
        .on(|_: HookContext, point: BeforeTool| async { Verdict::Pass(point) })
        .on(|_: HookContext, point: AfterTool| async { Verdict::Pass(point) })
        .middleware(Through)
        .middleware(Through);
    let mut group = criterion.benchmark_group("turn");
    group.throughput(Throughput::Elements(TURNS));
    for (name, agent) in [("nothing around it", bare), ("5 effects, 3 hooks, 2 middlewares", loaded)] {
        group.bench_function(name, |bench| {
            bench.iter(|| runtime.block_on(agent.new_session().run("Go.")).expect("a run"));
        });
    }
    group.finish();
}

criterion_group!(benches, build, around);
criterion_main!(benches);

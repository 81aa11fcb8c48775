//! What the parts of a turn cost: the loop, the transcript, the admission of arguments.

use std::{hint::black_box, sync::Arc};

use adjutant_agent::{Agent, Limits};
use adjutant_llm::{
    Block, Call, CallId, Chunk, Entry, FinishReason, ModelInfo, Reply, Request, Transcript, UserMessage, model_fn,
};
use adjutant_tool::{Bound, tool};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use futures_util::stream;

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

/// The reply of a model that calls the tool until its turns are over.
fn reply(request: &Request) -> Reply {
    let (turn, attempt) = (request.turn(), request.attempt);
    let mut reply = Reply::new("bench/caller".into(), FinishReason::End);
    if turn < TURNS {
        let args = format!("{{\"n\":{turn}}}").into();
        let call = Call {
            id: CallId { turn, attempt, block: 0 },
            wire_id: None,
            name: "fetch".into(),
            args,
            extra: Default::default(),
        };
        reply.blocks.push(Arc::new(Block::Call(call)));
        reply.stop = FinishReason::Calls;
    }
    reply
}

fn turns(criterion: &mut Criterion) {
    let model = model_fn(ModelInfo::new("bench/caller"), |request| {
        let reply = Arc::new(reply(&request));
        let start = Chunk::Start {
            attempt: request.attempt,
            model: reply.model.clone(),
            limits: Box::default(),
            warnings: Vec::new(),
        };
        Box::pin(stream::iter([Ok(start), Ok(Chunk::Done(reply))]))
    });
    let agent = Agent::new(model).tool(fetch).limits(Limits { max_turns: None, ..Limits::default() });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut group = criterion.benchmark_group("turn");
    group.throughput(Throughput::Elements(TURNS));
    group.bench_function("loop of 100", |bench| {
        bench.iter(|| runtime.block_on(agent.new_session().run("Go.")).expect("a run"));
    });
    group.finish();
}

fn transcript(criterion: &mut Criterion) {
    let entry = || Entry::User(UserMessage::text("x".repeat(1_024)));
    let long: Transcript = (0..10_000).map(|_| entry()).collect();
    criterion.bench_function("transcript/clone of 10,000 entries", |bench| bench.iter(|| black_box(long.clone())));
    criterion.bench_function("transcript/push beside a clone", |bench| {
        bench.iter_batched(
            || (long.clone(), entry()),
            |(mut copy, entry)| black_box(copy.push(entry)),
            BatchSize::SmallInput,
        );
    });
}

fn admission(criterion: &mut Criterion) {
    let tool = Bound::new(fetch);
    criterion.bench_function("admit/fits", |bench| bench.iter(|| tool.admit(black_box(r#"{"n": 17}"#))));
    criterion.bench_function("admit/coerced", |bench| bench.iter(|| tool.admit(black_box(r#"{"n": "17"}"#))));
}

criterion_group!(benches, turns, transcript, admission);
criterion_main!(benches);

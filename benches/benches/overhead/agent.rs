//! The same conversations as the floor's, by an agent.

use std::{
    hint::black_box,
    io::BufRead,
    sync::{Arc, Mutex},
    time::Instant,
};

use adjutant_agent::{Agent, EventKind, Limits};
use adjutant_benches::median;
use adjutant_llm::{
    Block, Call, CallId, Chunk, ChunkStream, FinishReason, Model, ModelInfo, Reply, Request,
};
use adjutant_providers::Chat;
use adjutant_tool::tool;
use futures_util::stream;

use crate::{
    around::loaded,
    floor,
    measure::{Report, Watch, measured, rss_kb},
};

/// Fetches a page.
#[tool(replay = "pure")]
fn fetch(
    /// The number of the page.
    n: u64,
) -> String {
    floor::fetch(n)
}

/// A model whose window is never full: the floor written by hand sends the whole conversation too.
fn info(id: &str) -> ModelInfo {
    ModelInfo {
        context_window: 100_000_000,
        ..ModelInfo::new(id)
    }
}

fn agent(port: u16) -> Agent {
    let model =
        Chat::new(info("openai/bench"), "key").base_url(format!("http://127.0.0.1:{port}/v1"));
    Agent::new(model).tool(fetch).limits(Limits {
        max_turns: None,
        ..Limits::default()
    })
}

pub(crate) fn run(kind: &str, port: u16, n: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let agent = agent(port);
    let report = match kind {
        "short" | "loaded" => {
            let agent = if kind == "loaded" {
                loaded(agent)
            } else {
                agent
            };
            runtime
                .block_on(async { agent.new_session().run("Go.").await })
                .expect("a run");
            measured(&runtime, async {
                for _ in 0..n {
                    black_box(agent.new_session().run("Go.").await.expect("a run"));
                }
            })
        }
        "deltas" => measured(&runtime, async {
            black_box(stream(&agent).await);
        }),
        "waiting" => runtime.block_on(waiting(&agent, n)),
        _ => measured(&runtime, async {
            let result = agent.run("Go.").await.expect("a run");
            assert_eq!(result.turns as usize, n);
        }),
    };
    report.print();
}

/// Reads every event, as a user interface would.
async fn stream(agent: &Agent) -> usize {
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let mut bytes = 0;
    while let Some(event) = running.next().await {
        if let EventKind::TextDelta { text, .. } = &event.kind {
            bytes += text.len();
        }
    }
    bytes
}

async fn waiting(agent: &Agent, n: usize) -> Report {
    let before = rss_kb();
    let watch = Watch::start();
    let spawn = |_| {
        let agent = agent.new_session();
        tokio::spawn(async move { agent.run("Go.").await.map(|_| ()) })
    };
    let tasks: Vec<_> = (0..n).map(spawn).collect();
    let line = tokio::task::spawn_blocking(|| std::io::stdin().lock().lines().next());
    line.await.expect("the parent speaks");
    let rss_kb = (rss_kb() - before) / n as f64;
    println!("measured");
    for task in tasks {
        task.await.expect("a task ends").expect("a run");
    }
    Report {
        rss_kb,
        ..watch.report()
    }
}

/// The turns of a conversation at which one is timed.
pub(crate) const EARLY: u64 = 300;
pub(crate) const LATE: u64 = 3_000;

/// What one turn costs early and late in a conversation, in microseconds and without a socket: loop, log, view and
/// requests.
pub(crate) fn flat() -> (f64, f64) {
    const SPAN: u64 = 100;
    const ROUNDS: usize = 9;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let (mut early, mut late) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let clock = Arc::new(Mutex::new(Vec::new()));
        let agent = Agent::new(Caller::new(LATE + SPAN + 1, &clock))
            .tool(fetch)
            .limits(Limits {
                max_turns: None,
                ..Limits::default()
            });
        runtime
            .block_on(async { agent.run("Go.").await })
            .expect("a run");
        let at = clock.lock().expect("the run is over");
        let per_turn = |from: u64| {
            (at[(from + SPAN) as usize] - at[from as usize]).as_secs_f64() * 1e6 / SPAN as f64
        };
        early.push(per_turn(EARLY));
        late.push(per_turn(LATE));
    }
    (median(early), median(late))
}

/// A model that calls the tool once a turn and does nothing else; it notes when it was asked.
#[derive(Debug)]
struct Caller {
    info: ModelInfo,
    turns: u64,
    clock: Arc<Mutex<Vec<Instant>>>,
}

impl Caller {
    fn new(turns: u64, clock: &Arc<Mutex<Vec<Instant>>>) -> Self {
        Self {
            info: info("bench/caller"),
            turns,
            clock: Arc::clone(clock),
        }
    }
}

impl Model for Caller {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn stream(&self, request: Request) -> ChunkStream {
        self.clock
            .lock()
            .expect("one run at a time")
            .push(Instant::now());
        let (turn, attempt) = (request.turn(), request.attempt);
        let mut reply = Reply::new(self.info.id.clone(), FinishReason::End);
        if turn < self.turns {
            let id = CallId {
                turn,
                attempt,
                block: 0,
            };
            let call = Call {
                id,
                wire_id: None,
                name: "fetch".into(),
                args: format!("{{\"n\":{turn}}}").into(),
                extra: Default::default(),
            };
            reply.blocks.push(Arc::new(Block::Call(call)));
            reply.stop = FinishReason::Calls;
        }
        let limits = Box::default();
        let start = Chunk::Start {
            attempt,
            model: self.info.id.clone(),
            limits,
            warnings: Vec::new(),
        };
        Box::pin(stream::iter([Ok(start), Ok(Chunk::Done(Arc::new(reply)))]))
    }
}

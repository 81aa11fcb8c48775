//! The same conversations as the floor's, by an agent.

use std::{hint::black_box, io::BufRead, time::Instant};

use adjutant_agent::{Agent, EventKind, Limits};
use adjutant_llm::{ModelInfo, Script, ScriptedModel};
use adjutant_providers::Chat;
use adjutant_tool::{CallContext, Replay, Tool, ToolError, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::{
    floor,
    measure::{Report, Watch, rss_kb},
};

struct Fetch;

#[derive(Deserialize)]
struct Args {
    n: u64,
}

impl Tool for Fetch {
    type Args = Args;
    type Output = String;

    fn spec(&self) -> ToolSpec {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        ToolSpec::new("fetch", "Fetches a page.", schema).replay(Replay::Pure)
    }

    async fn call(&self, args: Args, _: CallContext) -> Result<String, ToolError> {
        Ok(floor::fetch(args.n))
    }
}

fn agent(port: u16) -> Agent {
    let model = Chat::new(ModelInfo::new("openai/bench"), "key").base_url(format!("http://127.0.0.1:{port}/v1"));
    Agent::new(model).tool(Fetch).limits(Limits::new().unlimited_turns())
}

pub fn run(kind: &str, port: u16, n: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let agent = agent(port);
    runtime.block_on(async {
        let report = match kind {
            "short" => {
                agent.new_session().run("Go.").await.expect("a run");
                let watch = Watch::start();
                for _ in 0..n {
                    black_box(agent.new_session().run("Go.").await.expect("a run"));
                }
                watch.report()
            }
            "deltas" => {
                let watch = Watch::start();
                black_box(stream(&agent).await);
                watch.report()
            }
            "waiting" => waiting(&agent, n).await,
            _ => {
                let watch = Watch::start();
                let result = agent.run("Go.").await.expect("a run");
                assert_eq!(result.turns as usize, n);
                watch.report()
            }
        };
        report.print();
    });
}

/// Reads every event, as a user interface would.
async fn stream(agent: &Agent) -> usize {
    let mut running = agent.stream("Go.").expect("the session is free");
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
    Report { rss_kb, ..watch.report() }
}

/// What one turn costs early and late in a conversation, without a socket: loop, log, view and events.
pub fn flat() {
    const EARLY: u32 = 300;
    const LATE: u32 = 3_000;
    const SPAN: u32 = 100;
    let scripts = (1..=LATE + SPAN).map(|n| Script::new().call("fetch", json!({"n": n})));
    let model = ScriptedModel::new(scripts.chain([Script::new().text("Done.")]));
    let agent = Agent::new(model).tool(Fetch).limits(Limits::new().unlimited_turns());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut at = Vec::new();
    runtime.block_on(async {
        let mut running = agent.stream("Go.").expect("the session is free");
        while let Some(event) = running.next().await {
            if matches!(event.kind, EventKind::TurnStarted) {
                at.push(Instant::now());
            }
        }
    });
    let per_turn = |from: u32| {
        let (from, to) = (from as usize, (from + SPAN) as usize);
        (at[to] - at[from]).as_secs_f64() * 1e6 / f64::from(SPAN)
    };
    let (early, late) = (per_turn(EARLY), per_turn(LATE));
    println!("one turn without a socket: {early:.1} us at turn {EARLY}, {late:.1} us at turn {LATE}, ratio {:.2}", late / early);
}

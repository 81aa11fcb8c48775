//! Many children of one parent in one run, with every event read: time and memory of each, few beside many.

use std::sync::Arc;

use adjutant_agent::{Agent, EventKind, Limits, Spawn};
use adjutant_benches::median;
use adjutant_llm::CallResult;
use adjutant_tool::{CallContext, ErasedTool, Replay, ToolError, ToolSpec, tool_fn};
use futures_util::future::try_join_all;
use serde_json::{Value, json};

use crate::{
    caller::{Caller, fetch},
    measure::{Report, cpu_us, peak_kb, rss_kb},
};

/// How many runs one process times.
const RUNS: usize = 5;
/// How many children warm a process up.
const WARM: usize = 20;

/// The cost of one child, in a process that has done nothing before; `together` if all are at work at a time.
pub(crate) fn run(together: bool, children: usize) -> Report {
    let runtime = crate::runtime();
    // Kept until the end: what it would give back would hide what comes after it.
    let warm = parent(together, WARM);
    runtime.block_on(read(&warm, WARM));
    let before = rss_kb();
    let agent = parent(together, children);
    runtime.block_on(read(&agent, children));
    let kb = (peak_kb() - before) / children as f64;
    drop(agent);
    let once = |_| {
        let agent = parent(together, children);
        let began = cpu_us();
        runtime.block_on(read(&agent, children));
        (cpu_us() - began) / children as f64
    };
    let us = median((0..RUNS).map(once));
    drop(warm);
    Report { us, kb }
}

/// Reads every event of a run, those of the children too.
async fn read(agent: &Agent, children: usize) {
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let (mut ended, mut calls) = (0, 0);
    while let Some(event) = running.next().await {
        match event.kind {
            EventKind::RunFinished { .. } => ended += 1,
            EventKind::ToolFinished { .. } => calls += 1,
            _ => {}
        }
    }
    assert_eq!(
        (ended, calls),
        (children + 1, children + 1),
        "every event of every child is mirrored"
    );
}

fn parent(together: bool, children: usize) -> Agent {
    Agent::new(Caller::new("delegate", 2))
        .tool(delegate(together, children))
        .limits(Limits {
            max_turns: None,
            ..Limits::default()
        })
}

/// A tool that opens children; each of them calls a tool once, and answers.
fn delegate(together: bool, children: usize) -> impl ErasedTool + 'static {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let spec = ToolSpec {
        replay: Replay::Resumable,
        ..ToolSpec::new("delegate", "Gives work away.", schema)
    };
    let child = Agent::new(Caller::new("fetch", 2)).tool(fetch);
    tool_fn(spec, move |_: Value, cx: CallContext| {
        let child = child.clone();
        async move {
            let spawn = cx
                .get::<dyn Spawn>()
                .ok_or_else(|| ToolError::failed("no call of a run"))?;
            let one = |key: usize| {
                let (spawn, child) = (Arc::clone(&spawn), child.clone());
                async move {
                    spawn
                        .open(&format!("child-{key}"), child.into())
                        .await?
                        .run("Fetch a page.")
                        .await
                }
            };
            if together {
                try_join_all((0..children).map(one)).await?;
            } else {
                for key in 0..children {
                    one(key).await?;
                }
            }
            Ok(CallResult::ok("Done."))
        }
    })
}

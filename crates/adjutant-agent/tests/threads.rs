//! The same promises when tools, reader and canceller really run at the same time.

#[path = "property/check.rs"]
mod check;

use std::sync::{Arc, Mutex};

use adjutant_agent::{Agent, Event, Events, Journal, MemoryJournal, Seq, Stamped};
use adjutant_llm::{CallId, CallResult, Script, ScriptedModel};
use adjutant_tool::{CallContext, Progress, Replay, ToolSpec, tool_fn};
use futures_util::StreamExt;
use serde_json::{Value, json};

/// How many runs are tried.
const ROUNDS: usize = 60;

type Ran = Arc<Mutex<Vec<CallId>>>;

/// Talks while it works, and leaves someone behind who goes on talking.
fn talker(replay: Replay, ran: &Ran) -> impl adjutant_tool::ErasedTool + 'static {
    let ran = Arc::clone(ran);
    let spec = ToolSpec {
        replay,
        ..ToolSpec::new(format!("{replay:?}"), "A tool.", json!({"type": "object"}))
    };
    tool_fn(spec, move |_: Value, cx: CallContext| {
        ran.lock()
            .expect("nobody panics inside")
            .extend(cx.who.call);
        async move {
            let late = cx.clone();
            tokio::spawn(async move {
                for _ in 0..40 {
                    late.progress(Progress::text("still here"));
                    late.backend.charge(Default::default());
                    tokio::task::yield_now().await;
                }
            });
            for _ in 0..20 {
                cx.progress(Progress::text("working"));
                tokio::task::yield_now().await;
            }
            Ok(CallResult::ok("done"))
        }
    })
}

async fn round(number: usize) {
    let (journal, ran) = (MemoryJournal::default(), Ran::default());
    let names = ["Once", "Pure", "Idempotent", "Once", "Once", "Pure"];
    let batch = || {
        names
            .iter()
            .fold(Script::new().text("Let me see."), |script, name| {
                script.call(*name, json!({}))
            })
    };
    let scripts = [
        batch(),
        batch(),
        Script::new().text("Done."),
        Script::new().text("Done."),
    ];
    let model = Arc::new(ScriptedModel::new(scripts));
    let mut agent = Agent::new(Arc::clone(&model)).journal(journal.clone());
    for replay in [Replay::Once, Replay::Pure, Replay::Idempotent] {
        agent = agent.tool(talker(replay, &ran));
    }
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let stopper = running.stopper();
    let stop = tokio::spawn(async move {
        for _ in 0..number * 5 {
            tokio::task::yield_now().await;
        }
        stopper.stop(adjutant_agent::CancelBy::User);
    });
    let mut events = Vec::new();
    while let Some(event) = running.next().await {
        events.push(event);
    }
    stop.await.expect("no panic");
    check::brackets(&events, true);

    let records: Vec<Stamped> = journal
        .read(agent.session_id(), Seq(0))
        .map(|it| it.expect("memory does not fail"))
        .map(|it| Stamped::new(it.seq, it.at_ms, it.thread.clone(), it.record.clone()))
        .collect()
        .await;
    let run = check::log(&records);
    assert_eq!(check::bounds(&records), (1, 1));
    // A body that was stopped may not have begun, or may just have: its result says that it is not known.
    check::transcript(run.history(), &ran.lock().expect("nobody panics inside"));
    model
        .requests()
        .iter()
        .for_each(|request| check::request(request, run.history()));
    let (mut fold, mut folded) = (Events::new(Arc::new(agent.identity().clone())), Vec::new());
    records
        .iter()
        .for_each(|stamped| fold.fold(stamped, |event| folded.push(event)));
    let live: Vec<Event> = events.into_iter().filter(check::is_record).collect();
    assert_eq!(folded, live);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn promises_hold_when_everything_runs_at_once() {
    for number in 0..ROUNDS {
        round(number).await;
    }
}

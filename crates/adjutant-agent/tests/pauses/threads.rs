//! Bodies that ask and work on several threads: nothing is lost, and no step is done twice.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use adjutant_agent::{Outcome, Pause};
use adjutant_llm::{CallResult, Status};
use adjutant_tool::{Answer, CallContext, Replay, ToolError, ToolSpec, tool_fn};
use serde_json::{Value, json};

use super::stage::{agent, answered, script, spec};

/// How many runs are tried.
const ROUNDS: usize = 40;

type Done = Arc<Mutex<BTreeMap<String, u32>>>;

async fn branch(cx: &CallContext, done: &Done, name: &str) -> Result<(), ToolError> {
    let step = |key: String| {
        let done = Arc::clone(done);
        async move {
            *done
                .lock()
                .expect("nobody panics inside")
                .entry(key)
                .or_default() += 1;
            tokio::task::yield_now().await;
            Ok(())
        }
    };
    let call = cx.who.call.expect("a call of a run");
    cx.once(&format!("{name} before"), || {
        step(format!("{call} {name} before"))
    })
    .await?;
    cx.ask(name, "What?").await?;
    cx.once(&format!("{name} after"), || {
        step(format!("{call} {name} after"))
    })
    .await
}

async fn round(number: usize) {
    let done = Done::default();
    let batch: Vec<_> = (0..4).map(|n| ("asks", json!({"n": n}))).collect();
    let (_, agent) = agent(script(&batch));
    let counts = Arc::clone(&done);
    let agent = agent.tool(tool_fn(
        ToolSpec {
            replay: Replay::Resumable,
            ..spec("asks")
        },
        move |_: Value, cx: CallContext| {
            let done = Arc::clone(&counts);
            async move {
                let (first, second) =
                    tokio::join!(branch(&cx, &done, "first"), branch(&cx, &done, "second"));
                first.and(second).map(|()| CallResult::ok("done"))
            }
        },
    ));
    // Some are answered in place, by chance of the round.
    let agent = agent.responder(move |_, pause: Pause| async move {
        tokio::task::yield_now().await;
        let place = pause.call_id().map_or(0, |call| call.block as usize);
        (place % 4 == number % 5).then(|| Answer::give("here"))
    });
    let mut result = agent.run("Go.").await.expect("the run goes on");
    for _ in 0..20 {
        let Outcome::Paused { pauses } = &result.outcome else {
            break;
        };
        let answers = pauses
            .iter()
            .map(|pause| answered(&pause.id.0, Answer::give("later")))
            .collect();
        result = agent.resume(answers).await.expect("the run goes on");
    }
    assert_eq!(
        result.text(),
        "Done.",
        "round {number}: {:?}",
        result.outcome
    );
    let failed: Vec<_> = result
        .calls
        .iter()
        .filter(|call| call.result.status != Status::Ok)
        .collect();
    assert!(failed.is_empty(), "round {number}: {failed:?}");
    let done = done.lock().expect("nobody panics inside").clone();
    assert_eq!(
        (done.len(), done.values().copied().max()),
        (16, Some(1)),
        "round {number}: {done:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn steps_are_done_once_when_bodies_wait_on_several_threads() {
    for number in 0..ROUNDS {
        round(number).await;
    }
}

//! A message that ends the reply that is on its way.

use std::{sync::Arc, time::Duration};

use adjutant_agent::{Agent, EventKind, Outcome};
use adjutant_llm::{Entry, FinishReason, Gate, ModelInfo, Script, ScriptedModel, Status, model_fn};
use adjutant_tool::Cancel;
use futures_util::stream;
use serde_json::json;

use super::{
    seen::{calling, is_delta, requests, says, until},
    stage::{agent, calls, events, tool},
};

#[tokio::test]
async fn interrupting_steer_ends_the_reply_when_the_model_is_speaking() {
    let gate = Gate::default();
    let speaking = Script::new()
        .text("One two")
        .call("work", json!({}))
        .delta_chars(4)
        .wait_at(1, &gate);
    let (model, agent) = agent([speaking, says("Three.")]);
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, is_delta).await;
    running
        .queue()
        .interrupt("Stop that.")
        .expect("there is room");
    let seen = events(running).await;
    let Some(EventKind::RunFinished { result }) = seen.last() else {
        unreachable!("the last event")
    };
    assert!(
        matches!(result.outcome, Outcome::Finished { .. }),
        "{:?}",
        result.outcome
    );
    assert_eq!(
        (result.text().as_str(), result.turns, result.calls.len()),
        ("Three.", 2, 0)
    );
    let Entry::Turn(said) = &result.entries[1] else {
        unreachable!("the interrupted reply")
    };
    assert_eq!(
        (said.reply().stop, said.reply().text().as_str()),
        (FinishReason::Interrupted, "One ")
    );
    assert_eq!(requests(&model)[1], ["Go.", "=One ", "Stop that."]);
    assert!(agent.queue().is_empty());
}

#[tokio::test]
async fn interrupting_steer_asks_again_when_nothing_was_said() {
    let model = Arc::new(ScriptedModel::new([says("Here.")]));
    let (silent, asked) = (Arc::clone(&model), std::sync::atomic::AtomicU32::new(0));
    let agent = Agent::new(model_fn(
        ModelInfo::new("test/slow"),
        move |request| match asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => Box::pin(stream::pending()),
            _ => adjutant_llm::Model::stream(&silent, request),
        },
    ));
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, |event| {
        matches!(event, EventKind::TurnStarted)
    })
    .await;
    agent.queue().steer("First.").expect("there is room");
    agent.queue().interrupt("Now.").expect("there is room");
    agent.queue().steer("Later.").expect("there is room");
    model.push(says("And here."));
    let result = running.finish().await.expect("the run finishes");
    assert_eq!(result.turns, 2);
    assert_eq!(requests(&model)[0], ["Go.", "First.", "Now."]);
    assert_eq!(
        requests(&model)[1],
        ["Go.", "First.", "Now.", "=Here.", "Later."]
    );
}

#[tokio::test(start_paused = true)]
async fn interrupting_steer_waits_when_tools_are_at_work() {
    let (model, agent) = agent([calling(1), says("Done.")]);
    let handle = agent.clone();
    let stopped = Arc::new(std::sync::Mutex::new(Vec::<Cancel>::new()));
    let seen = Arc::clone(&stopped);
    let agent = agent.tool(tool("work", move |_, cx| {
        let (handle, seen) = (handle.clone(), Arc::clone(&seen));
        async move {
            handle.queue().interrupt("Quick.").expect("there is room");
            // Time passes only when nothing else can move: whatever would stop this body has done so.
            tokio::time::sleep(Duration::from_millis(1)).await;
            seen.lock()
                .expect("no panic inside")
                .push(cx.cancel.clone());
            Ok(adjutant_llm::CallResult::ok(if cx.cancel.is_cancelled() {
                "stopped"
            } else {
                "ok"
            }))
        }
    }));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        calls(&result),
        [("work".to_owned(), Status::Ok, "ok".to_owned())]
    );
    assert_eq!(requests(&model)[1], ["Go.", ">ok", "Quick."]);
    assert_eq!(stopped.lock().expect("no panic inside").len(), 1);
}

#[tokio::test]
async fn interrupting_steer_is_placed_first_when_no_request_was_made_yet() {
    let (model, agent) = agent([says("Well.")]);
    agent.queue().steer("First.").expect("there is room");
    agent.queue().interrupt("Now.").expect("there is room");
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        (requests(&model), result.turns),
        (
            vec![["Go.", "First.", "Now."].map(String::from).to_vec()],
            1
        )
    );
}

#[tokio::test]
async fn interrupting_steer_is_made_to_fit_when_it_comes_after_its_turn_was_prepared() {
    let model = Arc::new(ScriptedModel::new([says("Here.")]));
    let (silent, asked) = (Arc::clone(&model), std::sync::atomic::AtomicU32::new(0));
    let info = ModelInfo {
        context_window: 20_000,
        ..ModelInfo::new("test/slow")
    };
    let agent = Agent::new(model_fn(info, move |request| {
        match asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => Box::pin(stream::pending()),
            _ => adjutant_llm::Model::stream(&silent, request),
        }
    }));
    let mut running = agent.run("Go.").stream().expect("the session is free");
    until(&mut running, |event| {
        matches!(event, EventKind::TurnStarted)
    })
    .await;
    agent
        .queue()
        .interrupt("word ".repeat(80_000))
        .expect("there is room");
    assert_eq!(running.finish().await.expect("the run finishes").turns, 1);
    let tokens = model.requests()[0].entries.tokens();
    assert!((8_000..=11_808).contains(&tokens), "{tokens}");
}

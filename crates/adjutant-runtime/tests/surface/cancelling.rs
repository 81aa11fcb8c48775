//! Runs that nobody waits for any more, and agents that stop.

use std::time::Duration;

use adjutant_agent::{CancelBy, EventKind, Outcome};
use adjutant_llm::{Gate, Script};
use adjutant_runtime::{
    ErrorKind,
    prompt::{ObjectRequest, PromptRequest},
};
use futures_util::StreamExt;
use serde_json::json;

use crate::stage::{self, Over, kind, stage};

stage::both!(
    stream_that_is_dropped_cancels_its_run,
    prompt_that_is_dropped_cancels_its_run,
    agent_that_stops_ends_its_runs_and_takes_no_more,
    agent_that_stops_leaves_what_does_not_end,
);

async fn stream_that_is_dropped_cancels_its_run(over: Over) {
    let gate = Gate::default();
    let scripts = [
        Script::new()
            .text("A long story.")
            .delta_chars(2)
            .wait_at(2, &gate),
        Script::new().text("Yes?"),
    ];
    let stage = stage(over, scripts).await;
    let mut events = stage.stream("talk", "Tell me.").await.expect("it begins");
    while let Some(event) = events.next().await {
        if let EventKind::TextDelta { .. } = event.expect("it goes on").kind {
            break;
        }
    }
    drop(events);
    stage.idle().await;
    let reply = stage
        .prompt("talk", "Are you there?")
        .await
        .expect("the session is free");
    assert_eq!(reply.text, "Yes?");
    stage.model.assert_done();
}

async fn prompt_that_is_dropped_cancels_its_run(over: Over) {
    let gate = Gate::default();
    let stage = stage(
        over,
        [
            Script::new().text("Slow.").wait_at(0, &gate),
            Script::new().text("Yes?"),
        ],
    )
    .await;
    tokio::select! {
        _ = stage.prompt("talk", "Tell me.") => unreachable!("nobody opens the gate"),
        () = gate.wait_until_reached() => {}
    }
    stage.idle().await;
    assert_eq!(
        stage
            .prompt("talk", "Are you there?")
            .await
            .expect("the session is free")
            .text,
        "Yes?"
    );
}

async fn agent_that_stops_ends_its_runs_and_takes_no_more(over: Over) {
    let (one, two) = (Gate::default(), Gate::default());
    let scripts = [
        Script::new().text("Slow.").wait_at(0, &one),
        Script::new().text("Slow.").wait_at(0, &two),
    ];
    let stage = stage(over, scripts).await;
    let prompter = std::sync::Arc::clone(&stage.prompter);
    let unary = tokio::spawn(async move {
        prompter
            .prompt(PromptRequest::new("Hi.").session("a"))
            .await
    });
    one.wait_until_reached().await;
    let streaming = tokio::spawn(stage::all(
        stage.stream("b", "Hi.").await.expect("it begins"),
    ));
    two.wait_until_reached().await;
    stage.local.close(Duration::from_secs(60)).await;
    assert_eq!(kind(unary.await.expect("it ends")), ErrorKind::Closed);
    let events = streaming.await.expect("it ends");
    let result = stage::end_of(&events);
    assert_eq!(
        result.outcome,
        Outcome::Cancelled {
            by: CancelBy::Shutdown
        }
    );
    assert_eq!(kind(stage.prompt("c", "Hi.").await), ErrorKind::Closed);
    assert_eq!(
        stage::kind_of(stage.stream("c", "Hi.").await),
        Some(ErrorKind::Closed)
    );
    let object = ObjectRequest::new("Hi.", json!({"type": "object"}));
    assert_eq!(kind(stage.prompter.object(object).await), ErrorKind::Closed);
}

async fn agent_that_stops_leaves_what_does_not_end(over: Over) {
    let gate = Gate::default();
    // More than fits between the two: the run stands still until somebody reads.
    let script = Script::new()
        .text("x".repeat(16 << 20))
        .delta_chars(64 << 10)
        .wait_at(250, &gate);
    let stage = stage(over, [script]).await;
    let mut events = stage.stream("talk", "Much.").await.expect("it begins");
    stage.local.close(Duration::from_millis(1)).await;
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(event);
    }
    let error = last
        .expect("something is told")
        .expect_err("the run was left");
    assert_eq!(error.kind(), ErrorKind::Closed);
}

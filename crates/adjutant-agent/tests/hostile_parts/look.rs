//! Whoever looks: a preview, a snapshot, a listener.

use std::sync::Arc;

use adjutant_agent::{
    Agent, Caps, EventKind, Journal, Limits, LogId, MemoryJournal, Seq,
    effects::{Offload, ToolScope},
};
use adjutant_llm::{FixedWorld, ModelInfo, Request, Script, ScriptedModel};
use futures_util::StreamExt;
use serde_json::json;

use super::stage::{agent, done, say};

/// What a request says, but not which attempt it is.
fn said(request: &Request) -> (String, Vec<String>, String, String) {
    let tools = request
        .tools
        .iter()
        .map(|tool| tool.name.to_string())
        .collect();
    let entries: Vec<_> = request
        .entries
        .iter()
        .map(|it| format!("{:?}", it.entry))
        .collect();
    (
        request.system.to_string(),
        tools,
        entries.join("\n"),
        format!("{:?}", request.options),
    )
}

async fn same(model: &ScriptedModel, agent: &Agent) {
    let preview = agent.log().preview("Go on.").await.expect("it can be seen");
    agent.run("Go on.").await.expect("the run ends");
    let requests = model.requests();
    let first = requests
        .iter()
        .rfind(|it| it.turn == preview.turn)
        .expect("it was asked");
    assert_eq!(said(&preview), said(first));
}

#[tokio::test]
async fn preview_is_the_next_request_when_instructions_are_made_for_each_run() {
    let (model, agent) = agent(9_000, [done(), done()]);
    let source = |_| async { Ok("I am Ann.") };
    let agent =
        agent.instructions(adjutant_agent::instructions::Instructions::default().source(source));
    same(&model, &agent).await;
    same(&model, &agent).await;
}

#[tokio::test]
async fn preview_is_the_next_request_when_effects_offer_and_hide() {
    let (model, agent) = agent(9_000, [done(), say(json!({"text": "a"})), done()]);
    let agent = agent.effect(Offload::default()).effect(ToolScope {
        exclude: vec!["say".into()],
        ..ToolScope::default()
    });
    same(&model, &agent).await;
    same(&model, &agent).await;
}

#[tokio::test]
async fn preview_is_the_next_request_when_the_budget_cuts_the_output() {
    let (model, agent) = agent(9_000, [done(), done()]);
    let agent = agent.limits(Limits {
        caps: Caps {
            tokens: Some(2_000),
            ..Caps::default()
        },
        ..Limits::default()
    });
    same(&model, &agent).await;
    same(&model, &agent).await;
}

#[tokio::test]
async fn log_is_the_same_when_a_run_is_repeated() {
    let mut logs = Vec::new();
    for _ in 0..2 {
        let (_, agent) = agent(
            3_000,
            (0..30)
                .map(|n| say(json!({"text": n.to_string(), "times": 200})))
                .chain([done()]),
        );
        let journal = MemoryJournal::default();
        let agent = agent
            .world(FixedWorld::at_ms(5))
            .journal(journal.clone())
            .session(LogId("log".into()))
            .effect(Offload {
                threshold: 0.3,
                ..Offload::default()
            });
        agent
            .effect(adjutant_context::Compact {
                strategy: adjutant_context::Strategy::Truncate,
                ..adjutant_context::Compact::default()
            })
            .run("Go.")
            .await
            .expect("it answers");
        let records = journal.read(&LogId("log".into()), Seq(0));
        let lines: Vec<String> = records
            .map(|it| {
                serde_json::to_string(&*it.expect("memory does not fail"))
                    .expect("a record is JSON")
            })
            .collect()
            .await;
        logs.push(lines);
    }
    assert_eq!(logs[0], logs[1]);
}

#[tokio::test]
async fn listener_misses_nothing_when_it_reads_after_a_hundred_thousand_deltas() {
    let model = ScriptedModel::new([Script::new().text("x".repeat(100_000)).delta_chars(1)])
        .info(ModelInfo::new("m"));
    let agent = Agent::new(Arc::new(model));
    let mut late = agent.log().subscribe();
    agent.run("Go.").await.expect("it answers");
    drop(agent);
    let (mut ends, mut events, mut text) = (0, 0, 0);
    while let Some(event) = late.next().await {
        events += 1;
        match event.kind {
            EventKind::RunFinished { .. } => ends += 1,
            EventKind::TextDelta { text: more, .. } => text += more.len(),
            _ => {}
        }
    }
    assert_eq!((ends, text), (1, 100_000));
    assert!(events < 2_000, "{events} events were kept");
}

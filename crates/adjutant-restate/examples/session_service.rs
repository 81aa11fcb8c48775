//! A service for a Restate server on this machine: each session of a file pays an amount after an approval within a
//! minute.
#![expect(clippy::print_stdout, reason = "a program speaks to its terminal")]

use std::{net::TcpListener, time::Duration};

use adjutant::{
    Agent, Cancel, Replay,
    llm::{CallResult, Entry, Request, Script, ScriptedModel},
    store::Sqlite,
    tools::{Answer, Ask, CallContext, ToolSpec, tool_fn},
};
use adjutant_restate::SessionService;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let spec = ToolSpec {
        replay: Replay::Resumable,
        ..ToolSpec::new("pay", "Pays.", json!({"type": "object"}))
    };
    let agent = || Agent::new(ScriptedModel::new((0..100).map(|_| Script::from_fn(next))));
    let pay = |_, cx: CallContext| async move {
        let sure = Ask::approval("Pay the bill?").within(Duration::from_secs(60));
        let is_sure = matches!(cx.pause("sure", sure).await?, Answer::Approve { .. });
        Ok(CallResult::ok(if is_sure { "paid" } else { "not paid" }))
    };
    let agents = move |_: &_| Ok(agent().tool(tool_fn(spec.clone(), pay)));
    let service = SessionService::new(Sqlite::open("sessions.db")?.journal(), agents);
    let listener = TcpListener::bind("127.0.0.1:9080")?;
    println!(
        "serves sessions.db on {}; Ctrl-C ends it",
        listener.local_addr()?
    );
    let stop = Cancel::new();
    let serving = tokio::spawn(service.serve(listener, stop.clone()));
    tokio::signal::ctrl_c().await?;
    stop.cancel();
    Ok(serving.await??)
}

/// The replies of the model: it pays after each prompt, then reports it.
fn next(request: &Request) -> Script {
    match request.entries.iter().last().map(|stored| &stored.entry) {
        Some(Entry::Turn(_)) => Script::new().text("That is done."),
        _ => Script::new().call("pay", json!({})),
    }
}

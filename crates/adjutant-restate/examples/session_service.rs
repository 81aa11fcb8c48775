//! A service for a Restate server on this machine: each session of a file pays what it is told to, once somebody approved.
#![expect(clippy::print_stdout, reason = "a program speaks to its terminal")]

use std::net::TcpListener;

use adjutant::{
    Agent, Cancel,
    llm::{CallResult, Entry, Request, Script, ScriptedModel},
    store::Sqlite,
    tools::{Approval, ToolSpec, tool_fn},
};
use adjutant_restate::SessionService;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let spec = ToolSpec { approval: Approval::Always, ..ToolSpec::new("pay", "Pays.", json!({"type": "object"})) };
    let agent = || Agent::new(ScriptedModel::new((0..100).map(|_| Script::from_fn(next))));
    let pay = move |_, _| std::future::ready(Ok(CallResult::ok("paid")));
    let agents = move |_: &_| Ok(agent().tool(tool_fn(spec.clone(), pay)));
    let service = SessionService::new(Sqlite::open("sessions.db")?.journal(), agents);
    let listener = TcpListener::bind("127.0.0.1:9080")?;
    println!("serves sessions.db on {}; Ctrl-C ends it", listener.local_addr()?);
    let stop = Cancel::new();
    let serving = tokio::spawn(service.serve(listener, stop.clone()));
    tokio::signal::ctrl_c().await?;
    stop.cancel();
    Ok(serving.await??)
}

/// What the model says: it pays after each prompt, then says so.
fn next(request: &Request) -> Script {
    match request.entries.iter().last().map(|stored| &stored.entry) {
        Some(Entry::Turn(_)) => Script::new().text("It is paid."),
        _ => Script::new().call("pay", json!({})),
    }
}

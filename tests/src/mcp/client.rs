//! The client that is killed: a worker whose agents use a server at an address, and one that is a program of its own.

use std::{path::Path, time::Duration};

use adjutant::{
    Agent,
    agent::{Limits, LogInfo},
    llm::{Entry, Request, Script, ScriptedModel},
    mcp::{HttpConfig, McpServer, Revision, ServerConfig, StdioConfig, Transport},
    toolkit::Sandbox,
};
use serde_json::json;

use super::DONE;
use crate::{fleet::drive, kill::Place};

/// How many sessions it works on at a time.
pub(super) const AT_A_TIME: usize = 4;

/// Drives sessions of so many steps until it is killed; `url` is the one server, the other keeps its calls at `host`.
///
/// # Errors
/// Whatever keeps it from its work.
pub async fn client(
    place: &Place,
    host: &Place,
    files: &Path,
    (url, steps, lease): (&str, usize, Duration),
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut program = StdioConfig::new(std::env::current_exe()?, Sandbox::danger_without_any());
    program.args = [
        "server".into(),
        host.to_string().into(),
        files.to_string_lossy().into(),
    ]
    .into();
    let (bank, till) = (
        server("bank", HttpConfig::new(url))?,
        server("till", program)?,
    );
    let agents = move |info: &LogInfo| {
        let session = info.log.0.to_string();
        let scripts = (0..=steps * 2).map(|_| {
            let session = session.clone();
            Script::from_fn(move |request| next(request, &session, steps))
        });
        let limits = Limits {
            max_turns: Some(10_000),
            ..Limits::default()
        };
        Ok(Agent::new(ScriptedModel::new(scripts))
            .limits(limits)
            .toolbox(bank.clone())
            .toolbox(till.clone()))
    };
    drive(place, lease, AT_A_TIME, |_| agents).await
}

fn server(name: &str, at: impl Into<Transport>) -> Result<McpServer, adjutant::mcp::Error> {
    McpServer::new(
        name,
        ServerConfig {
            revision: Revision::V2026_07_28,
            ..ServerConfig::new(at)
        },
    )
}

/// What the model says: by what was said before, in whichever process.
fn next(request: &Request, session: &str, steps: usize) -> Script {
    let step = request
        .entries
        .iter()
        .filter(|stored| matches!(stored.entry, Entry::Turn(_)))
        .count();
    if step >= steps {
        return Script::new().text(DONE);
    }
    let (tool, codes) = [
        ("bank_pay", 1),
        ("till_pay", 1),
        ("bank_haul", 0),
        ("bank_pay", 2),
    ][step % 4];
    Script::new().call(
        tool,
        json!({"session": session, "step": step, "codes": codes}),
    )
}

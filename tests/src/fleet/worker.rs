//! The process that is killed: a worker whose agents pay, step by step.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use adjutant::{
    Agent, Cancel, Replay,
    agent::{Limits, LogInfo},
    fleet::Fleet,
    llm::{CallResult, Entry, Request, Script, ScriptedModel},
    store::{Postgres, Sqlite},
    tools::{Approval, CallContext, ToolError, ToolSpec, tool_fn},
};
use serde_json::{Value, json};

use super::{ASKED, DONE, EFFECTS, STEPS};
use crate::kill::Place;

/// How long a step takes before and after it is done.
const WORK: Duration = Duration::from_millis(40);

/// Drives sessions until it is killed.
///
/// # Errors
/// Whatever keeps it from its work.
pub async fn worker(
    place: &Place,
    lease: Duration,
    files: &Path,
    concurrency: usize,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    drive(place, lease, concurrency, agents(files, Approval::Never)?).await
}

/// Drives the sessions at a place by the agents that are made for them.
///
/// # Errors
/// Whatever keeps it from that.
pub(crate) async fn drive(
    place: &Place,
    lease: Duration,
    concurrency: usize,
    agents: impl Fn(&LogInfo) -> Result<Agent, String> + Send + Sync + 'static,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let stop = Cancel::new();
    match place {
        Place::Sqlite(path) => fleet(Sqlite::open(path)?.journal(), agents, (concurrency, stop)).await?,
        Place::Postgres(url) => {
            // The server may be about to start again.
            let store = loop {
                match Postgres::connect(url.as_str()).lease(lease).await {
                    Ok(store) => break store,
                    Err(_) => tokio::time::sleep(WORK * 10).await,
                }
            };
            fleet(store.journal(), agents, (concurrency, stop)).await?;
        }
        Place::Jsonl(_) => return Err("files of JSON lines do not know what is due".into()),
    }
    Ok(())
}

async fn fleet(
    journal: impl adjutant::agent::DueWork + 'static,
    agents: impl Fn(&LogInfo) -> Result<Agent, String> + Send + Sync + 'static,
    (concurrency, stop): (usize, Cancel),
) -> Result<(), adjutant::agent::JournalError> {
    Fleet::new(journal, agents).concurrency(concurrency).run(stop).await
}

/// The agents of sessions, with the approval that a step of each needs.
///
/// # Errors
/// The file that tells what they did cannot be written.
pub fn agents(
    files: &Path,
    approval: Approval,
) -> std::io::Result<impl Fn(&LogInfo) -> Result<Agent, String> + Send + Sync + 'static> {
    let effects = Arc::new(OpenOptions::new().create(true).append(true).open(files.join(EFFECTS))?);
    Ok(move |info: &LogInfo| Ok(agent(&info.log.0, &effects, approval)))
}

fn agent(session: &str, effects: &Arc<File>, approval: Approval) -> Agent {
    let scripts = (0..=STEPS * 2).map(|_| Script::from_fn(next));
    let schema = json!({"type": "object", "properties": {"step": {"type": "integer"}}, "required": ["step"]});
    let spec = |name| ToolSpec { replay: Replay::Once, ..ToolSpec::new(name, "Pays a step.", schema.clone()) };
    let (effects, session) = (Arc::clone(effects), Arc::<str>::from(session));
    let pay = move |args: Value, _: CallContext| {
        let (effects, session) = (Arc::clone(&effects), Arc::clone(&session));
        async move {
            tokio::time::sleep(WORK).await;
            note(&effects, &session, &args["step"])?;
            tokio::time::sleep(WORK).await;
            Ok(CallResult::ok(format!("paid {}", args["step"])))
        }
    };
    let agent = Agent::new(ScriptedModel::new(scripts)).limits(Limits { max_turns: Some(100), ..Limits::default() });
    agent.tool(tool_fn(spec("pay"), pay.clone())).tool(tool_fn(ToolSpec { approval, ..spec("pay_much") }, pay))
}

/// What the model says: by what was said before, in whichever process.
fn next(request: &Request) -> Script {
    let step = request.entries.iter().filter(|stored| matches!(stored.entry, Entry::Turn(_))).count();
    let tool = if step == ASKED { "pay_much" } else { "pay" };
    if step < STEPS { Script::new().call(tool, json!({"step": step})) } else { Script::new().text(DONE) }
}

/// One line, written at once: a process that is killed has written it or not.
fn note(mut effects: &File, session: &str, step: &Value) -> Result<(), ToolError> {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let line = format!("{session} {step} {} {at}\n", std::process::id());
    effects.write_all(line.as_bytes()).map_err(|error| ToolError::failed(error.to_string()))
}

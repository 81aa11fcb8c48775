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
    agent::{DueWork, Limits, LogInfo},
    fleet::{Fleet, FleetPlacement},
    llm::{CallResult, Entry, Request, Script, ScriptedModel},
    orchestration::{Delegation, Profile, Registry},
    store::{Postgres, Sqlite},
    tools::{CallContext, ToolError, ToolSpec, tool_fn},
};
use serde_json::{Value, json};

use super::{DONE, EFFECTS, GIVEN, STEPS};
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
    let effects = Arc::new(OpenOptions::new().create(true).append(true).open(files.join(EFFECTS))?);
    let stop = Cancel::new();
    match place {
        Place::Sqlite(path) => fleet(Sqlite::open(path)?.journal(), effects, (concurrency, stop)).await?,
        Place::Postgres(url) => {
            // The server may be about to start again.
            let store = loop {
                match Postgres::connect(url.as_str()).lease(lease).await {
                    Ok(store) => break store,
                    Err(_) => tokio::time::sleep(WORK * 10).await,
                }
            };
            fleet(store.journal(), effects, (concurrency, stop)).await?;
        }
        Place::Jsonl(_) => return Err("files of JSON lines do not know what is due".into()),
    }
    Ok(())
}

async fn fleet(
    journal: impl DueWork + Clone + 'static,
    effects: Arc<File>,
    (concurrency, stop): (usize, Cancel),
) -> Result<(), adjutant::agent::JournalError> {
    let registry = Registry::new();
    let of_payer = Arc::clone(&effects);
    registry.register(Profile::new("payer", "Pays a step."), move || agent(payer, &of_payer));
    let delegation = Delegation::new(registry).on(FleetPlacement::new(journal.clone()));
    let agents = move |info: &LogInfo| match delegation.child(info) {
        Some(child) => child.map_err(|error| error.to_string()),
        None => {
            let session = Arc::clone(&info.log.0);
            Ok(delegation.install(agent(move |request| next(&session, request), &effects)))
        }
    };
    Fleet::new(journal, agents).concurrency(concurrency).run(stop).await
}

fn agent(next: impl Fn(&Request) -> Script + Clone + Send + 'static, effects: &Arc<File>) -> Agent {
    let scripts = (0..=STEPS * 2).map(|_| Script::from_fn(next.clone()));
    let effects = Arc::clone(effects);
    let schema = json!({
        "type": "object",
        "properties": {"bill": {"type": "string"}, "step": {"type": "integer"}},
        "required": ["bill", "step"],
    });
    let spec = ToolSpec { replay: Replay::Once, ..ToolSpec::new("pay", "Pays a step.", schema) };
    let pay = tool_fn(spec, move |args: Value, _: CallContext| {
        let effects = Arc::clone(&effects);
        async move {
            tokio::time::sleep(WORK).await;
            note(&effects, args["bill"].as_str().unwrap_or_default(), &args["step"])?;
            tokio::time::sleep(WORK).await;
            Ok(CallResult::ok(format!("paid {}", args["step"])))
        }
    });
    Agent::new(ScriptedModel::new(scripts)).limits(Limits { max_turns: Some(100), ..Limits::default() }).tool(pay)
}

/// What the model of one that was given a step says: it pays, and tells what came of that.
fn payer(request: &Request) -> Script {
    match request.entries.iter().last().map(|stored| &stored.entry) {
        Some(Entry::Turn(turn)) => Script::new().text(turn.results()[0].text()),
        Some(Entry::User(task)) => {
            let text = task.to_text();
            let (bill, step) = text.rsplit_once(' ').unwrap_or_default();
            Script::new().call("pay", json!({"bill": bill, "step": step.parse::<usize>().unwrap_or(STEPS)}))
        }
        _ => Script::new().text("nothing was said"),
    }
}

/// What the model says: by what was said before, in whichever process.
fn next(session: &str, request: &Request) -> Script {
    let step = request.entries.iter().filter(|stored| matches!(stored.entry, Entry::Turn(_))).count();
    if step == GIVEN {
        let task = json!({"agent": "payer", "task": format!("{session} {step}"), "context": ""});
        return Script::new().call("delegate", json!({"tasks": [task]}));
    }
    if step < STEPS {
        Script::new().call("pay", json!({"bill": session, "step": step}))
    } else {
        Script::new().text(DONE)
    }
}

/// One line, written at once: a process that is killed has written it or not.
fn note(mut effects: &File, session: &str, step: &Value) -> Result<(), ToolError> {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let line = format!("{session} {step} {} {at}\n", std::process::id());
    effects.write_all(line.as_bytes()).map_err(|error| ToolError::failed(error.to_string()))
}

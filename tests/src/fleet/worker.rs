//! The process that is killed: a worker whose agents pay, step by step.

use std::{
    fmt::Display,
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
    tools::{Approval, CallContext, ToolError, ToolSpec, tool_fn},
};
use serde_json::{Value, json};

use super::{ASKED, DONE, EFFECTS, GIVEN, STEPS, TAKEN, drill::due_work};
use crate::kill::Place;

/// How long a step takes before and after it is done.
const WORK: Duration = Duration::from_millis(40);

/// Drives sessions until it is killed; they give a step to others.
///
/// # Errors
/// Whatever keeps it from its work.
pub async fn worker(
    place: &Place,
    lease: Duration,
    files: &Path,
    concurrency: usize,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let effects = effects(files)?;
    drive(place, lease, concurrency, move |journal| {
        let registry = Registry::new();
        let of_payer = Arc::clone(&effects);
        registry.register(Profile::new("payer", "Pays a step."), move || {
            agent(payer, &of_payer, Approval::Never)
        });
        let delegation = Delegation::new(registry).on(FleetPlacement::new(journal));
        move |info: &LogInfo| match delegation.child(info) {
            Some(child) => child.map_err(|error| error.to_string()),
            None => lead(info, &effects, Approval::Never, Some(GIVEN))
                .map(|lead| delegation.install(lead)),
        }
    })
    .await
}

/// Drives the sessions at a place by the agents that are made for them.
///
/// # Errors
/// Whatever keeps it from that.
pub(crate) async fn drive<A>(
    place: &Place,
    lease: Duration,
    concurrency: usize,
    agents: impl FnOnce(Arc<dyn DueWork>) -> A,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
where
    A: Fn(&LogInfo) -> Result<Agent, String> + Send + Sync + 'static,
{
    // The server may be about to start again.
    let journal = loop {
        match due_work(place, lease).await {
            Ok(journal) => break journal,
            Err(_) if matches!(place, Place::Postgres(_)) => tokio::time::sleep(WORK * 10).await,
            Err(error) => return Err(error.into()),
        }
    };
    let agents = agents(Arc::clone(&journal));
    Ok(Fleet::new(journal, agents)
        .concurrency(concurrency)
        .run(Cancel::new())
        .await?)
}

/// The agents of sessions, with the approval that a step of each needs.
///
/// # Errors
/// The file that tells what they did cannot be written.
pub fn agents(
    files: &Path,
    approval: Approval,
) -> std::io::Result<impl Fn(&LogInfo) -> Result<Agent, String> + Send + Sync + 'static> {
    let effects = effects(files)?;
    Ok(move |info: &LogInfo| lead(info, &effects, approval, None))
}

fn effects(files: &Path) -> std::io::Result<Arc<File>> {
    Ok(Arc::new(
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(files.join(EFFECTS))?,
    ))
}

/// The agent of a session that was taken, which gives this step to another one.
fn lead(
    info: &LogInfo,
    effects: &Arc<File>,
    approval: Approval,
    given: Option<usize>,
) -> Result<Agent, String> {
    let session = Arc::clone(&info.log.0);
    note(effects, &session, TAKEN).map_err(|error| error.to_string())?;
    Ok(agent(
        move |request| next(&session, request, given),
        effects,
        approval,
    ))
}

fn agent(
    next: impl Fn(&Request) -> Script + Clone + Send + 'static,
    effects: &Arc<File>,
    approval: Approval,
) -> Agent {
    let scripts = (0..=STEPS * 2).map(|_| Script::from_fn(next.clone()));
    let effects = Arc::clone(effects);
    let schema = json!({
        "type": "object",
        "properties": {"bill": {"type": "string"}, "step": {"type": "integer"}},
        "required": ["bill", "step"],
    });
    let spec = |name| ToolSpec {
        replay: Replay::Once,
        ..ToolSpec::new(name, "Pays a step.", schema.clone())
    };
    let pay = move |args: Value, _: CallContext| {
        let effects = Arc::clone(&effects);
        async move {
            tokio::time::sleep(WORK).await;
            note(
                &effects,
                args["bill"].as_str().unwrap_or_default(),
                &args["step"],
            )?;
            tokio::time::sleep(WORK).await;
            Ok(CallResult::ok(format!("paid {}", args["step"])))
        }
    };
    let agent = Agent::new(ScriptedModel::new(scripts)).limits(Limits {
        max_turns: Some(100),
        ..Limits::default()
    });
    agent.tool(tool_fn(spec("pay"), pay.clone())).tool(tool_fn(
        ToolSpec {
            approval,
            ..spec("pay_much")
        },
        pay,
    ))
}

/// What the model of one that was given a step says: it pays, and tells what came of that.
fn payer(request: &Request) -> Script {
    match request.entries.iter().last().map(|stored| &stored.entry) {
        Some(Entry::Turn(turn)) => Script::new().text(turn.results()[0].text()),
        Some(Entry::User(task)) => {
            let text = task.to_text();
            let (bill, step) = text.rsplit_once(' ').unwrap_or_default();
            Script::new().call(
                "pay",
                json!({"bill": bill, "step": step.parse::<usize>().unwrap_or(STEPS)}),
            )
        }
        _ => Script::new().text("nothing was said"),
    }
}

/// What the model says: by what was said before, in whichever process.
fn next(session: &str, request: &Request, given: Option<usize>) -> Script {
    let step = request
        .entries
        .iter()
        .filter(|stored| matches!(stored.entry, Entry::Turn(_)))
        .count();
    if given == Some(step) {
        let task = json!({"agent": "payer", "task": format!("{session} {step}"), "context": ""});
        return Script::new().call("delegate", json!({"tasks": [task]}));
    }
    let tool = if step == ASKED { "pay_much" } else { "pay" };
    if step < STEPS {
        Script::new().call(tool, json!({"bill": session, "step": step}))
    } else {
        Script::new().text(DONE)
    }
}

/// One line, written at once: a process that is killed has written it or not.
fn note(mut effects: &File, session: &str, step: impl Display) -> Result<(), ToolError> {
    let at = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis());
    let line = format!("{session} {step} {} {at}\n", std::process::id());
    effects
        .write_all(line.as_bytes())
        .map_err(|error| ToolError::failed(error.to_string()))
}

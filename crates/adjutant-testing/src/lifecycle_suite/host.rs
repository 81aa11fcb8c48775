//! The host of the suite's agents: it works as a real one, with the misbehavior in the label `does` of an agent.

use std::{
    fs,
    future::pending,
    io::Write,
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt,
    process::{Command, ExitCode, Stdio},
    sync::Arc,
    time::Duration,
};

use adjutant_agent::{Agent, MemoryJournal};
use adjutant_llm::{Gate, Model, Script, ScriptedModel};
use adjutant_runtime::{
    Credentials, Error, ErrorKind, Prepared, Reason, Status, Workspace,
    host::PORT_VARIABLE,
    http::{Server, ServerOptions},
    prompt::LocalPrompter,
};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

/// The label with the behavior of an agent's host.
pub(super) const DOES: &str = "does";
/// The file in the working folder for which an agent waits that does this.
pub(super) const OPEN: &str = "open";
/// Its answers to the first and the second prompt.
pub(super) const ANSWERS: [&str; 2] = ["Yes.", "Yes again."];

/// The `main` of a host for the agents of the suite: call it first. `None` if the program was called for anything else.
pub fn host() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    let (word, folder) = (words.next()?, words.next()?);
    if word != "agent-host" {
        return None;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    Some(runtime.map_or(ExitCode::FAILURE, |runtime| {
        runtime.block_on(act(&Workspace::at(folder))).into()
    }))
}

/// Acts as the host of a workspace until it is requested to end, and returns the exit code, like [`host`], for a test
/// that is itself started as a host.
pub async fn act(workspace: &Workspace) -> u8 {
    run_action(workspace).await.unwrap_or_else(|error| {
        print_line(&format!("the host of the suite failed: {error}"));
        1
    })
}

/// Makes an agent of the suite in this process, for [`InProcessOptions::build`](adjutant_runtime::backend::InProcessOptions::build).
///
/// # Errors
/// None.
pub async fn build(
    prepared: Arc<Prepared>,
    workspace: Workspace,
    _: Credentials,
) -> Result<LocalPrompter, Error> {
    Ok(prompter(does(&prepared), &workspace))
}

fn does(prepared: &Prepared) -> &str {
    prepared
        .resolved
        .manifest
        .labels
        .get(DOES)
        .map_or("serve", String::as_str)
}

fn prompter(does: &str, workspace: &Workspace) -> LocalPrompter {
    let scripts = match does {
        "wait" => {
            let (gate, file) = (Gate::default(), workspace.work().join(OPEN));
            let script = Script::new().text(ANSWERS[0]).wait_at(0, &gate);
            tokio::spawn(async move {
                while !file.exists() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                gate.open();
            });
            vec![script]
        }
        _ => ANSWERS.map(|text| Script::new().text(text)).into(),
    };
    let model: Arc<dyn Model> = Arc::new(ScriptedModel::new(scripts));
    LocalPrompter::new(
        Agent::new(Arc::clone(&model)).name("clerk"),
        model,
        Arc::new(MemoryJournal::default()),
    )
}

async fn run_action(workspace: &Workspace) -> Result<u8, Error> {
    let prepared = workspace.prepared()?;
    let start = std::env::var("ADJUTANT_AGENT_START")
        .ok()
        .and_then(|start| start.parse().ok());
    let start =
        start.ok_or_else(|| Error::new(ErrorKind::Config, "ADJUTANT_AGENT_START is no id"))?;
    let does = does(&prepared);
    match does {
        "fail" => {
            print_line("no luck today");
            return Ok(7);
        }
        "tell" => {
            workspace.tell_end(
                start,
                Status::failed(Reason::Model, "the variable NO_KEY is not set"),
            )?;
            return Ok(1);
        }
        "fork" | "deaf" => {
            for words in [["setsid", "sleep", "600"].as_slice(), &["sleep", "600"]] {
                let mut command = Command::new(words[0]);
                command
                    .args(&words[1..])
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null());
                command.spawn().map_err(storage)?;
            }
        }
        _ => {}
    }
    serve(workspace, start, prompter(does, workspace)).await?;
    if does == "deaf" {
        // The termination signal has no effect any more: there is a listener for it.
        pending::<()>().await;
    }
    Ok(0)
}

/// Serves as a host does, until it is requested to end.
async fn serve(
    workspace: &Workspace,
    start: uuid::Uuid,
    prompter: LocalPrompter,
) -> Result<(), Error> {
    let lock = workspace.lock_host()?;
    let environment: Vec<String> = std::env::vars()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    print_line(&format!(
        "environment: {}",
        environment.join(" ").replace(|c: char| c.is_control(), " ")
    ));
    let former = fs::read(workspace.file("host.json")).ok();
    let former: Option<Value> = former.and_then(|text| serde_json::from_slice(&text).ok());
    let address = former.and_then(|host| host["address"].as_str()?.parse::<SocketAddr>().ok());
    let wanted = std::env::var(PORT_VARIABLE)
        .ok()
        .and_then(|port| port.parse().ok());
    let options = ServerOptions::new("clerk")
        .port(wanted.or(address.map(|it| it.port())).unwrap_or_default());
    let server = Server::bind(prompter, options).await?;
    let mut asked = signal(SignalKind::terminate()).map_err(storage)?;
    let host = json!({
        "pid": std::process::id(), "start": start, "address": server.address(), "token": server.token(),
    });
    let beside = workspace.file(".host.json.new");
    let file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside);
    file.and_then(|mut file| file.write_all(host.to_string().as_bytes()))
        .map_err(storage)?;
    fs::rename(&beside, workspace.file("host.json")).map_err(storage)?;
    server
        .serve(async move { asked.recv().await.unwrap_or_default() })
        .await;
    // It is held until the process is gone.
    std::mem::forget(lock);
    Ok(())
}

fn print_line(line: &str) {
    // There may be no reader.
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn storage(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Storage, error.to_string()).with_source(error)
}

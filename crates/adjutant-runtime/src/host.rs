//! The process of one agent: builds the agent of a workspace, serves it on loopback, and stops on request.

mod log;
mod program;
mod signals;

use std::{fmt, net::SocketAddr, sync::Arc, time::Duration};

use adjutant_protocols::a2a::PushTargets;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use self::{log::Log, signals::Signals};
use crate::{
    Credentials, Engine, Error, ErrorKind, Parts, Reason, Resolved, Status, Workspace,
    files::{self, Sync},
    http::{Server, ServerOptions},
};

pub use program::{main, part_names};

/// The file of a workspace with the address of its agent.
const FILE: &str = "host.json";
/// The variable with the id of the agent's start.
const START_VARIABLE: &str = crate::processes::START_VARIABLE;
/// The variable with the first port to try; by default, the previous port.
pub const PORT_VARIABLE: &str = "ADJUTANT_AGENT_PORT";

/// The address of an agent's process and other data, in `host.json` of its workspace; written when it listens.
///
/// Only its owner can read it. The file stays after the end of the process, so that the port can be reused.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HostFile {
    /// The process id.
    pub pid: u32,
    /// The id of this start: the value of `ADJUTANT_AGENT_START`.
    pub start: Uuid,
    /// The address on which it listens.
    pub address: SocketAddr,
    /// The required token.
    pub token: String,
}

/// The options of an agent's process.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HostOptions {
    /// The grace period of runs when the agent stops.
    pub grace: Duration,
    /// The parts that a manifest may name.
    pub parts: Parts,
}

impl HostOptions {
    /// A grace period of 10 seconds, and the built-in parts.
    pub fn new() -> Self {
        Self {
            grace: Duration::from_secs(10),
            parts: Parts::new(),
        }
    }

    /// Sets the grace period of runs when the agent stops.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// Sets the parts that a manifest may name.
    #[must_use]
    pub fn parts(self, parts: Parts) -> Self {
        Self { parts, ..self }
    }
}

impl Default for HostOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl HostFile {
    /// Reads the data of a workspace's current or last process.
    ///
    /// # Errors
    /// `Missing` if no process ran, `Storage` if the file cannot be read.
    pub fn read(workspace: &Workspace) -> Result<Self, Error> {
        files::read_json(&workspace.file(FILE))
    }

    /// True if its process was stopped by a signal and cannot answer. Only known on Linux.
    pub fn is_frozen(&self) -> bool {
        crate::processes::is_stopped(self.pid)
    }
}

/// Runs the agent of a workspace in this process, until `POST /v1/stop`, SIGTERM or SIGINT; SIGHUP is ignored.
///
/// It reads credentials from the variables that the agent needs, holds the workspace's lock, listens on the port of its
/// `host.json` or another one, and writes that file again. Notable events are logged to standard error, one JSON object
/// per line, without texts of prompts or answers. Its outcome is recorded in `ended.json`.
///
/// # Errors
/// `Busy` if another process runs the agent; otherwise the reason why it could not start, which is also in
/// `ended.json`.
pub async fn run(workspace: Workspace, options: HostOptions) -> Result<(), Error> {
    let (log, start) = (Log::new(), start_of_environment()?);
    log.note_panics();
    let pid = std::process::id();
    log.line(
        "host_started",
        json!({ "pid": pid, "start": start, "version": env!("CARGO_PKG_VERSION") }),
    );
    let lock = workspace
        .lock_host()
        .inspect_err(|error| log.failed(error))?;
    // Until it holds its lock, it is identified by its environment, which no tool can read at this time.
    hide_memory();
    let ended = live(&workspace, &options, start, &log).await;
    let status = match &ended {
        Ok(()) => Status::Stopped,
        Err(error) => {
            log.failed(error);
            Status::failed(Reason::from_error(error), crate::http::line(error))
        }
    };
    let told = workspace.tell_end(start, status);
    log.line("host_ended", json!({ "pid": pid, "start": start }));
    drop(lock);
    ended.and(told)
}

async fn live(
    workspace: &Workspace,
    options: &HostOptions,
    start: Uuid,
    log: &Log,
) -> Result<(), Error> {
    let mut signals = Signals::listen()?;
    let serving = async {
        let engine = engine_of(workspace, options.parts.clone()).await?;
        let agent = Arc::clone(&engine.resolved().manifest.name);
        let prompter = engine.prompter();
        let heard = log.clone();
        prompter.observe(Arc::new(move |work| heard.work(work)));
        let port = match std::env::var(PORT_VARIABLE) {
            Ok(port) => port.parse().map_err(|error| {
                Error::new(
                    ErrorKind::Config,
                    format!("{PORT_VARIABLE} is no port: {port:?}: {error}"),
                )
            })?,
            Err(_) => HostFile::read(workspace).map_or(0, |former| former.address.port()),
        };
        prompter.go_on(workspace, engine.resolved().manifest.on_restart)?;
        let mut serves = ServerOptions::new(agent).port(port).grace(options.grace);
        serves.description =
            Some(Arc::clone(&engine.resolved().manifest.description)).filter(|it| !it.is_empty());
        serves.pushes = engine.resolved().manifest.a2a_push.as_ref().map(|hosts| {
            let mut targets = PushTargets::default();
            targets.private_hosts.clone_from(hosts);
            targets
        });
        let server = Server::bind(prompter, serves).await?;
        let (address, token) = (server.address(), server.token().to_owned());
        let file = HostFile {
            pid: std::process::id(),
            start,
            address,
            token,
        };
        files::write_json(&workspace.file(FILE), &file, Sync::Program)?;
        log.line("host_ready", json!({ "address": address }));
        Ok::<_, Error>(server)
    };
    let server = tokio::select! {
        biased;
        // Stopped before it was ready: nothing was served.
        signal = signals.next() => {
            log.line("host_stopping", json!({ "signal": signal }));
            return Ok(());
        }
        server = serving => server?,
    };
    let stopped = async {
        let signal = signals.next().await;
        log.line("host_stopping", json!({ "signal": signal }));
    };
    server.serve(stopped).await;
    Ok(())
}

async fn engine_of(workspace: &Workspace, parts: Parts) -> Result<Engine, Error> {
    let resolved: Resolved = workspace.prepared()?.resolved;
    let credentials = Credentials::from_lookup(&resolved, |name| std::env::var(name).ok());
    let builder = Engine::builder(resolved)
        .workspace(workspace.clone())
        .credentials(credentials)
        .parts(parts);
    // The program that started the process has marked it, and has checked the agent's requested permissions.
    let is_started = std::env::var_os(START_VARIABLE).is_some();
    if is_started {
        builder.trusted().build().await
    } else {
        builder.build().await
    }
}

/// Returns the id of this start; a new one if the program that started the process set none.
fn start_of_environment() -> Result<Uuid, Error> {
    let Some(value) = std::env::var_os(START_VARIABLE) else {
        return Ok(Uuid::new_v4());
    };
    let start = value.to_str().and_then(|value| value.parse().ok());
    start.ok_or_else(|| {
        Error::new(
            ErrorKind::Config,
            format!("{START_VARIABLE} is no id of a start: {value:?}"),
        )
    })
}

/// Hides memory and environment of this process from other processes of the same user, including tools, and excludes it
/// from core dumps.
///
/// A program that runs agents in its own process must call it first. It only has an effect on Linux, and not against
/// processes that can access all others, such as processes of an unrestricted root.
///
/// Source: ptrace(2), section on access mode checking, 2026-01-04.
pub fn hide_memory() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // It only fails for values that the system does not know.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

impl fmt::Debug for HostFile {
    /// Omits the token, which is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostFile")
            .field("pid", &self.pid)
            .field("start", &self.start)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

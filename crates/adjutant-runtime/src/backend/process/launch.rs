//! Starts processes of agents, finds running ones, and follows them over HTTP.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use futures_util::StreamExt;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use uuid::Uuid;

use super::{
    ProcessOptions,
    child::{self, Child, Exit},
    launcher::{Bare, Launcher},
};
use crate::{
    Credentials, Error, ErrorKind, Prompter, Status, Trust, Workspace,
    backend::{
        HostChange, Logs,
        life::{Happening, Launch, LiveAgent, Starter, blocking, next_look, stopped},
    },
    files,
    host::HostFile,
    http::{Client, StatusStream},
    processes,
};

/// The interval at which the size of logs is checked.
const ROTATION: Duration = Duration::from_secs(1);
/// The delay before an unavailable status is requested again.
const AGAIN: Duration = Duration::from_millis(50);
/// The interval of health checks, and the timeout of each.
const BEAT: Duration = Duration::from_secs(1);
const ANSWER: Duration = Duration::from_secs(2);
/// The number of failed health checks before a process counts as frozen; a process that was stopped by a signal gets
/// fewer.
const MISSES: u32 = 5;
/// The maximum number of log lines in the message of a failure.
const TOLD_LINES: usize = 10;
/// The maximum number of characters of each line.
const TOLD_CHARS: usize = 500;

/// Starts processes.
pub(super) struct Processes {
    pub(super) host: PathBuf,
    pub(super) options: ProcessOptions,
}

#[async_trait]
impl Starter for Processes {
    fn host(&self) -> &Path {
        &self.host
    }

    fn host_change(&self) -> HostChange {
        self.options.host_change
    }

    fn trust(&self) -> Trust {
        self.options.trust.clone()
    }

    async fn launch(&self, launch: Launch) -> Result<Box<dyn LiveAgent>, Error> {
        let Launch {
            workspace,
            prepared,
            cancel,
        } = launch;
        let logs = self.logs(&workspace);
        let lookup = Arc::clone(&self.options.credentials);
        let credentials = Credentials::from_lookup(&prepared.resolved, |name| lookup(name));
        let (start, host) = (Uuid::from_u128(self.options.world.id()), self.host.clone());
        let (at, log, launcher) = (workspace.clone(), logs.clone(), self.launcher());
        let runtime = tokio::runtime::Handle::current();
        let child = blocking(move || {
            if at.is_hosted()? {
                return Err(Error::new(
                    ErrorKind::Busy,
                    "another process runs the agent already",
                ));
            }
            log.rotate()?;
            let id = at.agent()?.id;
            let _here = runtime.enter();
            Child::spawn(
                &host,
                (&at, launcher),
                &credentials,
                start,
                id,
                log.writer()?,
            )
        });
        let mut child = child.await?;
        let ready = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(stopped()),
            ready = self.ready(&workspace, &mut child) => ready,
        };
        match ready {
            Ok((host, client)) => Ok(Box::new(self.follow(workspace, child, &host, client))),
            Err(error) => {
                if error.kind() == ErrorKind::Closed {
                    self.end(&workspace, &mut child, None).await?;
                } else {
                    child.kill().await?;
                }
                Err(self.explain(error, &logs).await)
            }
        }
    }

    async fn adopt(&self, launch: Launch) -> Result<Box<dyn LiveAgent>, Error> {
        let Launch {
            workspace, cancel, ..
        } = launch;
        let at = workspace.clone();
        let last = blocking(move || at.last_start()).await?;
        let last = last.ok_or_else(|| {
            Error::new(
                ErrorKind::Busy,
                format!(
                    "another program runs the agent in {}",
                    workspace.root().display()
                ),
            )
        })?;
        // The program that started it may have been killed before it recorded the id; the process then has recorded it
        // itself.
        let path = workspace.file("host.json");
        let told: Option<HostFile> = blocking(move || files::read_json_if_any(&path))
            .await
            .ok()
            .flatten();
        let told = told
            .filter(|host| host.start == last.start)
            .map(|host| host.pid);
        // In a namespace, a process has a different id.
        let told = told.filter(|_| self.options.launcher.is_none());
        let mut child = Child::found(
            &workspace,
            self.launcher(),
            last.pid.or(told).unwrap_or_default(),
            last.start,
        );
        let ready = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(stopped()),
            ready = self.ready(&workspace, &mut child) => ready,
        };
        match ready {
            Ok((host, client)) => {
                match self.options.launcher {
                    None => child.is_at(host.pid),
                    Some(_) => child.is_elsewhere(),
                }
                Ok(Box::new(self.follow(workspace, child, &host, client)))
            }
            Err(error) => {
                child.kill().await?;
                Err(self.explain(error, &self.logs(&workspace)).await)
            }
        }
    }

    fn clean_up(&self, workspace: &Workspace) {
        if let Ok(Some(last)) = workspace.last_start() {
            child::sweep(None, last.start);
            self.launcher().kill(workspace);
        }
    }

    fn logs(&self, workspace: &Workspace) -> Logs {
        Logs::new(workspace, self.options.logs)
    }
}

impl Processes {
    fn launcher(&self) -> Arc<dyn Launcher> {
        self.options
            .launcher
            .clone()
            .unwrap_or_else(|| Arc::new(Bare))
    }

    /// Waits until a process reports that it is ready, with its start id and its token.
    async fn ready(
        &self,
        workspace: &Workspace,
        child: &mut Child,
    ) -> Result<(HostFile, Client), Error> {
        let (begun, launcher) = (Instant::now(), self.launcher());
        let mut unreached = None;
        loop {
            let late = begun + self.options.readiness;
            let look = Instant::now() + next_look(begun.elapsed());
            tokio::select! {
                biased;
                exit = child.wait() => return Err(self.not_begun(workspace, child, &exit)),
                () = tokio::time::sleep_until(look.min(late)) => {}
            }
            let within = late.min(Instant::now() + BEAT + ANSWER);
            match tokio::time::timeout_at(within, probe(workspace, child.start, &*launcher)).await {
                Ok(Ok(Some(ready))) => return Ok(ready),
                Ok(Err(error)) => unreached = Some(error),
                Ok(Ok(None)) => unreached = None,
                Err(_) => {}
            }
            if begun.elapsed() > BEAT + ANSWER && processes::is_stopped(child.pid) {
                return Err(Error::new(
                    ErrorKind::Frozen,
                    "its process was stopped by a signal before it was ready",
                ));
            }
            if Instant::now() >= late {
                let why = unreached
                    .map(|error| format!(": {error}"))
                    .unwrap_or_default();
                let message = format!(
                    "not ready after {} ms{why}",
                    self.options.readiness.as_millis()
                );
                return Err(Error::new(ErrorKind::Readiness, message));
            }
        }
    }

    /// Returns the error of a process that ended before it was ready: its recorded error, or its exit.
    fn not_begun(&self, workspace: &Workspace, child: &Child, exit: &Exit) -> Error {
        match workspace.end_of(child.start) {
            Some(Status::Failed { reason, message }) => Error::new(reason.kind(), message),
            _ => {
                let kind = if exit.is_killed() {
                    ErrorKind::Killed
                } else {
                    ErrorKind::Crashed
                };
                Error::new(kind, format!("{} before it was ready", exit.words()))
            }
        }
    }

    /// Adds the last lines of the log to an error, unless the process recorded the error itself, or was stopped.
    async fn explain(&self, error: Error, logs: &Logs) -> Error {
        if !matches!(
            error.kind(),
            ErrorKind::Crashed | ErrorKind::Killed | ErrorKind::Readiness | ErrorKind::TimedOut
        ) {
            return error;
        }
        let message = with_log(error.message(), logs.clone()).await;
        Error::new(error.kind(), message)
    }

    fn follow(&self, workspace: Workspace, child: Child, host: &HostFile, client: Client) -> Host {
        let mut rotation = tokio::time::interval(ROTATION);
        rotation.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (logs, address) = (self.logs(&workspace), host.address);
        let grace = self.options.grace;
        let frozen = Box::pin(frozen(client.clone(), child.pid));
        Host {
            workspace,
            child,
            client,
            address,
            statuses: None,
            rotation,
            frozen,
            logs,
            grace,
        }
    }

    async fn end(
        &self,
        workspace: &Workspace,
        child: &mut Child,
        client: Option<&Client>,
    ) -> Result<(), Error> {
        end(workspace, child, client, self.options.grace).await
    }
}

/// Returns the host file of the process of this start, its reachable address, and a client, if that process is ready;
/// an error if the launcher cannot reach it.
async fn probe(
    workspace: &Workspace,
    start: Uuid,
    launcher: &dyn Launcher,
) -> Result<Option<(HostFile, Client)>, Error> {
    let path = workspace.file("host.json");
    let host = blocking(move || files::read_json::<HostFile>(&path))
        .await
        .ok()
        .filter(|host| host.start == start);
    let Some(mut host) = host else {
        return Ok(None);
    };
    host.address = launcher.reach(workspace, host.address).await?;
    let Ok(client) = Client::new(host.address, host.token.as_str()) else {
        return Ok(None);
    };
    // Readiness needs no token, but the status does, which proves that this process wrote the file.
    let is_ready = client.ready().await.unwrap_or(false) && client.status().await.is_ok();
    Ok(is_ready.then_some((host, client)))
}

/// Sends a process a stop request, over HTTP if it listens and then by a signal, waits for the grace period, and kills
/// it.
async fn end(
    workspace: &Workspace,
    child: &mut Child,
    client: Option<&Client>,
    grace: Duration,
) -> Result<(), Error> {
    let deadline = Instant::now() + grace;
    let heard = match client {
        None => false,
        Some(client) => matches!(
            tokio::time::timeout(grace / 2, client.stop()).await,
            Ok(Ok(()))
        ),
    };
    // A process that received the HTTP request has half of the time before the signal.
    let ended = heard && child.ends_within(grace / 2).await;
    if !ended {
        child.ask();
    }
    let left = deadline.saturating_duration_since(Instant::now());
    if !ended && !child.ends_within(left).await {
        tracing::warn!(workspace = %workspace.root().display(), "the agent did not end in time: it is killed");
        return child.kill().await;
    }
    child.sweep().await
}

/// Returns a message with the last line of a log, and more lines below.
async fn with_log(message: &str, logs: Logs) -> String {
    let lines = blocking(move || logs.tail(TOLD_LINES))
        .await
        .unwrap_or_default();
    let cut = |line: &String| line.chars().take(TOLD_CHARS).collect::<String>();
    let lines: Vec<String> = lines
        .iter()
        .filter(|line| !line.trim().is_empty())
        .map(cut)
        .collect();
    match &lines[..] {
        [] => message.to_owned(),
        [line] => format!("{message}: {line}"),
        [.., last] => format!(
            "{message}: {last}\nthe last lines of its log:\n{}",
            lines.join("\n")
        ),
    }
}

/// A process that is ready.
struct Host {
    workspace: Workspace,
    child: Child,
    client: Client,
    address: SocketAddr,
    statuses: Option<StatusStream>,
    rotation: Interval,
    /// Resolves with the reason when the process is frozen.
    frozen: Pin<Box<dyn Future<Output = String> + Send>>,
    logs: Logs,
    grace: Duration,
}

#[async_trait]
impl LiveAgent for Host {
    async fn next(&mut self) -> Happening {
        loop {
            tokio::select! {
                biased;
                exit = self.child.wait() => return Happening::Ended(self.ended(&exit).await),
                why = &mut self.frozen => return Happening::Ended(self.thaw(why).await),
                status = told(&self.client, &mut self.statuses) => return Happening::Status(status),
                _ = self.rotation.tick() => {
                    let logs = self.logs.clone();
                    if let Err(error) = blocking(move || logs.rotate()).await {
                        tracing::warn!(%error, "the log of an agent was not rotated");
                    }
                }
            }
        }
    }

    async fn stop(&mut self) -> Result<(), Error> {
        end(
            &self.workspace,
            &mut self.child,
            Some(&self.client),
            self.grace,
        )
        .await
    }

    fn prompter(&self) -> Arc<dyn Prompter> {
        Arc::new(self.client.clone())
    }

    fn address(&self) -> Option<SocketAddr> {
        Some(self.address)
    }
}

impl Host {
    /// Kills a process that does not answer.
    async fn thaw(&mut self, why: String) -> Result<(), Error> {
        self.logs.note(&format!("adjutant: {why}: it is killed"));
        self.child.kill().await?;
        Err(Error::new(ErrorKind::Frozen, why))
    }

    /// Returns the outcome of the process: the recorded one, or a crash.
    async fn ended(&mut self, exit: &Exit) -> Result<(), Error> {
        self.child.sweep().await?;
        let (workspace, start) = (self.workspace.clone(), self.child.start);
        let told = blocking(move || Ok(workspace.end_of(start))).await?;
        match told {
            Some(Status::Stopped) => Ok(()),
            Some(Status::Failed { reason, message }) => Err(Error::new(reason.kind(), message)),
            _ if exit.is_success() => Ok(()),
            _ => {
                let words = exit.words();
                // Reads its last output before notes are added.
                let message = with_log(&words, self.logs.clone()).await;
                self.logs.note(&format!("adjutant: {words}"));
                Err(Error::new(ErrorKind::Crashed, message))
            }
        }
    }
}

/// Checks a process until it stops answering, and returns the reason why it counts as frozen. A busy process answers
/// late; an ended one is handled elsewhere.
async fn frozen(client: Client, pid: u32) -> String {
    let mut misses = 0;
    loop {
        tokio::time::sleep(BEAT).await;
        // A refused connection counts as an answer: the end of the process is detected elsewhere.
        misses = if tokio::time::timeout(ANSWER, client.ready()).await.is_ok() {
            0
        } else {
            misses + 1
        };
        if misses > 0 && processes::is_stopped(pid) {
            return "its process was stopped by a signal and does not answer".to_owned();
        }
        if misses >= MISSES {
            return format!("its process did not answer, {MISSES} times");
        }
    }
}

/// Returns the next status of a process; a lost connection is opened again. Cancel: nothing is lost.
async fn told(client: &Client, statuses: &mut Option<StatusStream>) -> Status {
    loop {
        match statuses {
            Some(stream) => match stream.next().await {
                Some(Ok(report)) => return report.status,
                Some(Err(_)) | None => *statuses = None,
            },
            None => match client.watch().await {
                Ok(stream) => *statuses = Some(stream),
                Err(_) => tokio::time::sleep(AGAIN).await,
            },
        }
    }
}

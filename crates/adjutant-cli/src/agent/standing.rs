//! The state of an agent, read from its directory and its process without changing anything.

use std::{fs, net::SocketAddr, sync::Arc, time::Duration};

use adjutant::runtime::{
    Entry, Goal, Home, Reason, Status, host::HostFile, http::Client, supervisor::Course,
};
use serde_json::{Value, json};

use crate::{exit::Exit, problem::Problem, screen::tell, trouble::runtime_problem};

/// The maximum time for a process to return its state.
const WITHIN: Duration = Duration::from_secs(1);

/// The state of an agent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AgentStanding {
    pub(crate) status: Status,
    pub(crate) address: Option<SocketAddr>,
    /// The time of the last change, in milliseconds since 1970-01-01 UTC.
    pub(crate) since_ms: Option<u64>,
    pub(crate) goal: Goal,
    pub(crate) course: Course,
    /// True if its process is running.
    pub(crate) is_hosted: bool,
}

impl AgentStanding {
    /// Reads the state of an agent; `None` if it no longer exists.
    pub(crate) async fn read(home: &Home, entry: &Entry) -> Option<Self> {
        let workspace = &entry.workspace;
        if !workspace.root().is_dir() {
            return None;
        }
        let written = workspace.status().ok();
        let is_hosted = workspace.is_hosted().unwrap_or(false);
        let mut standing = Self {
            status: written
                .as_ref()
                .map_or(Status::Created, |it| it.status.clone()),
            address: written.as_ref().and_then(|it| it.address),
            since_ms: written.as_ref().map(|it| it.at_ms),
            goal: home
                .desired(entry.id)
                .map_or(Goal::Stopped, |desired| desired.goal),
            course: home.course(entry.id).unwrap_or_default(),
            is_hosted,
        };
        if !is_hosted && standing.status.is_up() && home.is_operated().unwrap_or(false) {
            // Its operator is about to record how it ended, unless it cannot.
            tokio::time::sleep(WITHIN).await;
            if let Ok(written) = workspace.status() {
                standing.status = written.status;
            }
            standing.is_hosted = workspace.is_hosted().unwrap_or(false);
        }
        if is_hosted && awake(entry).is_err() {
            standing.status = Status::failed(Reason::Frozen, "its process was stopped by a signal");
        } else if is_hosted {
            match asked(entry).await {
                Ok(status) => standing.status = status,
                // Retries once: a busy process answers late. A process that refuses is about to exit.
                Err(NoAnswer::InTime) if standing.status.is_up() => match asked(entry).await {
                    Ok(status) => standing.status = status,
                    Err(NoAnswer::InTime) if workspace.is_hosted().unwrap_or(false) => {
                        standing.status =
                            Status::failed(Reason::Frozen, "its process does not answer");
                    }
                    Err(_) => {}
                },
                Err(_) => {}
            }
        } else if standing.status.is_up() && !standing.is_hosted {
            let crashed = || Status::failed(Reason::Crashed, "its process has ended");
            standing.status = workspace.last_end().unwrap_or_else(crashed);
        }
        if !standing.status.is_active() {
            standing.address = None;
        }
        Some(standing)
    }

    /// Formats the state in one line, with the next action of its supervisor.
    pub(crate) fn line(&self, now_ms: u64) -> String {
        let status = self.status.to_string();
        let course = &self.course;
        if self.status.is_active() {
            return status;
        }
        match (&course.given_up, course.next_ms) {
            (Some(why), _) if self.goal == Goal::Running => format!("{status}; given up: {why}"),
            (None, Some(next)) if next > now_ms => {
                format!(
                    "{status}; started again in {} s",
                    (next - now_ms).div_ceil(1_000)
                )
            }
            _ if course.is_waiting => format!("{status}; waits for a place"),
            _ => status,
        }
    }

    /// Format: `{"agent":…,"id":…,"status":…,"goal":…,"model":…,"address":…,"restarts":…,"created_ms":…,"since_ms":…}`.
    pub(crate) fn json(&self, entry: &Entry) -> Value {
        let mut value = json!({"agent": &*entry.name, "id": entry.id});
        let status = serde_json::to_value(&self.status).unwrap_or_default();
        value
            .as_object_mut()
            .into_iter()
            .for_each(|it| it.extend(status.as_object().cloned().unwrap_or_default()));
        value["goal"] = json!(self.goal);
        value["model"] = json!(model(entry));
        value["address"] = json!(self.address);
        value["restarts"] = json!(self.course.restarts);
        value["waiting"] = json!(self.course.is_waiting);
        value["next_ms"] = json!(self.course.next_ms);
        value["given_up"] = json!(self.course.given_up);
        value["created_ms"] = json!(entry.created_ms);
        value["since_ms"] = json!(self.since_ms);
        value["labels"] = json!(entry.resolved.manifest.labels);
        value
    }
}

/// Returns the permanent rules with their agents. Untrusted and unreadable rules are reported.
pub(crate) fn kept_rules(entry: &Entry) -> Vec<(Arc<str>, String)> {
    let mut all = Vec::new();
    for agent in &entry.resolved.manifest.agents {
        match entry.workspace.kept_rules(&agent.name) {
            Ok(rules) => all.extend(
                rules
                    .into_iter()
                    .map(|rule| (Arc::clone(&agent.name), rule)),
            ),
            Err(error) => tell(&format!("warning: {}", runtime_problem(&error).line())),
        }
    }
    all
}

/// Returns the first model of an agent.
pub(crate) fn model(entry: &Entry) -> Option<String> {
    let manifest = &entry.resolved.manifest;
    let named = manifest
        .agents
        .iter()
        .find(|agent| agent.name == manifest.entry_agent);
    let choice = named.or(manifest.agents.first())?.model.as_ref()?;
    choice.names().next().map(str::to_owned)
}

/// Returns the state that its process reports.
async fn asked(entry: &Entry) -> Result<Status, NoAnswer> {
    let client = client(entry).map_err(|_| NoAnswer::AtAll)?;
    match tokio::time::timeout(WITHIN, client.status()).await {
        Ok(report) => report
            .map(|report| report.status)
            .map_err(|_| NoAnswer::AtAll),
        Err(_) => Err(NoAnswer::InTime),
    }
}

/// The reason why a process did not return its status.
enum NoAnswer {
    /// It did not answer within the timeout.
    InTime,
    /// It does not listen, or sent a different answer.
    AtAll,
}

/// Fails if a process was stopped by a signal.
pub(super) fn awake(entry: &Entry) -> Result<(), Problem> {
    let host = HostFile::read(&entry.workspace)
        .ok()
        .filter(HostFile::is_frozen);
    host.map_or(Ok(()), |host| {
        let text = format!(
            "the agent {} is frozen: its process {} was stopped by a signal",
            entry.name, host.pid
        );
        Err(Problem::new(Exit::Failed, text)
            .hint(format!("`kill -CONT {}` continues it", host.pid)))
    })
}

/// Returns a client for an agent's process.
///
/// # Errors
/// `Usage` if the agent is not running.
pub(crate) fn client(entry: &Entry) -> Result<Client, Problem> {
    let problem = |why: &str| {
        Problem::new(
            Exit::Usage,
            format!("the agent {} cannot be reached: {why}", entry.name),
        )
    };
    let text = fs::read(entry.workspace.file("host.json")).map_err(|_| problem("it begins"))?;
    let host: HostFile = serde_json::from_slice(&text)
        .map_err(|error| problem("its host.json is damaged").cause(&error))?;
    Client::new(host.address, host.token).map_err(|error| runtime_problem(&error))
}

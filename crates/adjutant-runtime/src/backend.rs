//! Backends make instances of agents: in this process, or each in a process of its own.

mod folder;
mod in_process;
mod life;
mod logs;
mod member;
#[cfg(feature = "http")]
mod process;

use std::{fmt, net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use uuid::Uuid;

use crate::{Changes, Error, Prompter, Resolved, Status, Workspace};

pub use in_process::{InProcess, InProcessOptions};
pub use logs::{LogLimits, LogLines, Logs};
#[cfg(feature = "http")]
pub use process::{Launcher, Process, ProcessOptions};

/// The consequence of a change to the program that agents run in, since an agent was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostChange {
    /// The agent does not start: it fails with `config`.
    Refuse,
    /// It starts, and its provenance tells of the new one.
    Accept,
}

/// The time that an agent or its process may take to end once it is asked to, if nothing else is set.
const GRACE: Duration = Duration::from_secs(10);

/// Finds the value of a variable of the environment by its name; asked anew at every start.
pub type Lookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Makes agents, finds those that it made, and takes them all away.
#[async_trait]
pub trait Backend: Send + Sync {
    /// Writes an agent down; nothing is made or started yet.
    ///
    /// # Errors
    /// `Exists` if there is one of this id or name, `Storage` if it cannot be written.
    async fn create(&self, id: Uuid, resolved: Resolved) -> Result<Arc<dyn Instance>, Error>;

    /// Finds the agents that were made before: address, logs and status, and whether they run.
    ///
    /// It adopts those that run, cleans up after those that died, and finishes removals that were interrupted; so whoever
    /// calls it is the operator of the folder. Those that were found before are given as they are.
    ///
    /// # Errors
    /// `Storage` if the folder cannot be read. What is wrong with single ones is told beside the others.
    async fn load(&self) -> Result<Loaded, Error>;

    /// Stops and removes every agent.
    async fn destroy(&self) -> Result<(), Error>;
}

/// Agents that were found.
#[derive(Default)]
#[non_exhaustive]
pub struct Loaded {
    /// Those that can be used, sorted by their names.
    pub instances: Vec<Arc<dyn Instance>>,
    /// The problems of the others, one each.
    pub problems: Vec<Error>,
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self
            .instances
            .iter()
            .map(|instance| instance.name())
            .collect();
        f.debug_struct("Loaded")
            .field("instances", &names)
            .field("problems", &self.problems)
            .finish()
    }
}

/// One agent: its life from the first line of its manifest to the last file that it left.
///
/// What an agent does goes on when a future of these is dropped. When the last handle on an instance is dropped, an agent in
/// this process ends, and one in a process of its own lives on, for `load` to find.
#[async_trait]
pub trait Instance: Send + Sync {
    /// Its id.
    fn id(&self) -> Uuid;

    /// Returns its name.
    fn name(&self) -> Arc<str>;

    /// Returns the configuration that runs, or will run.
    fn resolved(&self) -> Arc<Resolved>;

    /// Its folder.
    fn workspace(&self) -> Workspace;

    /// Returns its current status.
    fn status(&self) -> Status;

    /// Watches where it stands.
    fn watch(&self) -> crate::StatusWatch;

    /// Returns the address that it listens on, or listened on last. A change is told to watchers, and kept in
    /// `status.json`.
    fn address(&self) -> Option<SocketAddr>;

    /// Returns the logs: the output of its process on standard output and standard error.
    fn logs(&self) -> Logs;

    /// Makes its workspace. It is made once; calls at the same time wait for one another, and only success is kept.
    ///
    /// # Errors
    /// `Pull` if a file is missing or is not what was pinned, `Init` or `Storage` if the workspace could not be made, `Closed`
    /// if it was stopped meanwhile.
    async fn prepare(&self) -> Result<(), Error>;

    /// Makes it anew of another manifest of the same name, and keeps sessions, memories, boards, notes and what lies in its
    /// working folder. One that runs is stopped and started with it; if that start fails, what ran before runs again.
    ///
    /// # Errors
    /// `Invalid` if the name is another one, `Init` if the start failed; as `prepare`, and nothing has changed then.
    async fn update(&self, resolved: Resolved) -> Result<Changes, Error>;

    /// Prepares if that was not done, begins, and waits for its end. An end that was asked for is no error.
    ///
    /// # Errors
    /// `Conflict` if it runs already or was removed; else why it failed.
    async fn run(&self) -> Result<(), Error>;

    /// Begins again in the workspace that was made, with credentials that are looked up anew, and returns when it is ready.
    ///
    /// # Errors
    /// As `run`; `Closed` if it was stopped before it was ready.
    async fn start(&self) -> Result<(), Error>;

    /// Asks it to end, waits for the grace period, then kills its whole group of processes. Nothing to do is no error.
    ///
    /// # Errors
    /// `Busy` if another process prepares or starts it.
    async fn stop(&self) -> Result<(), Error>;

    /// Stops it, and deletes all that it left. What was interrupted is finished by calling it again.
    ///
    /// # Errors
    /// `Storage` if something could not be deleted: it stays `removing`.
    async fn remove(&self) -> Result<(), Error>;

    /// Returns the handle for requests to it, while it is ready or works.
    ///
    /// # Errors
    /// `Conflict` if it does not run.
    async fn prompter(&self) -> Result<Arc<dyn Prompter>, Error>;
}

//! Backends create instances of agents: in this process, or each in a separate process.

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

/// The consequence if the program that agents run in has changed since an agent was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostChange {
    /// The agent does not start: it fails with `config`.
    Refuse,
    /// It starts, and its provenance records the new program.
    Accept,
}

/// The default grace period of an agent or its process.
const GRACE: Duration = Duration::from_secs(10);

/// Returns the value of an environment variable; called again at every start.
pub type Lookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Creates agents, finds existing ones, and removes them.
#[async_trait]
pub trait Backend: Send + Sync {
    /// Records an agent; its workspace is not created and nothing is started yet.
    ///
    /// # Errors
    /// `Exists` if an agent has this id or name, `Storage` if the files cannot be written.
    async fn create(&self, id: Uuid, resolved: Resolved) -> Result<Arc<dyn Instance>, Error>;

    /// Finds the recorded agents: their address, logs and status, and whether they run.
    ///
    /// It adopts running agents, cleans up after dead ones, and finishes interrupted removals. Its caller must
    /// therefore be the operator of the directory. Known instances are returned unchanged.
    ///
    /// # Errors
    /// `Storage` if the directory cannot be read. Errors of single agents are returned separately.
    async fn load(&self) -> Result<Loaded, Error>;

    /// Stops and removes every agent.
    async fn destroy(&self) -> Result<(), Error>;
}

/// The agents that were found.
#[derive(Default)]
#[non_exhaustive]
pub struct Loaded {
    /// The usable agents, sorted by name.
    pub instances: Vec<Arc<dyn Instance>>,
    /// The errors of the other agents, one each.
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

/// The lifecycle of one agent.
///
/// Operations continue when their futures are dropped. When the last handle of an instance is dropped, an agent in this
/// process ends. An agent in a separate process continues, and is found by `load`.
#[async_trait]
pub trait Instance: Send + Sync {
    /// Returns its id.
    fn id(&self) -> Uuid;

    /// Returns its name.
    fn name(&self) -> Arc<str>;

    /// Returns the configuration that runs, or will run.
    fn resolved(&self) -> Arc<Resolved>;

    /// Returns its directory.
    fn workspace(&self) -> Workspace;

    /// Returns its current status.
    fn status(&self) -> Status;

    /// Watches its status.
    fn watch(&self) -> crate::StatusWatch;

    /// Returns its current or last address. Changes are reported to watchers, and stored in `status.json`.
    fn address(&self) -> Option<SocketAddr>;

    /// Returns its logs: standard output and standard error of its process.
    fn logs(&self) -> Logs;

    /// Creates its workspace once. Concurrent calls wait for each other, and only success is stored.
    ///
    /// # Errors
    /// `Pull` if a file is missing or does not match its recorded digest, `Init` or `Storage` if the workspace could
    /// not be created, `Closed` if it was stopped in the meantime.
    async fn prepare(&self) -> Result<(), Error>;

    /// Prepares it again from another manifest with the same name, and keeps sessions, memories, boards, notes and the
    /// content of its working directory. A running agent is stopped and started with the update; if that start fails,
    /// the previous version is started again.
    ///
    /// # Errors
    /// `Invalid` if the name differs, `Init` if the start failed; like `prepare`, and nothing has changed then.
    async fn update(&self, resolved: Resolved) -> Result<Changes, Error>;

    /// Prepares it if necessary, starts it, and waits for its end. A requested stop is not an error.
    ///
    /// # Errors
    /// `Conflict` if it is running or was removed; else the reason of its failure.
    async fn run(&self) -> Result<(), Error>;

    /// Restarts it in the existing workspace, with credentials that are read again, and returns when it is ready.
    ///
    /// # Errors
    /// Like `run`; `Closed` if it was stopped before it was ready.
    async fn start(&self) -> Result<(), Error>;

    /// Sends it a stop request, waits for the grace period, then kills its process group. Succeeds if it is not
    /// running.
    ///
    /// # Errors
    /// `Busy` if another process is preparing or starting it.
    async fn stop(&self) -> Result<(), Error>;

    /// Stops it, and deletes all of its files. Calling it again finishes an interrupted removal.
    ///
    /// # Errors
    /// `Storage` if a file could not be deleted; the agent stays `removing`.
    async fn remove(&self) -> Result<(), Error>;

    /// Returns the handle for requests to it, while it is ready or working.
    ///
    /// # Errors
    /// `Conflict` if it is not running.
    async fn prompter(&self) -> Result<Arc<dyn Prompter>, Error>;
}

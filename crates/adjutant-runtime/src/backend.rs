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

/// The consequence of a change to the program that agents run in, since an agent was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostChange {
    /// The agent does not start: it fails with `config`.
    Refuse,
    /// It starts, and its provenance records the new one.
    Accept,
}

/// The default time that an agent or its process can take to end.
const GRACE: Duration = Duration::from_secs(10);

/// Returns the value of an environment variable; called again at every start.
pub type Lookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Creates agents, finds existing ones, and removes them.
#[async_trait]
pub trait Backend: Send + Sync {
    /// Writes an agent down; nothing is made or started yet.
    ///
    /// # Errors
    /// `Exists` if there is one of this id or name, `Storage` if it cannot be written.
    async fn create(&self, id: Uuid, resolved: Resolved) -> Result<Arc<dyn Instance>, Error>;

    /// Finds the agents that were made before: address, logs and status, and whether they run.
    ///
    /// It adopts the running ones, cleans up after the dead ones, and finishes interrupted removals; its caller must
    /// therefore be the operator of the directory. Instances that were found before are returned unchanged.
    ///
    /// # Errors
    /// `Storage` if the directory cannot be read. Errors of single agents are returned next to the others.
    async fn load(&self) -> Result<Loaded, Error>;

    /// Stops and removes every agent.
    async fn destroy(&self) -> Result<(), Error>;
}

/// Agents that were found.
#[derive(Default)]
#[non_exhaustive]
pub struct Loaded {
    /// The usable ones, sorted by name.
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
/// The operation continues when a future of these is dropped. When the last handle of an instance is dropped, an
/// agent in this process ends, and one in a separate process lives on, and is found by `load`.
#[async_trait]
pub trait Instance: Send + Sync {
    /// Its id.
    fn id(&self) -> Uuid;

    /// Returns its name.
    fn name(&self) -> Arc<str>;

    /// Returns the configuration that runs, or will run.
    fn resolved(&self) -> Arc<Resolved>;

    /// Its directory.
    fn workspace(&self) -> Workspace;

    /// Returns its current status.
    fn status(&self) -> Status;

    /// Watches its status.
    fn watch(&self) -> crate::StatusWatch;

    /// Returns its current or last address. A change is reported to watchers, and stored in `status.json`.
    fn address(&self) -> Option<SocketAddr>;

    /// Returns the logs: the output of its process on standard output and standard error.
    fn logs(&self) -> Logs;

    /// Makes its workspace. It is made once; calls at the same time wait for one another, and only success is kept.
    ///
    /// # Errors
    /// `Pull` if a file is missing or does not match its recorded digest, `Init` or `Storage` if the workspace could
    /// not be created, `Closed` if it was stopped in the meantime.
    async fn prepare(&self) -> Result<(), Error>;

    /// Prepares it again from another manifest with the same name, and keeps sessions, memories, boards, notes and the
    /// content of its working directory. A running one is stopped and started with it; if that start fails, the
    /// previous version runs again.
    ///
    /// # Errors
    /// `Invalid` if the name is another one, `Init` if the start failed; as `prepare`, and nothing has changed then.
    async fn update(&self, resolved: Resolved) -> Result<Changes, Error>;

    /// Prepares it if necessary, starts it, and waits for its end. A requested end is not an error.
    ///
    /// # Errors
    /// `Conflict` if it runs already or was removed; else why it failed.
    async fn run(&self) -> Result<(), Error>;

    /// Starts it again in the existing workspace, with credentials that are read again, and returns when it is ready.
    ///
    /// # Errors
    /// As `run`; `Closed` if it was stopped before it was ready.
    async fn start(&self) -> Result<(), Error>;

    /// Requests it to end, waits for the grace period, then kills its process group. Without anything to do it
    /// succeeds.
    ///
    /// # Errors
    /// `Busy` if another process prepares or starts it.
    async fn stop(&self) -> Result<(), Error>;

    /// Stops it, and deletes all of its files. An interrupted removal is finished by calling it again.
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

//! Backends make instances of agents: in this process, or each in a process of its own.

use std::sync::Arc;

use async_trait::async_trait;
use uuid::Uuid;

use crate::{Error, Prompter, Resolved, Status};

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
    /// What is wrong with others, one each.
    pub problems: Vec<Error>,
}

/// One agent: its life from the first line of its manifest to the last file that it left.
#[async_trait]
pub trait Instance: Send + Sync {
    /// Its id.
    fn id(&self) -> Uuid;

    /// What it is called.
    fn name(&self) -> Arc<str>;

    /// What runs, or will run.
    fn resolved(&self) -> Arc<Resolved>;

    /// Where it stands now.
    fn status(&self) -> Status;

    /// Watches where it stands.
    fn watch(&self) -> crate::StatusWatch;

    /// Makes its workspace. It is made once; calls at the same time wait for one another, and only success is kept.
    async fn prepare(&self) -> Result<(), Error>;

    /// Prepares if that was not done, begins, and waits for its end. An end that was asked for is no error.
    ///
    /// # Errors
    /// `Conflict` if it runs already or was removed; else why it failed.
    async fn run(&self) -> Result<(), Error>;

    /// Begins again in the workspace that was made, with credentials that are looked up anew, and returns when it is ready.
    ///
    /// # Errors
    /// As `run`.
    async fn start(&self) -> Result<(), Error>;

    /// Asks it to end, waits for the grace period, then kills its whole group of processes. Nothing to do is no error.
    async fn stop(&self) -> Result<(), Error>;

    /// Stops it, and deletes all that it left. What was interrupted is finished by calling it again.
    async fn remove(&self) -> Result<(), Error>;

    /// What it can be asked, while it is ready or works.
    ///
    /// # Errors
    /// `Conflict` if it does not run.
    async fn prompter(&self) -> Result<Arc<dyn Prompter>, Error>;
}

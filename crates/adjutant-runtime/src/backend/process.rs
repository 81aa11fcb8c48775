//! Agents in separate processes. The process outlives its operator, and the next operator adopts it.

mod child;
mod launch;
mod launcher;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use adjutant_llm::{SystemWorld, World};
use async_trait::async_trait;
use uuid::Uuid;

use super::{Backend, GRACE, HostChange, Instance, Loaded, LogLimits, Lookup, folder::Folder};
use crate::{error::Error, manifest::Resolved, trust::Trust};
use launch::Processes;

pub use launcher::Launcher;

/// The default time for a process to become ready.
const READINESS: Duration = Duration::from_secs(60);

/// Runs each agent in a process `<host> agent-host <workspace>`, which a [`Launcher`] starts.
pub struct Process {
    folder: Folder,
    host: PathBuf,
}

/// The options for processes of agents.
#[derive(Clone)]
#[non_exhaustive]
pub struct ProcessOptions {
    pub(super) credentials: Lookup,
    pub(super) world: Arc<dyn World>,
    pub(super) grace: Duration,
    pub(super) readiness: Duration,
    pub(super) logs: LogLimits,
    pub(super) host_change: HostChange,
    pub(super) trust: Trust,
    /// `None` starts hosts directly, as processes of this machine.
    pub(super) launcher: Option<Arc<dyn Launcher>>,
}

impl ProcessOptions {
    /// Uses the credentials of the environment, the system's clock, a grace period of 10 s, and 60 s to become ready; a
    /// changed host is refused.
    pub fn new() -> Self {
        Self {
            credentials: Arc::new(|name| std::env::var(name).ok()),
            world: Arc::new(SystemWorld),
            grace: GRACE,
            readiness: READINESS,
            logs: LogLimits::default(),
            host_change: HostChange::Refuse,
            trust: Trust::All,
            launcher: None,
        }
    }

    /// Sets the function that reads credentials, called again at every start.
    #[must_use]
    pub fn credentials(
        self,
        lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            credentials: Arc::new(lookup),
            ..self
        }
    }

    /// Sets the source of time and ids. Ids identify processes: they must be unique on the machine.
    #[must_use]
    pub fn world(self, world: impl World + 'static) -> Self {
        Self {
            world: Arc::new(world),
            ..self
        }
    }

    /// Sets the grace period of a process before it is killed: 10 s by default.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// Sets the time for a process to become ready: 60 s by default.
    #[must_use]
    pub fn readiness(self, readiness: Duration) -> Self {
        Self { readiness, ..self }
    }

    /// Sets the limits of stored logs: five files of 1 MiB by default.
    #[must_use]
    pub fn logs(self, logs: LogLimits) -> Self {
        Self { logs, ..self }
    }

    /// Sets the consequence if the host has changed since an agent was created.
    #[must_use]
    pub fn host_change(self, host_change: HostChange) -> Self {
        Self {
            host_change,
            ..self
        }
    }

    /// Sets how hosts are started, reached and killed: directly by default.
    #[must_use]
    pub fn launcher(self, launcher: impl Launcher + 'static) -> Self {
        Self {
            launcher: Some(Arc::new(launcher)),
            ..self
        }
    }

    /// Sets which agents may use their requested permissions: all by default. Other agents are neither prepared nor
    /// started.
    #[must_use]
    pub fn trust(self, trust: Trust) -> Self {
        Self { trust, ..self }
    }
}

impl Default for ProcessOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ProcessOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessOptions")
            .field("grace", &self.grace)
            .field("readiness", &self.readiness)
            .field("logs", &self.logs)
            .field("host_change", &self.host_change)
            .finish_non_exhaustive()
    }
}

impl Process {
    /// Stores agents in this directory, and runs them in this host; by default, the calling program.
    ///
    /// # Errors
    /// `Storage` if the path of the calling program cannot be determined.
    pub fn new(
        home: impl Into<PathBuf>,
        host: Option<PathBuf>,
        options: ProcessOptions,
    ) -> Result<Self, Error> {
        let host = match host {
            Some(host) => std::path::absolute(&host).unwrap_or(host),
            None => std::env::current_exe().map_err(|error| {
                crate::files::storage("find the program that runs", Path::new("itself"), error)
            })?,
        };
        let world = Arc::clone(&options.world);
        let starter = Arc::new(Processes {
            host: host.clone(),
            options,
        });
        Ok(Self {
            folder: Folder::new(home.into(), starter, world),
            host,
        })
    }

    /// Returns the program that agents run in.
    pub fn host(&self) -> &Path {
        &self.host
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Backend for Process {
    async fn create(&self, id: Uuid, resolved: Resolved) -> Result<Arc<dyn Instance>, Error> {
        self.folder.create(id, resolved).await
    }

    async fn load(&self) -> Result<Loaded, Error> {
        self.folder.load().await
    }

    async fn destroy(&self) -> Result<(), Error> {
        self.folder.destroy().await
    }
}

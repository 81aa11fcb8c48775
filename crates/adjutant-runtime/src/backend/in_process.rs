//! Agents in this process: each is a task, and ends with the program.

use std::{
    fmt,
    future::Future,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use adjutant_llm::{SystemWorld, World};
use async_trait::async_trait;
use tokio::sync::watch;
use uuid::Uuid;

use super::{
    Backend, GRACE, HostChange, Instance, Loaded, LogLimits, Logs, Lookup,
    folder::Folder,
    life::{Happening, Launch, LiveAgent, Starter, blocking, stopped},
};
use crate::{
    Credentials, Engine, Error, ErrorKind, Lock, Prepared, Prompter, Resolved, Status, Workspace,
    peers::Present, prompt::LocalPrompter,
};

/// An agent that is being built from a prepared workspace.
type Building = Pin<Box<dyn Future<Output = Result<LocalPrompter, Error>> + Send>>;

/// The function that builds an agent from its workspace.
type Build = Arc<dyn Fn(Arc<Prepared>, Workspace, Credentials) -> Building + Send + Sync>;

/// Runs agents in this process.
///
/// They are recorded in a directory like other agents, so that they are found again: agents that were running when the
/// program ended have failed with `crashed`.
pub struct InProcess {
    folder: Folder,
}

/// The options for agents in this process.
#[derive(Clone)]
#[non_exhaustive]
pub struct InProcessOptions {
    credentials: Lookup,
    world: Arc<dyn World>,
    grace: Duration,
    build: Build,
    host_change: HostChange,
}

impl InProcessOptions {
    /// Uses the credentials of the environment, the system's clock, and a grace period of 10 s; a changed program is
    /// accepted.
    pub fn new() -> Self {
        Self {
            credentials: Arc::new(|name| std::env::var(name).ok()),
            world: Arc::new(SystemWorld),
            grace: GRACE,
            build: Arc::new(|prepared, workspace, credentials| {
                Box::pin(engine(prepared, workspace, credentials))
            }),
            host_change: HostChange::Accept,
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

    /// Sets the source of time.
    #[must_use]
    pub fn world(self, world: impl World + 'static) -> Self {
        Self {
            world: Arc::new(world),
            ..self
        }
    }

    /// Sets the grace period for runs when the agent is stopped: 10 s by default.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// Sets the function that builds an agent instead of the engine, so that a program can add its own tools.
    #[must_use]
    pub fn build<F>(
        self,
        build: impl Fn(Arc<Prepared>, Workspace, Credentials) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<LocalPrompter, Error>> + Send + 'static,
    {
        let build = move |prepared, workspace, credentials| {
            Box::pin(build(prepared, workspace, credentials)) as Building
        };
        Self {
            build: Arc::new(build),
            ..self
        }
    }

    /// Sets the consequence if the program has changed since an agent was created.
    #[must_use]
    pub fn host_change(self, host_change: HostChange) -> Self {
        Self {
            host_change,
            ..self
        }
    }
}

impl Default for InProcessOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for InProcessOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcessOptions")
            .field("grace", &self.grace)
            .field("host_change", &self.host_change)
            .finish_non_exhaustive()
    }
}

impl InProcess {
    /// Stores agents in this directory.
    pub fn new(home: impl Into<PathBuf>, options: InProcessOptions) -> Self {
        let world = Arc::clone(&options.world);
        let program = std::env::current_exe().unwrap_or_default();
        Self {
            folder: Folder::new(home.into(), Arc::new(Tasks { program, options }), world),
        }
    }
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcess").finish_non_exhaustive()
    }
}

#[async_trait]
impl Backend for InProcess {
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

async fn engine(
    prepared: Arc<Prepared>,
    workspace: Workspace,
    credentials: Credentials,
) -> Result<LocalPrompter, Error> {
    let builder = Engine::builder(prepared.resolved.clone())
        .workspace(workspace)
        .credentials(credentials)
        .trusted();
    Ok(builder.build().await?.prompter())
}

/// Starts agents as tasks.
struct Tasks {
    program: PathBuf,
    options: InProcessOptions,
}

#[async_trait]
impl Starter for Tasks {
    fn host(&self) -> &Path {
        &self.program
    }

    fn host_change(&self) -> HostChange {
        self.options.host_change
    }

    async fn launch(&self, launch: Launch) -> Result<Box<dyn LiveAgent>, Error> {
        let Launch {
            workspace,
            prepared,
            cancel,
        } = launch;
        let host = workspace.clone();
        let lock = blocking(move || host.lock_host()).await?;
        let lookup = Arc::clone(&self.options.credentials);
        let credentials = Credentials::from_lookup(&prepared.resolved, |name| lookup(name));
        let on_restart = prepared.resolved.manifest.on_restart;
        let prompter = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(stopped()),
            built = (self.options.build)(prepared, workspace.clone(), credentials) => built?,
        };
        // Subscribed before runs continue, so that they are reported too.
        let runs = prompter.runs();
        prompter.go_on(&workspace, on_restart)?;
        let present = Present::new(&workspace, prompter.clone());
        Ok(Box::new(AgentTask {
            prompter,
            runs,
            grace: self.options.grace,
            _present: present,
            _lock: lock,
        }))
    }

    async fn adopt(&self, launch: Launch) -> Result<Box<dyn LiveAgent>, Error> {
        let message = format!(
            "another process runs the agent {}",
            launch.prepared.resolved.manifest.name
        );
        Err(Error::new(ErrorKind::Busy, message))
    }

    fn clean_up(&self, _: &Workspace) {}

    fn logs(&self, workspace: &Workspace) -> Logs {
        Logs::new(workspace, LogLimits::default())
    }
}

/// An agent that is a task.
struct AgentTask {
    prompter: LocalPrompter,
    runs: watch::Receiver<usize>,
    grace: Duration,
    /// Dropped before the lock.
    _present: Present,
    _lock: Lock,
}

#[async_trait]
impl LiveAgent for AgentTask {
    async fn next(&mut self) -> Happening {
        // Cannot fail, because the prompter holds the sender.
        let _changed = self.runs.changed().await;
        let runs = *self.runs.borrow_and_update();
        Happening::Status(if runs == 0 {
            Status::Ready
        } else {
            Status::Working
        })
    }

    async fn stop(&mut self) -> Result<(), Error> {
        self.prompter.close(self.grace).await;
        Ok(())
    }

    fn prompter(&self) -> Arc<dyn Prompter> {
        Arc::new(self.prompter.clone())
    }

    fn address(&self) -> Option<std::net::SocketAddr> {
        None
    }
}

//! The lifecycle of one agent, the same for every backend: prepare, start, follow, end. The backend provides a
//! starter.

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use adjutant_llm::World;
use adjutant_tool::Cancel;
use async_trait::async_trait;
use tokio::sync::watch;
use uuid::Uuid;

use super::{HostChange, Logs};
use crate::{
    Changes, Error, ErrorKind, Lock, Prepared, Prompter, Reason, Resolved, Status, StatusFile,
    StatusTracker, Trust, Wants, Workspace, files,
    provenance::{FileKind, Finding, PinnedFile, pin_program},
    workspace,
};

/// Starts agents, for one kind of backend.
#[async_trait]
pub(super) trait Starter: Send + Sync {
    /// Returns the program that agents run in.
    fn host(&self) -> &Path;

    /// Returns the consequence if the host has changed since an agent was created.
    fn host_change(&self) -> HostChange;

    /// Returns the trust, which decides which agents may use their requested permissions.
    fn trust(&self) -> Trust {
        Trust::All
    }

    /// Starts an agent, and returns when it is ready. If it is cancelled, it returns an error and leaves nothing
    /// behind.
    async fn launch(&self, launch: Launch) -> Result<Box<dyn LiveAgent>, Error>;

    /// Adopts an agent that another process started.
    async fn adopt(&self, launch: Launch) -> Result<Box<dyn LiveAgent>, Error>;

    /// Cleans up after a start whose end was not observed. Blocks.
    fn clean_up(&self, workspace: &Workspace);

    /// Returns the output of an agent's process.
    fn logs(&self, workspace: &Workspace) -> Logs;
}

/// The agent to start.
pub(super) struct Launch {
    pub(super) workspace: Workspace,
    pub(super) prepared: Arc<Prepared>,
    pub(super) cancel: Cancel,
}

/// An agent that is ready.
#[async_trait]
pub(super) trait LiveAgent: Send {
    /// Waits for the next event of the agent and returns it. Cancel: nothing is lost.
    async fn next(&mut self) -> Happening;

    /// Stops it: when this returns, no process of it is left.
    async fn stop(&mut self) -> Result<(), Error>;

    /// Returns the handle for requests to it.
    fn prompter(&self) -> Arc<dyn Prompter>;

    /// Returns the address that it listens on.
    fn address(&self) -> Option<std::net::SocketAddr>;
}

/// An event of an agent that is ready.
pub(super) enum Happening {
    /// Its status changed between ready and working.
    Status(Status),
    /// It ended without a request from this process.
    Ended(Result<(), Error>),
}

/// The way to start an agent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    New,
    Adopt,
}

/// One agent.
pub(super) struct Life {
    pub(super) id: Uuid,
    name: Arc<str>,
    resolved: Mutex<Arc<Resolved>>,
    pub(super) workspace: Workspace,
    pub(super) tracker: StatusTracker,
    pub(super) starter: Arc<dyn Starter>,
    pub(super) world: Arc<dyn World>,
    /// Cancels the current operation.
    stop: Mutex<Cancel>,
    /// The prepared agent, once it exists. Its lock is held during the preparation.
    prepared: tokio::sync::Mutex<Option<Arc<Prepared>>>,
    current: Mutex<Option<Current>>,
    prompter: Mutex<Option<Arc<dyn Prompter>>>,
    /// The content of `status.json`.
    written: tokio::sync::Mutex<Option<StatusFile>>,
    removal: tokio::sync::Mutex<()>,
    /// Cancelled when all handles of the agent are dropped.
    abandoned: Cancel,
}

/// A run of an agent, and its outcome.
#[derive(Clone)]
pub(super) struct Current {
    ended: watch::Receiver<Option<Result<(), Error>>>,
    /// Cancelled shortly before its end is reported.
    ending: Cancel,
}

impl Life {
    pub(super) fn new(
        workspace: Workspace,
        (id, resolved): (Uuid, Arc<Resolved>),
        (starter, world): (Arc<dyn Starter>, Arc<dyn World>),
        written: StatusFile,
    ) -> Arc<Self> {
        let tracker = StatusTracker::new(written.status.clone());
        tracker.set_address(written.address);
        Arc::new(Self {
            id,
            name: Arc::clone(&resolved.manifest.name),
            resolved: Mutex::new(resolved),
            workspace,
            tracker,
            starter,
            world,
            stop: Mutex::default(),
            prepared: tokio::sync::Mutex::default(),
            current: Mutex::default(),
            prompter: Mutex::default(),
            written: tokio::sync::Mutex::new(Some(written)),
            removal: tokio::sync::Mutex::default(),
            abandoned: Cancel::new(),
        })
    }

    /// Stops following it, without stopping a process that can continue.
    pub(super) fn abandon(&self) {
        self.abandoned.cancel();
    }

    pub(super) fn prompter(&self) -> Result<Arc<dyn Prompter>, Error> {
        let status = self.tracker.get();
        let prompter = locked(&self.prompter).clone();
        prompter.ok_or_else(|| {
            self.conflict(format!("cannot be prompted while it is {}", status.word()))
        })
    }

    /// Creates the workspace. It completes even if its future is dropped.
    pub(super) async fn prepare(self: &Arc<Self>) -> Result<(), Error> {
        self.admit()?;
        let (life, cancel) = (Arc::clone(self), locked(&self.stop).clone());
        let made =
            tokio::spawn(async move { life.ensure_prepared(&cancel, Status::Stopped).await });
        made.await.map_err(panicked)?.map(drop)
    }

    /// Starts it, and reports its end.
    pub(super) fn begin(self: &Arc<Self>, how: Begin) -> Result<Current, Error> {
        let mut current = locked(&self.current);
        self.admit()?;
        if current
            .as_ref()
            .is_some_and(|current| current.ended.borrow().is_none())
        {
            return Err(self.conflict("runs already"));
        }
        let (sender, ended) = watch::channel(None);
        let begun = Current {
            ended,
            ending: Cancel::new(),
        };
        let ending = begun.ending.clone();
        *current = Some(begun.clone());
        drop(current);
        let (life, cancel) = (Arc::clone(self), locked(&self.stop).clone());
        tokio::spawn(async move {
            let inner = tokio::spawn({
                let life = Arc::clone(&life);
                async move { life.live(how, &cancel).await }
            });
            let abort = inner.abort_handle();
            let ended = tokio::select! {
                ended = inner => ended.map_err(panicked).flatten(),
                () = life.abandoned.cancelled() => {
                    abort.abort();
                    Err(Error::new(ErrorKind::Closed, "all handles of the agent were dropped"))
                }
            };
            ending.cancel();
            life.settle(&ended).await;
            sender.send_replace(Some(ended));
        });
        Ok(begun)
    }

    /// Starts it, and returns when it is ready.
    pub(super) async fn start(self: &Arc<Self>) -> Result<(), Error> {
        let former = locked(&self.current)
            .clone()
            .filter(|former| former.ending.is_cancelled());
        if let Some(mut former) = former {
            // The status already contains the error.
            let _told = former.ended().await;
        }
        let mut watch = self.tracker.subscribe();
        let mut current = self.begin(Begin::New)?;
        tokio::select! {
            biased;
            ended = current.ended() => ended.and_then(|()| {
                Err(Error::new(ErrorKind::Closed, format!("the agent {} was stopped before it was ready", self.name())))
            }),
            ready = watch.wait_for(Status::is_up) => {
                // Written before this returns, so that readers of the file see the status too.
                self.persist().await;
                ready.map(drop)
            }
        }
    }

    /// Stops the current operation, and waits for its end.
    pub(super) async fn stop(&self) -> Result<(), Error> {
        let cancel = std::mem::take(&mut *locked(&self.stop));
        cancel.cancel();
        let current = locked(&self.current).clone();
        if let Some(mut current) = current {
            // The status already contains the outcome.
            let _told = current.ended().await;
        }
        drop(self.prepared.lock().await);
        Ok(())
    }

    /// Stops it, and deletes all its files. The directory is renamed first, so that it is either complete or gone.
    pub(super) async fn remove(self: &Arc<Self>) -> Result<(), Error> {
        let life = Arc::clone(self);
        tokio::spawn(async move { life.remove_all().await })
            .await
            .map_err(panicked)?
    }

    async fn remove_all(&self) -> Result<(), Error> {
        let _one = self.removal.lock().await;
        if self.tracker.get() == Status::Removed {
            return Ok(());
        }
        while self.tracker.get() != Status::Removing {
            self.stop().await?;
            // It may have been started again in the meantime.
            let _current = locked(&self.current);
            if !self.tracker.get().is_active() {
                self.tracker.set(Status::Removing)?;
            }
        }
        let lock = if self.workspace.root().is_dir() {
            Some(self.lock().await?)
        } else {
            None
        };
        self.persist().await;
        let (workspace, starter) = (self.workspace.clone(), Arc::clone(&self.starter));
        blocking(move || {
            starter.clean_up(&workspace);
            super::folder::bury(&workspace)
        })
        .await?;
        drop(lock);
        self.tracker.set(Status::Removed)
    }

    /// Prepares an update next to the running version, and applies it. If the agent is running, it is restarted, and
    /// the update is rolled back if the start fails.
    pub(super) async fn update(self: &Arc<Self>, resolved: Resolved) -> Result<Changes, Error> {
        self.admit()?;
        self.admit_wants(Arc::new(resolved.clone()), Vec::new())
            .await?;
        let (workspace, host, now) = (
            self.workspace.clone(),
            self.starter.host().to_owned(),
            self.world.now_ms(),
        );
        let make = move || {
            let made = workspace.make_update(&resolved, &host, now)?;
            made.keep().map(|()| made.changes().clone())
        };
        let changes = blocking(make).await?;
        if !self.tracker.get().is_active() {
            let _lock = self.lock().await?;
            self.put_update().await?;
            return Ok(changes);
        }
        self.stop().await?;
        self.start().await?;
        let workspace = self.workspace.clone();
        match blocking(move || workspace.last_update())
            .await?
            .and_then(|told| told.failed)
        {
            None => Ok(changes),
            Some(why) => Err(Error::new(
                ErrorKind::Init,
                format!("the update failed, and was taken back: {why}"),
            )),
        }
    }

    /// Applies a prepared update, if there is one. The caller holds the lifecycle lock.
    async fn put_update(&self) -> Result<(), Error> {
        let workspace = self.workspace.clone();
        // An agent that another process runs is not changed.
        let put = blocking(move || Ok(!workspace.is_hosted()? && workspace.put_update()?)).await?;
        self.reread(put).await
    }

    /// Reads the running version again, if it has changed on the disk.
    async fn reread(&self, is_changed: bool) -> Result<(), Error> {
        let workspace = self.workspace.clone();
        let agent = match blocking(move || workspace.agent()).await {
            // The known version stays in use.
            Err(_) if !is_changed => return Ok(()),
            agent => agent?,
        };
        if is_changed || *agent.resolved != **locked(&self.resolved) {
            *self.prepared.lock().await = None;
            *locked(&self.resolved) = agent.resolved;
        }
        Ok(())
    }

    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(super) fn resolved(&self) -> Arc<Resolved> {
        Arc::clone(&locked(&self.resolved))
    }

    fn admit(&self) -> Result<(), Error> {
        match self.tracker.get() {
            status @ (Status::Removing | Status::Removed) => {
                Err(self.conflict(format!("is {}", status.word())))
            }
            Status::Created
            | Status::Preparing
            | Status::Starting
            | Status::Ready
            | Status::Working
            | Status::Stopped
            | Status::Failed { .. } => Ok(()),
        }
    }

    fn conflict(&self, what: impl std::fmt::Display) -> Error {
        Error::new(
            ErrorKind::Conflict,
            format!("the agent {} {what}", self.name()),
        )
    }

    /// Acquires the lock that is held during preparation, start and removal, against other processes.
    async fn lock(&self) -> Result<Lock, Error> {
        let path = self.workspace.file("life.lock");
        blocking(move || Lock::take(&path)).await
    }

    /// Returns the prepared agent, and prepares it if necessary. `then` is the status after the preparation.
    async fn ensure_prepared(
        self: &Arc<Self>,
        cancel: &Cancel,
        then: Status,
    ) -> Result<Arc<Prepared>, Error> {
        let mut held = tokio::select! {
            held = self.prepared.lock() => held,
            () = cancel.cancelled() => return Err(stopped()),
        };
        if let Some(prepared) = &*held {
            return Ok(Arc::clone(prepared));
        }
        let workspace = self.workspace.clone();
        let prepared = if workspace.is_prepared() {
            blocking(move || workspace.prepared()).await?
        } else {
            let _lock = self.lock().await?;
            let workspace = self.workspace.clone();
            if let Ok(agent) = blocking(move || workspace.agent()).await {
                // An update may have been applied since it was read.
                *locked(&self.resolved) = agent.resolved;
            }
            self.set(Status::Preparing).await?;
            let made = self.make(cancel).await;
            match &made {
                Ok(_) => self.set(then).await?,
                Err(_) if cancel.is_cancelled() => self.set(Status::Stopped).await?,
                Err(error) => self.set(failure(error)).await?,
            }
            made?
        };
        let prepared = Arc::new(prepared);
        *held = Some(Arc::clone(&prepared));
        Ok(prepared)
    }

    async fn make(self: &Arc<Self>, cancel: &Cancel) -> Result<Prepared, Error> {
        let (life, cancel) = (Arc::clone(self), cancel.clone());
        let (host, now) = (self.starter.host().to_owned(), self.world.now_ms());
        let resolved = self.resolved();
        self.admit_wants(Arc::clone(&resolved), Vec::new()).await?;
        let made =
            blocking(move || workspace::prepare(&life.workspace, &resolved, &host, now, &cancel))
                .await;
        made.map_err(|error| match error.kind() {
            ErrorKind::Storage | ErrorKind::Missing => {
                Error::new(ErrorKind::Init, error.message()).with_source(error)
            }
            _ => error,
        })
    }

    /// Refuses an agent that requests untrusted permissions, before any of its files is read or run.
    async fn admit_wants(
        &self,
        resolved: Arc<Resolved>,
        files: Vec<PinnedFile>,
    ) -> Result<(), Error> {
        let (trust, workspace) = (self.starter.trust(), self.workspace.clone());
        if matches!(trust, Trust::All) {
            return Ok(());
        }
        blocking(move || {
            trust.admit(&Wants::from_workspace(
                &workspace,
                &resolved.manifest,
                &files,
            )?)
        })
        .await
    }

    /// Runs an agent from its start to its end.
    async fn live(self: &Arc<Self>, how: Begin, cancel: &Cancel) -> Result<(), Error> {
        if how == Begin::New && self.workspace.root().is_dir() {
            let _lock = self.lock().await?;
            self.put_update().await?;
        }
        let mut prepared = self.ensure_prepared(cancel, Status::Starting).await?;
        let lock = if how == Begin::New {
            Some(self.lock().await?)
        } else {
            None
        };
        if how == Begin::New && self.workspace.update().is_some() {
            // The update was prepared for this start; from here on, no other can be prepared.
            self.put_update().await?;
            prepared = self.ensure_prepared(cancel, Status::Starting).await?;
        }
        self.set(Status::Starting).await?;
        let mut live = match how {
            Begin::New => self.begun(prepared, cancel).await?,
            Begin::Adopt => {
                // The process has also recorded that it runs.
                self.admit_wants(
                    Arc::new(prepared.resolved.clone()),
                    prepared.provenance.files.clone(),
                )
                .await?;
                let launch = Launch {
                    workspace: self.workspace.clone(),
                    prepared,
                    cancel: cancel.clone(),
                };
                let live = self.starter.adopt(launch).await?;
                // The operator may have been killed before it confirmed that the update works.
                self.proven().await;
                live
            }
        };
        drop(lock);
        self.tracker.set_address(live.address());
        *locked(&self.prompter) = Some(live.prompter());
        self.set(Status::Ready).await?;
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled() => return live.stop().await,
                happening = live.next() => match happening {
                    Happening::Ended(ended) => return ended,
                    Happening::Status(status) if status.is_up() => self.set(status).await?,
                    // Its end is reported separately.
                    Happening::Status(_) => {}
                },
            }
        }
    }

    /// Starts it, and confirms an applied update. If the start fails, the previous version is started. If it failed for
    /// an external reason, neither is confirmed, and the next start decides.
    async fn begun(
        self: &Arc<Self>,
        prepared: Arc<Prepared>,
        cancel: &Cancel,
    ) -> Result<Box<dyn LiveAgent>, Error> {
        let begun = self.launched(prepared, cancel).await;
        if !self.workspace.is_on_trial() || cancel.is_cancelled() {
            return begun;
        }
        let error = match begun {
            Ok(live) => {
                self.proven().await;
                return Ok(live);
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::Busy | ErrorKind::Killed | ErrorKind::Frozen
                ) =>
            {
                return Err(error);
            }
            Err(error) => error,
        };
        let (workspace, now) = (self.workspace.clone(), self.world.now_ms());
        tracing::warn!(agent = %self.id, %error, "an update is taken back");
        let why = error
            .message()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned();
        blocking(move || workspace.take_back(&why, now)).await?;
        self.reread(true).await?;
        let workspace = self.workspace.clone();
        let prepared = Arc::new(blocking(move || workspace.prepared()).await?);
        self.launched(prepared, cancel).await
    }

    /// Confirms an update on trial: it works, even if that cannot be recorded.
    async fn proven(&self) {
        let (workspace, now) = (self.workspace.clone(), self.world.now_ms());
        let noted = blocking(move || {
            if workspace.is_on_trial() {
                workspace.keep_update(now)
            } else {
                Ok(())
            }
        });
        if let Err(error) = noted.await {
            tracing::warn!(agent = %self.id, %error, "the end of an update was not noted");
        }
    }

    async fn launched(
        self: &Arc<Self>,
        prepared: Arc<Prepared>,
        cancel: &Cancel,
    ) -> Result<Box<dyn LiveAgent>, Error> {
        let prepared = self.verify(prepared).await?;
        self.admit_wants(
            Arc::new(prepared.resolved.clone()),
            prepared.provenance.files.clone(),
        )
        .await?;
        if cancel.is_cancelled() {
            return Err(stopped());
        }
        self.starter
            .launch(Launch {
                workspace: self.workspace.clone(),
                prepared,
                cancel: cancel.clone(),
            })
            .await
    }

    /// Refuses to start if a file differs from its recorded digest.
    async fn verify(self: &Arc<Self>, prepared: Arc<Prepared>) -> Result<Arc<Prepared>, Error> {
        let life = Arc::clone(self);
        let accepted = blocking(move || life.verified(&prepared)).await?;
        *self.prepared.lock().await = Some(Arc::clone(&accepted));
        Ok(accepted)
    }

    fn verified(&self, prepared: &Arc<Prepared>) -> Result<Arc<Prepared>, Error> {
        let host = self.starter.host();
        let accepts = self.starter.host_change() == HostChange::Accept;
        let is_host = |finding: &Finding| finding.kind == FileKind::Host;
        let mut findings = prepared.provenance.verify(&self.workspace);
        findings.retain(|finding| finding.forbids_start() && !(accepts && is_host(finding)));
        if !findings.is_empty() {
            let told: Vec<String> = findings.iter().map(Finding::to_string).collect();
            let message = format!(
                "the agent {} is not what was made: {}",
                self.name(),
                told.join(", ")
            );
            return Err(Error::new(ErrorKind::Config, message));
        }
        let pinned = pin_program(FileKind::Host, host).map_err(|error| {
            Error::new(ErrorKind::Config, format!("the host cannot run: {error}"))
                .with_source(error)
        })?;
        let known = prepared
            .provenance
            .files
            .iter()
            .find(|file| file.kind == FileKind::Host);
        let same = known.is_some_and(|known| known.sha256 == pinned.sha256);
        if same {
            return Ok(Arc::clone(prepared));
        }
        // An imported agent has no recorded digests yet.
        if !accepts && known.is_some() {
            let message = format!(
                "the host {} is not the one that the agent was made for",
                host.display()
            );
            return Err(Error::new(ErrorKind::Config, message));
        }
        let mut provenance = prepared.provenance.clone();
        provenance.replace_host(pinned);
        self.workspace.write_provenance(&provenance)?;
        Ok(Arc::new(Prepared {
            provenance,
            ..Prepared::clone(prepared)
        }))
    }

    /// Records the outcome.
    async fn settle(&self, ended: &Result<(), Error>) {
        *locked(&self.prompter) = None;
        if self.abandoned.is_cancelled() {
            return;
        }
        let status = match ended {
            Ok(()) => Status::Stopped,
            Err(error) if error.kind() == ErrorKind::Closed => Status::Stopped,
            Err(error) => failure(error),
        };
        // An agent that failed or was stopped before its start already has its status; only an active one ends.
        if self.tracker.set_unless(status, |now| !now.is_active()) {
            self.persist().await;
        }
    }

    async fn set(&self, status: Status) -> Result<(), Error> {
        self.tracker.set(status)?;
        self.persist().await;
        Ok(())
    }

    /// Writes its status file. An agent continues if that fails.
    async fn persist(&self) {
        let mut written = self.written.lock().await;
        let (status, address) = (self.tracker.get(), self.tracker.address());
        let before = written.as_ref();
        if status == Status::Removed
            || before.is_some_and(|before| before.status == status && before.address == address)
        {
            return;
        }
        let moved = before.and_then(|before| before.address.filter(|was| Some(*was) != address));
        let former_address = moved.or(before.and_then(|before| before.former_address));
        let file = StatusFile {
            status,
            at_ms: self.world.now_ms(),
            address,
            former_address,
        };
        // After a crash of the machine no agent runs, so an active status need not survive it.
        let sync = if file.status.is_active() {
            files::Sync::Program
        } else {
            files::Sync::Disk
        };
        let path = self.workspace.file("status.json");
        let text = file.clone();
        match blocking(move || files::write_json(&path, &text, sync)).await {
            Ok(()) => *written = Some(file),
            Err(error) => {
                tracing::warn!(agent = %self.id, %error, "the status of the agent was not written")
            }
        }
    }
}

impl Current {
    /// Waits for its end, and returns the outcome.
    pub(super) async fn ended(&mut self) -> Result<(), Error> {
        match self.ended.wait_for(Option::is_some).await {
            Ok(ended) => ended.clone().unwrap_or(Ok(())),
            Err(_) => Err(Error::new(
                ErrorKind::Closed,
                "the agent's task ended with its runtime",
            )),
        }
    }
}

/// Returns the next delay of a loop that polls another process and has waited this long: at most a quarter of that.
pub(super) fn next_look(waited: Duration) -> Duration {
    (waited / 4).clamp(Duration::from_millis(5), Duration::from_secs(1))
}

pub(super) fn failure(error: &Error) -> Status {
    let line = error.message().lines().next().unwrap_or_default();
    Status::failed(Reason::from_error(error), line)
}

pub(super) fn stopped() -> Error {
    Error::new(ErrorKind::Closed, "the agent was stopped")
}

/// Runs blocking work on a separate thread.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(panicked)?
}

fn panicked(error: tokio::task::JoinError) -> Error {
    Error::new(
        ErrorKind::Crashed,
        format!("a task of the agent broke off: {error}"),
    )
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

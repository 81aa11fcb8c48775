//! The process of an agent, started here or adopted: checked, and terminated with all its descendants.

use std::{
    ffi::OsString,
    fs::File,
    io,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{process::Command, time::Instant};
use uuid::Uuid;

use super::launcher::Launcher;
use crate::{
    backend::life::blocking,
    credentials::Credentials,
    error::{Error, ErrorKind},
    files::{self, Sync},
    processes::{self, Mark},
    workspace::{StartFile, Workspace},
};

/// The interval at which the lock of an adopted process is tried.
const LOOK: Duration = Duration::from_millis(100);
/// The number of attempts to start a program that is busy, and the pause after each.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);
/// The time for a killed process to disappear.
const GONE: Duration = Duration::from_secs(5);

/// The process of an agent.
pub(super) struct Child {
    /// Our child; `None` if another process started it.
    own: Option<tokio::process::Child>,
    pub(super) pid: u32,
    pub(super) start: Uuid,
    workspace: Workspace,
    launcher: Arc<dyn Launcher>,
    /// True if the process has confirmed its id: it reported the id, and accepts the token that it reported.
    is_known: bool,
}

/// The way in which a process ended.
pub(super) enum Exit {
    Known(ExitStatus),
    /// It is not our child, so its exit is unknown.
    Unknown,
}

impl Child {
    /// Starts the host of a workspace with this command.
    ///
    /// Its environment contains only necessary variables, including the credentials, which are not stored anywhere. It
    /// leads its own process group.
    pub(super) fn spawn(
        host: &Path,
        (workspace, launcher): (&Workspace, Arc<dyn Launcher>),
        credentials: &Credentials,
        start: Uuid,
        id: Uuid,
        output: File,
    ) -> Result<Self, Error> {
        let words = [
            host.as_os_str(),
            "agent-host".as_ref(),
            workspace.root().as_os_str(),
        ]
        .map(OsString::from);
        let words = launcher.command(workspace, words.into())?;
        let Some((program, arguments)) = words.split_first() else {
            return Err(Error::new(
                ErrorKind::Config,
                "the launcher gave a command of no words",
            ));
        };
        // A tool may have deleted its working directory.
        [workspace.work(), workspace.tmp()]
            .iter()
            .try_for_each(|folder| files::make_folder(folder))?;
        let start_file = workspace.file("start.json");
        files::write_json(&start_file, &StartFile { start, pid: None }, Sync::Disk)?;
        let errors = output
            .try_clone()
            .map_err(|error| files::storage("open", host, error))?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(credentials.iter())
            .env(
                "PATH",
                std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()),
            )
            .env("HOME", workspace.work())
            .env("TMPDIR", workspace.tmp())
            .env("LANG", "C.UTF-8")
            .env("ADJUTANT_AGENT", id.to_string())
            .env(processes::START_VARIABLE, start.to_string())
            .current_dir(workspace.work())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        let own = spawned(&mut command).map_err(|error| {
            let by = if program == host.as_os_str() {
                String::new()
            } else {
                format!(" by {}", program.display())
            };
            let message = format!("cannot start the host {}{by}: {error}", host.display());
            Error::new(ErrorKind::Config, message).with_source(error)
        })?;
        let pid = own.id().unwrap_or_default();
        let child = Self {
            own: Some(own),
            pid,
            start,
            workspace: workspace.clone(),
            launcher,
            is_known: true,
        };
        files::write_json(
            &start_file,
            &StartFile {
                start,
                pid: Some(pid),
            },
            Sync::Program,
        )?;
        Ok(child)
    }

    /// A process that another program started.
    pub(super) fn found(
        workspace: &Workspace,
        launcher: Arc<dyn Launcher>,
        pid: u32,
        start: Uuid,
    ) -> Self {
        Self {
            own: None,
            pid,
            start,
            workspace: workspace.clone(),
            launcher,
            is_known: false,
        }
    }

    /// Confirms the id: the process accepted the token that is stored next to it.
    pub(super) fn is_at(&mut self, pid: u32) {
        (self.pid, self.is_known) = (pid, true);
    }

    /// The process answered, but the id that it reported may belong to a namespace, and to another process here. The id
    /// of its command is used if it still belongs to its host; otherwise the id is unknown.
    pub(super) fn is_elsewhere(&mut self) {
        let pid = if self.is_host() { self.pid } else { 0 };
        self.is_at(pid);
    }

    /// Waits for its end. Cancel: nothing is lost.
    pub(super) async fn wait(&mut self) -> Exit {
        if let Some(own) = &mut self.own {
            return own.wait().await.map_or(Exit::Unknown, Exit::Known);
        }
        loop {
            let workspace = self.workspace.clone();
            if let Ok(false) = blocking(move || workspace.is_hosted()).await {
                return Exit::Unknown;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Sends a termination signal.
    pub(super) fn ask(&self) {
        self.signal(Signal::TERM);
    }

    /// Waits for its end with a timeout; returns whether it ended.
    pub(super) async fn ends_within(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.wait()).await.is_ok()
    }

    /// Kills it with its process group and all processes that it started, and waits until they are gone.
    ///
    /// # Errors
    /// `TimedOut` if it does not end, `Busy` if another program holds its lock: that program is not killed.
    pub(super) async fn kill(&mut self) -> Result<(), Error> {
        // Its id cannot be reused before it is waited for.
        let is_ours = self.lives();
        if is_ours {
            processes::kill_group_now(self.pid);
            // Parts that signals cannot reach hold the lock until then.
            self.kill_rest().await?;
        }
        let begun = Instant::now();
        let gone = self.ends_within(GONE).await;
        self.sweep().await?;
        if !gone && !self.ends_within(GONE.saturating_sub(begun.elapsed())).await {
            if !is_ours {
                let lock = self.workspace.file("host.lock");
                let message = format!(
                    "a program that nobody here started holds {}",
                    lock.display()
                );
                return Err(Error::new(ErrorKind::Busy, message));
            }
            return Err(Error::new(
                ErrorKind::TimedOut,
                format!("the process {} was killed and is not gone", self.pid),
            ));
        }
        Ok(())
    }

    /// Kills remaining processes after its end: members of its group, and all processes with its marker.
    pub(super) async fn sweep(&self) -> Result<(), Error> {
        let (pid, start) = (self.own.is_some().then_some(self.pid), self.start);
        let (launcher, workspace) = (Arc::clone(&self.launcher), self.workspace.clone());
        blocking(move || {
            sweep(pid, start);
            launcher.kill(&workspace);
            Ok(())
        })
        .await
    }

    async fn kill_rest(&self) -> Result<(), Error> {
        let (launcher, workspace) = (Arc::clone(&self.launcher), self.workspace.clone());
        blocking(move || {
            launcher.kill(&workspace);
            Ok(())
        })
        .await
    }

    fn is_host(&self) -> bool {
        processes::is_host(self.pid, &Mark::start(self.start), self.workspace.root())
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid)
            .ok()
            .filter(|pid| *pid > 1)
            .and_then(Pid::from_raw);
        if let Some(pid) = pid.filter(|_| self.lives()) {
            // The process may already be gone.
            let _gone = kill_process(pid, signal);
        }
    }

    /// True if its id is still valid: our child was not waited for, or its lock is held and it is its host.
    fn lives(&self) -> bool {
        match &self.own {
            Some(own) => own.id().is_some(),
            None => {
                self.workspace.is_hosted().unwrap_or(false) && (self.is_known || self.is_host())
            }
        }
    }
}

impl Exit {
    /// Describes how it ended.
    pub(super) fn words(&self) -> String {
        let Self::Known(status) = self else {
            return "its process ended".to_owned();
        };
        match (status.code(), status.signal()) {
            (Some(code), _) => format!("its process ended with the exit code {code}"),
            (None, Some(signal)) => format!("its process was killed by the signal {signal}"),
            (None, None) => "its process ended".to_owned(),
        }
    }

    /// True if it was killed by SIGKILL.
    pub(super) fn is_killed(&self) -> bool {
        matches!(self, Self::Known(status) if status.signal() == Some(Signal::KILL.as_raw()))
    }

    pub(super) fn is_success(&self) -> bool {
        matches!(self, Self::Known(status) if status.success())
    }
}

/// Starts a command; retries if a child of another thread still holds a newly written program open.
fn spawned(command: &mut Command) -> io::Result<tokio::process::Child> {
    for _ in 0..TRIES {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(PAUSE)
            }
            other => return other,
        }
    }
    command.spawn()
}

/// Kills the remaining processes of an ended process: all with the marker of its start, and members of the group of a
/// child that was just waited for. Blocks.
pub(super) fn sweep(child: Option<u32>, start: Uuid) {
    processes::kill_marked(&Mark::start(start));
    // The group id of a recorded process may have been reused, so its members are found by markers.
    if let Some(pid) = child.filter(|pid| !is_there(*pid)) {
        processes::kill_group_now(pid);
    }
}

/// True if a process with this id exists.
fn is_there(pid: u32) -> bool {
    let pid = i32::try_from(pid)
        .ok()
        .filter(|pid| *pid > 1)
        .and_then(Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

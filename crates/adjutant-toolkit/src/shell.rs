//! Commands in a sandbox: `run_command`, and for those that go on in the background `command_output` and `stop_command`.

mod identity;
mod kept;
mod output;
mod plain;
mod run;
#[cfg(test)]
mod secrets_tests;
mod tools;

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, Once, PoisonError},
};

use adjutant_tool::Tools;

#[cfg(target_os = "linux")]
use crate::sandbox::publish::Published;
use crate::{Error, ErrorKind, Sandbox, sandbox::session::Session};
use kept::Kept;
use run::RunCommand;
use tools::{CommandOutput, StopCommand};

/// Variables by which a shell runs code or changes its meaning as it starts; functions begin with `BASH_FUNC_`.
///
/// Source: the manual of bash, sections "Bash Startup Files" and "Bash Variables" (2026-11).
const STARTS: [&str; 9] = [
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PROMPT_COMMAND",
    "PS4",
    "CDPATH",
    "GLOBIGNORE",
    "BASH_COMPAT",
];

/// Commands below one folder, in a sandbox; cheap to clone, and clones share what runs.
///
/// A command has a cleared environment, a home and temporary files of its own, 120 s, and no input. All that it started ends
/// with it. Its output is shown with its beginning and its end, without what steers terminals; the whole is kept on disk, up to
/// 64 MiB, as long as this value lives, and so do commands in the background.
#[derive(Debug, Clone)]
pub struct Shell {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    root: PathBuf,
    sandbox: Sandbox,
    environment: Vec<(OsString, OsString)>,
    kept: Mutex<Kept>,
    /// The home of the commands, their `/tmp` and `/dev/shm`, and their long outputs.
    folder: tempfile::TempDir,
    session: Arc<Session>,
    #[cfg(target_os = "linux")]
    published: Vec<Published>,
    /// Done once the user's git settings were copied into that home.
    identity: Once,
}

impl Shell {
    /// Commands below this folder, which they may change.
    ///
    /// # Errors
    /// `Root` if it is no directory, or if there is no room for temporary files.
    pub fn new(root: impl AsRef<Path>, sandbox: Sandbox) -> Result<Self, Error> {
        let root = found(root.as_ref())?;
        let folder = folder().map_err(|error| {
            Error::new(
                ErrorKind::Root,
                "no folder can be made for what commands write",
            )
            .with_source(error)
        })?;
        let session = Session::new(&root, folder.path());
        let inner = Inner {
            root,
            sandbox,
            environment: Vec::new(),
            kept: Mutex::default(),
            session,
            #[cfg(target_os = "linux")]
            published: Vec::new(),
            folder,
            identity: Once::new(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Hands on a variable of this process's environment, if it is set; nothing changes once the shell has clones. A variable by
    /// which a shell runs code at its start is never handed on.
    #[must_use]
    pub fn variable(mut self, name: impl AsRef<OsStr>) -> Self {
        let name = name.as_ref();
        let text = name.to_string_lossy();
        if STARTS.contains(&&*text) || text.starts_with("BASH_FUNC_") {
            return self;
        }
        if let (Some(inner), Some(value)) = (Arc::get_mut(&mut self.inner), env::var_os(name)) {
            inner.environment.push((name.to_owned(), value));
        }
        self
    }

    /// The name of the shell that runs command lines on this machine.
    pub fn interpreter() -> &'static str {
        match run::bash() {
            Some(_) => "bash",
            None => "sh",
        }
    }

    /// Opens a port of the commands' network on `127.0.0.1` of this machine: the user reaches the servers that commands start.
    /// Call it before the shell is cloned, and [`sandbox_helper`](crate::sandbox_helper) first in `main`.
    ///
    /// # Errors
    /// `Port` if another program uses the port, or if the commands do not share a network that only they reach, which needs
    /// bubblewrap and `nsenter`.
    #[cfg(target_os = "linux")]
    pub fn publish(mut self, port: u16) -> Result<Self, Error> {
        let published = match Arc::get_mut(&mut self.inner) {
            None => Err("the shell is in use".to_owned()),
            Some(inner) => Published::open(&inner.sandbox, &inner.session, port)
                .map(|published| inner.published.push(published)),
        };
        let error = |why| {
            Error::new(
                ErrorKind::Port,
                format!("cannot publish port {port}: {why}"),
            )
        };
        published.map(|()| self).map_err(error)
    }

    /// Returns an error: no commands run on this system.
    ///
    /// # Errors
    /// `Port`, always.
    #[cfg(not(target_os = "linux"))]
    pub fn publish(self, port: u16) -> Result<Self, Error> {
        let message = format!("cannot publish port {port}: no commands run on this system");
        Err(Error::new(ErrorKind::Port, message))
    }

    /// The toolbox `shell`: `run_command`, `command_output` and `stop_command`.
    pub fn toolbox(&self) -> Tools {
        Tools::new("shell")
            .tool(RunCommand::new(self.clone()))
            .tool(CommandOutput::new(self.clone()))
            .tool(StopCommand::new(self.clone()))
    }

    /// Ends the commands in the background that were not started to be kept; call it when a run has ended.
    ///
    /// They end too when the last clone is dropped, kept or not.
    pub fn end_run(&self) {
        self.kept().end_run();
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.inner
            .kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a program wrote, as text that steers no terminal.
pub(crate) fn plain_text(bytes: &[u8]) -> String {
    plain::text(bytes)
}

/// A folder, without links.
pub(crate) fn found(root: &Path) -> Result<PathBuf, Error> {
    let found = root
        .canonicalize()
        .and_then(|path| path.read_dir().map(|_| path));
    found.map_err(|error| {
        let message = format!("cannot open the folder for commands: {}", root.display());
        Error::new(ErrorKind::Root, message).with_source(error)
    })
}

/// Creates a directory for what commands write, with their home and their temporary files in it.
pub(crate) fn folder() -> std::io::Result<tempfile::TempDir> {
    let folder = tempfile::Builder::new().prefix("adjutant-").tempdir()?;
    for name in ["home", "tmp", "shm"] {
        std::fs::create_dir(folder.path().join(name))?;
    }
    Ok(folder)
}

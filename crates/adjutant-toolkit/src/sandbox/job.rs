//! A command to run in a sandbox, and how it ended.

use std::{ffi::OsString, path::PathBuf, process::ExitStatus, time::Duration};

use tempfile::TempDir;

/// The most processes that a call may have, and the most threads of all of them.
pub(crate) const PROCESSES: usize = 512;
pub(crate) const THREADS: u64 = 8_192;

/// A command to run.
#[derive(Debug)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "nothing is started elsewhere"))]
pub(crate) struct CommandJob {
    /// The program and its arguments.
    pub(crate) words: Vec<OsString>,
    /// The folder that it may change, if it may change one.
    pub(crate) root: PathBuf,
    pub(crate) access: Access,
    pub(crate) cwd: PathBuf,
    /// Its home, which it may change.
    pub(crate) home: PathBuf,
    /// Its temporary files, which go with it.
    pub(crate) tmp: TempDir,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) limit: Duration,
}

/// What a command may do with its root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Is given what a command writes, as it comes.
pub(crate) type Sink = Box<dyn FnMut(&[u8]) + Send>;

/// Is told once how a command ended, and everything that it started with it.
pub(crate) type OnEnd = Box<dyn FnOnce(CommandEnd) + Send>;

/// The way a command ended.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "nothing is started elsewhere"))]
pub(crate) enum CommandEnd {
    Exited(ExitStatus),
    Late,
    Stopped,
    /// It had too many processes, and was killed.
    Flooded,
    /// It could not be killed, or what became of it is not known.
    Lost,
}

//! In the place of `launch.rs` where nothing can hold a command: none is started.

use std::{ffi::OsString, path::PathBuf, process::ExitStatus, time::Duration};

use adjutant_tool::{ToolError, ToolErrorKind};
use tempfile::TempDir;

use super::{CURE, Sandbox};

/// A command that would run.
#[derive(Debug)]
#[expect(dead_code, reason = "nothing is started here")]
pub(crate) struct Job {
    pub(crate) words: Vec<OsString>,
    pub(crate) root: PathBuf,
    pub(crate) access: Access,
    pub(crate) cwd: PathBuf,
    pub(crate) home: PathBuf,
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

/// Would be given what a command writes.
pub(crate) type Sink = Box<dyn FnMut(&[u8]) + Send>;

/// Would be told how a command ended.
pub(crate) type OnEnd = Box<dyn FnOnce(How) + Send>;

/// No command.
#[derive(Debug)]
pub(crate) enum Running {}

/// The way a command would end.
#[derive(Debug, Clone, Copy)]
#[expect(dead_code, reason = "nothing is started here")]
pub(crate) enum How {
    Exited(ExitStatus),
    Late,
    Stopped,
    Lost,
}

impl Running {
    pub(crate) async fn start(_: &Sandbox, _: Job, _: Sink, _: OnEnd) -> Result<Self, ToolError> {
        Err(ToolError::new(ToolErrorKind::Denied, format!("no command runs without a sandbox; {CURE}")))
    }
}

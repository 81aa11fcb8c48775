//! A command to run in a sandbox, and how it ended.

use std::{
    ffi::OsString, os::fd::OwnedFd, path::PathBuf, process::ExitStatus, sync::Arc, time::Duration,
};

use tempfile::TempDir;
use tokio::sync::oneshot;

use super::{limits::ReachedLimit, session::Session};

/// A command to run.
#[derive(Debug)]
pub struct CommandJob {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// The folder that it works with.
    pub root: PathBuf,
    /// Its access to the root.
    pub access: Access,
    /// The folder that it begins in.
    pub cwd: PathBuf,
    /// Its home, which it may change.
    pub home: PathBuf,
    /// The folder of its temporary files.
    pub tmp: PathBuf,
    /// A folder that goes with it.
    pub folder: Option<TempDir>,
    /// The state that it shares with the other commands of its session.
    pub session: Option<Arc<Session>>,
    /// The protected paths that a person allowed it to write, from the root or absolute.
    pub writes: Vec<PathBuf>,
    /// Its environment variables, in addition to the usual ones if `has_usual` is set.
    pub environment: Vec<(OsString, OsString)>,
    /// True if the usual variables of a command are beneath its own.
    pub has_usual: bool,
    /// Its standard input.
    pub input: CommandInput,
    /// True if its standard error is captured separately.
    pub is_split: bool,
    /// The time that it has.
    pub limit: Duration,
}

/// The standard input of a command.
#[derive(Debug, Default)]
pub enum CommandInput {
    /// Nothing.
    #[default]
    None,
    /// These bytes.
    Bytes(Vec<u8>),
    /// Pipes for the caller, which writes the input and reads the output while the command runs; the output is not
    /// read here.
    Streamed(oneshot::Sender<CommandPipes>),
}

/// The ends of two pipes of a command; with a list of hosts its input is a socket.
#[derive(Debug)]
pub struct CommandPipes {
    /// Leads to its input: the end of it is when this is closed.
    pub input: OwnedFd,
    /// Comes from its output.
    pub output: OwnedFd,
}

/// The access of a command to its root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read it.
    Read,
    /// Read and change it.
    Write,
}

/// One of the two that a command writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputPipe {
    /// Its standard output, and its standard error unless that is captured separately.
    Output,
    /// Its error output.
    Errors,
}

/// Receives the output of a command in pieces.
pub(crate) type Sink = Box<dyn FnMut(OutputPipe, &[u8]) + Send>;

/// Called once, after a command and all processes that it started have ended.
pub(crate) type OnEnd = Box<dyn FnOnce(CommandEnd) + Send>;

/// The way a command ended.
#[derive(Debug, Clone, Copy)]
pub enum CommandEnd {
    /// It exited by itself.
    Exited(ExitStatus),
    /// It was killed: its time was over.
    Late,
    /// It was killed on request.
    Stopped,
    /// It reached a limit, and was killed.
    Limited(ReachedLimit),
    /// It could not be killed, or what became of it is not known.
    Lost,
}

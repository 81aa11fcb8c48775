//! The start of an agent's process: directly, or within a container or sandbox.

use std::{ffi::OsString, net::SocketAddr};

use async_trait::async_trait;

use crate::{error::Error, workspace::Workspace};

/// Starts, reaches and kills the process of an agent.
///
/// [`Process`](super::Process) does everything else: directory, locks, adoption, status, logs, credentials. Every
/// method is optional. A launcher must guarantee:
/// - the workspace exists under its own path, is writable, and its locks belong to this machine: a bind mount, not a
///   copy;
/// - the environment is passed to the host unchanged, and the processes that it starts inherit it;
/// - the process of the command lives until the host has exited, exits with its exit code, and survives the operator;
/// - the termination signal, sent to the command's process group, stops the host, and the command does not exit before
///   the host.
///
/// `adjutant_testing::lifecycle_suite` tests this.
///
/// # Example
/// ```
/// use std::ffi::OsString;
///
/// use adjutant_runtime::{Error, Workspace, backend::{Launcher, ProcessOptions}};
///
/// /// Starts every agent with a low priority.
/// struct Nice;
///
/// impl Launcher for Nice {
///     fn command(&self, _: &Workspace, host: Vec<OsString>) -> Result<Vec<OsString>, Error> {
///         Ok(["nice", "-n", "10"].map(OsString::from).into_iter().chain(host).collect())
///     }
/// }
///
/// let options = ProcessOptions::new().launcher(Nice);
/// ```
#[async_trait]
pub trait Launcher: Send + Sync {
    /// Returns the command that starts a host, as a program and its arguments; by default, the host itself.
    ///
    /// `host` is the program of the host and its arguments. Environment, directory, output and process group are set
    /// for the command. Blocks.
    ///
    /// # Errors
    /// Any error makes the start fail.
    fn command(&self, workspace: &Workspace, host: Vec<OsString>) -> Result<Vec<OsString>, Error> {
        let _ = workspace;
        Ok(host)
    }

    /// Returns the address at which this process reaches a host; by default, the address that it reported.
    ///
    /// The port must be the same: a host refuses requests for another port. If a host has its own network, the command
    /// sets [`PORT_VARIABLE`](crate::host::PORT_VARIABLE) to a port that is also free here. Called repeatedly until the
    /// host is ready, and by the next operator for a running host.
    ///
    /// # Errors
    /// Any error means that the host is not ready yet. The last error is reported if it never becomes ready.
    async fn reach(&self, workspace: &Workspace, listens: SocketAddr) -> Result<SocketAddr, Error> {
        let _ = workspace;
        Ok(listens)
    }

    /// Kills the remaining parts of a start that signals cannot reach, such as a container of a daemon; does nothing by
    /// default.
    ///
    /// The process group of the command has been killed before, and on Linux every process with the environment of the
    /// start. Called after every end, usually with nothing to do. Blocks.
    fn kill(&self, workspace: &Workspace) {
        let _ = workspace;
    }
}

/// Starts hosts directly.
#[derive(Debug)]
pub(super) struct Bare;

impl Launcher for Bare {}

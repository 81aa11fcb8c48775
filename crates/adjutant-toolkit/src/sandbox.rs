//! What holds the commands that a model runs. How it is done is in `landlock.rs`, `syscalls.rs` and `bwrap.rs`; who runs in it,
//! and how everything of a call ends, in `launch.rs`; how a list of hosts is reached, in `helper.rs` and `proxy.rs`.

#[cfg(target_os = "linux")]
mod bwrap;
#[cfg(target_os = "linux")]
mod end;
pub(crate) mod git_settings;
#[cfg(target_os = "linux")]
mod git_view;
#[cfg(target_os = "linux")]
mod guard;
#[cfg(target_os = "linux")]
mod harmless;
#[cfg(target_os = "linux")]
mod helper;
#[cfg(target_os = "linux")]
mod holder;
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "nobody asks for a host elsewhere")
)]
mod hosts;
pub(crate) mod job;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg_attr(not(target_os = "linux"), path = "sandbox/elsewhere.rs")]
pub(crate) mod launch;
pub(crate) mod limits;
#[cfg(target_os = "linux")]
mod places;
#[cfg(target_os = "linux")]
mod proxy;
#[cfg(target_os = "linux")]
pub(crate) mod publish;
mod report;
#[cfg(target_os = "linux")]
pub(crate) mod repository;
#[cfg(target_os = "linux")]
pub(crate) mod secrets;
pub(crate) mod session;
#[cfg(target_os = "linux")]
mod stamp;
#[cfg(target_os = "linux")]
mod syscalls;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
mod usage;
#[cfg(target_os = "linux")]
mod watcher;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant_tool::{Cancel, ToolError};
use tokio::sync::oneshot;

#[cfg(target_os = "linux")]
pub use helper::sandbox_helper;
pub use hosts::Hosts;
use job::{CommandEnd, CommandJob, Sink};
use launch::Running;
#[cfg(not(target_os = "linux"))]
pub use launch::sandbox_helper;
pub use limits::{CommandLimits, ReachedLimit};
pub use report::Report;

/// The cure that a tool names when nothing can hold its commands.
const CURE: &str =
    "hint: use a Linux kernel of 6.2 or newer with Landlock, or install bubblewrap (`bwrap`)";

/// What holds a command and all that it starts; cheap to clone.
///
/// A command reads programs, libraries and what is added with [`Sandbox::read`], writes below its root, a temporary folder of
/// its own and what is added with [`Sandbox::write`], has no network, no sockets of the machine, and no way to other processes.
/// What the kernel cannot hold is said by [`Sandbox::report`]; where nothing can hold a command, it is not run.
#[derive(Debug, Clone)]
pub struct Sandbox {
    by: By,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    keep: Vec<PathBuf>,
    network: Network,
    limits: Box<CommandLimits>,
}

/// The network that a command has.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Network {
    /// None, not even loopback.
    #[default]
    None,
    /// All of it: the commands can send whatever they can read to anyone.
    All,
    /// These hosts, by a proxy that the usual variables name (`http_proxy` and the like), and loopback among the command's own
    /// processes. What does not ask the proxy reaches nothing.
    ///
    /// It needs [`Sandbox::bwrap`], and [`sandbox_helper`] first in `main`; without either no command runs.
    Hosts(Hosts),
}

/// Who holds a command.
#[derive(Debug, Clone)]
enum By {
    /// The kernel's rules, which a thread puts on itself before it starts the command.
    #[cfg_attr(
        not(target_os = "linux"),
        allow(dead_code, reason = "made on Linux alone")
    )]
    Landlock { abi: u8 },
    /// The program `bwrap`, with namespaces.
    #[cfg_attr(
        not(target_os = "linux"),
        allow(dead_code, reason = "made on Linux alone")
    )]
    Bwrap { program: PathBuf },
    /// Nobody, and so nothing runs; why.
    Refusing { why: Arc<str> },
    /// Nobody, by someone's explicit word.
    Danger,
}

impl Sandbox {
    /// The strongest sandbox of this machine: bubblewrap, otherwise Landlock, otherwise one in which no command runs.
    pub fn new() -> Self {
        let first = Self::bwrap();
        match first.refuses() {
            None => first,
            Some(why) => {
                let second = Self::landlock();
                match second.refuses() {
                    None => second,
                    Some(other) => Self::from_backend(By::Refusing {
                        why: format!("{why}; {other}").into(),
                    }),
                }
            }
        }
    }

    /// Landlock and a filter of system calls, both of the kernel. Where it cannot hold a command, none runs.
    pub fn landlock() -> Self {
        #[cfg(target_os = "linux")]
        return Self::from_backend(match landlock::probe() {
            Ok(abi) => By::Landlock { abi },
            Err(why) => By::Refusing { why },
        });
        #[cfg(not(target_os = "linux"))]
        Self::of(By::Refusing {
            why: "Landlock is a part of Linux".into(),
        })
    }

    /// bubblewrap, with namespaces of its own for processes, network, mounts and IPC. Where it is not there or may make none, no
    /// command runs.
    pub fn bwrap() -> Self {
        #[cfg(target_os = "linux")]
        return Self::from_backend(match bwrap::probe() {
            Ok(program) => By::Bwrap { program },
            Err(why) => By::Refusing { why },
        });
        #[cfg(not(target_os = "linux"))]
        Self::of(By::Refusing {
            why: "bubblewrap needs Linux".into(),
        })
    }

    /// Nothing at all: commands have every right of this process. Only for a machine that is thrown away afterwards.
    pub fn danger_without_any() -> Self {
        Self::from_backend(By::Danger)
    }

    /// Lets commands read this file, or everything below this folder, and execute it.
    #[must_use]
    pub fn read(mut self, path: impl Into<PathBuf>) -> Self {
        self.read.push(path.into());
        self
    }

    /// Lets commands read and change this file, or everything below this folder.
    #[must_use]
    pub fn write(mut self, path: impl Into<PathBuf>) -> Self {
        self.write.push(path.into());
        self
    }

    /// Keeps this file as it is, if it is there, although commands may change its folder; bubblewrap alone can.
    #[must_use]
    pub fn keep(mut self, path: impl Into<PathBuf>) -> Self {
        self.keep.push(path.into());
        self
    }

    /// Sets the network that commands have; none by default.
    #[must_use]
    pub fn network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// Sets the limits of each call.
    #[must_use]
    pub fn limits(mut self, limits: CommandLimits) -> Self {
        self.limits = Box::new(limits);
        self
    }

    /// True if commands reach the hosts of a list: their input is a socket then.
    #[doc(hidden)]
    pub fn has_hosts(&self) -> bool {
        matches!(self.network, Network::Hosts(_))
    }

    /// One in which no command runs, and why: for tests of what happens then.
    #[doc(hidden)]
    pub fn refusing(why: &str) -> Self {
        Self::from_backend(By::Refusing { why: why.into() })
    }

    /// Returns why no command runs in it, if none does.
    pub fn refuses(&self) -> Option<&str> {
        match (&self.by, &self.network) {
            (By::Refusing { why }, _) => Some(why),
            (By::Landlock { .. } | By::Danger, Network::Hosts(_)) => {
                Some("only bubblewrap can hold a list of hosts")
            }
            (By::Bwrap { .. }, Network::Hosts(_)) if !launch::has_helper() => {
                Some("this program does not help to hold a list of hosts")
            }
            (By::Landlock { .. } | By::Bwrap { .. } | By::Danger, _) => None,
        }
    }

    /// True if commands run, and something holds them.
    pub fn holds(&self) -> bool {
        self.refuses().is_none() && !matches!(self.by, By::Danger)
    }

    /// What helps where no command runs.
    fn cure(&self) -> &'static str {
        match (&self.by, &self.network) {
            (By::Bwrap { .. }, Network::Hosts(_)) => {
                "hint: call `adjutant_toolkit::sandbox_helper()` first in `main`"
            }
            (By::Landlock { .. } | By::Danger, Network::Hosts(_)) => {
                "hint: take `Sandbox::bwrap()`, or another network than `Network::Hosts`"
            }
            _ => CURE,
        }
    }

    /// Returns its guarantees on this machine, and the missing ones.
    pub fn report(&self) -> Report {
        Report::from_sandbox(self)
    }

    /// Returns a note about what the output of a command shows as refused.
    pub(crate) fn explain(&self, output: &str, root: &Path) -> Option<String> {
        report::explain(self, output, root)
    }

    /// Runs a command until it and everything that it started have ended.
    ///
    /// Cancel: it is killed in the background.
    ///
    /// # Errors
    /// `Denied` if nothing can hold it, with the cure; `Failed` if it cannot be started.
    #[doc(hidden)]
    pub async fn run(
        &self,
        job: CommandJob,
        sink: Sink,
        cancel: &Cancel,
    ) -> Result<CommandEnd, ToolError> {
        let (told, mut ended) = oneshot::channel();
        let on_end = Box::new(move |how| {
            // Who asked may be gone.
            let _ = told.send(how);
        });
        let running = Running::start(self, job, sink, on_end).await?;
        let how = tokio::select! {
            how = &mut ended => how,
            () = cancel.cancelled() => {
                drop(running);
                ended.await
            }
        };
        Ok(how.unwrap_or(CommandEnd::Lost))
    }

    fn from_backend(by: By) -> Self {
        Self {
            by,
            read: Vec::new(),
            write: Vec::new(),
            keep: Vec::new(),
            network: Network::None,
            limits: Box::default(),
        }
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

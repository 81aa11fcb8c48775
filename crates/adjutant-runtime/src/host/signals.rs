//! The signals that end a process normally, and the ignored one.

use std::io;

use crate::{Error, ErrorKind};

/// Receives signals from its creation on.
#[cfg(unix)]
pub(super) struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    /// A hangup of the terminal is ignored.
    hangup: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(super) fn listen() -> Result<Self, Error> {
        use tokio::signal::unix::{SignalKind, signal};
        let hear = |kind| signal(kind).map_err(unheard);
        Ok(Self {
            terminate: hear(SignalKind::terminate())?,
            interrupt: hear(SignalKind::interrupt())?,
            hangup: hear(SignalKind::hangup())?,
        })
    }

    /// Waits for the next termination signal and returns its name.
    pub(super) async fn next(&mut self) -> &'static str {
        loop {
            tokio::select! {
                Some(()) = self.terminate.recv() => return "SIGTERM",
                Some(()) = self.interrupt.recv() => return "SIGINT",
                Some(()) = self.hangup.recv() => {}
                else => std::future::pending().await,
            }
        }
    }
}

/// Receives the close request of a console.
#[cfg(windows)]
pub(super) struct Signals {
    interrupt: tokio::signal::windows::CtrlC,
    close: tokio::signal::windows::CtrlBreak,
}

#[cfg(windows)]
impl Signals {
    pub(super) fn listen() -> Result<Self, Error> {
        use tokio::signal::windows::{ctrl_break, ctrl_c};
        Ok(Self {
            interrupt: ctrl_c().map_err(unheard)?,
            close: ctrl_break().map_err(unheard)?,
        })
    }

    /// Waits for the next termination signal and returns its name.
    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            Some(()) = self.interrupt.recv() => "CTRL-C",
            Some(()) = self.close.recv() => "CTRL-BREAK",
            else => std::future::pending().await,
        }
    }
}

fn unheard(error: io::Error) -> Error {
    Error::new(ErrorKind::Init, "could not listen for signals").with_source(error)
}

//! Ctrl-C: the first one ends the run in an orderly way, the second one ends the command.

use std::io::{self, Write};

use adjutant::Cancel;
use tokio::task::spawn_blocking;

use crate::{exit::Exit, screen::Chatter};

/// Listens from now on. Needs a multi-threaded runtime, because the writing thread can block.
///
/// # Errors
/// If the system does not support it.
pub(crate) fn listen(cancel: Cancel, chatter: Chatter) -> io::Result<()> {
    let mut presses = Presses::new()?;
    tokio::spawn(async move {
        presses.next().await;
        if chatter != Chatter::None {
            tokio::select! {
                // There is no place to report it if standard error is closed.
                _ = spawn_blocking(tell) => {}
                // The output has no reader.
                () = presses.next() => exit(),
            }
        }
        cancel.cancel();
        presses.next().await;
        exit()
    });
    Ok(())
}

fn exit() {
    std::process::exit(Exit::Cancelled as i32)
}

fn tell() -> io::Result<()> {
    writeln!(io::stderr().lock(), "cancelling; Ctrl-C again ends at once")
}

/// The presses of Ctrl-C; none is lost between two polls.
pub(crate) struct Presses {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
    #[cfg(windows)]
    signal: tokio::signal::windows::CtrlC,
}

impl Presses {
    pub(crate) fn new() -> io::Result<Self> {
        #[cfg(unix)]
        let signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?;
        #[cfg(windows)]
        let signal = tokio::signal::windows::ctrl_c()?;
        Ok(Self { signal })
    }

    pub(crate) async fn next(&mut self) {
        if self.signal.recv().await.is_none() {
            // No further press can arrive.
            std::future::pending::<()>().await;
        }
    }
}

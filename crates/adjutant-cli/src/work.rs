//! The async runtime of a command.

use crate::{exit::Exit, problem::Problem};

/// Runs a command to its end.
///
/// Two threads: one of them can be blocked by a slow reader of the output.
pub(crate) fn work(command: impl Future<Output = Result<Exit, Problem>>) -> Result<Exit, Problem> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Problem::new(Exit::Failed, "cannot start the runtime").cause(&error))?;
    let ended = runtime.block_on(command);
    // A tool that is still reading a file must not delay the end.
    runtime.shutdown_background();
    ended
}

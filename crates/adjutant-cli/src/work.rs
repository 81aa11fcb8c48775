//! The runtime that a command works on.

use crate::{exit::Exit, problem::Problem};

/// Works until a command has ended.
///
/// Two threads: the working one can be blocked by the reader of its output.
pub(crate) fn work(command: impl Future<Output = Result<Exit, Problem>>) -> Result<Exit, Problem> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Problem::new(Exit::Failed, "cannot start the runtime").cause(&error))?;
    let ended = runtime.block_on(command);
    // A tool that is still reading a file must not hold up the end.
    runtime.shutdown_background();
    ended
}

//! `adjutant agent-host`: the process of one agent. `adjutant agent start` and `adjutant up` start it; users do not.

use std::path::Path;

use adjutant::runtime::{
    Workspace,
    host::{self, HostOptions},
};

use crate::{exit::Exit, problem::Problem};

/// Runs the agent of a workspace until it is stopped.
pub(crate) fn agent_host(workspace: &Path) -> Result<Exit, Problem> {
    // One thread is enough: an agent mostly waits for models and tools, and there may be hundreds of such processes.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime
        .map_err(|error| Problem::new(Exit::Failed, "no runtime can be made").cause(&error))?;
    match runtime.block_on(host::run(Workspace::at(workspace), HostOptions::new())) {
        Ok(()) => Ok(Exit::Finished),
        // Its log already contains the reason, as a JSON line.
        Err(_) => Ok(Exit::Failed),
    }
}

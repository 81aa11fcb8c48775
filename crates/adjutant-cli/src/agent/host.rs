//! `adjutant agent-host`: the process of one agent, which `adjutant agent start` and `adjutant up` begin. Not for people.

use std::path::Path;

use adjutant::runtime::{
    Workspace,
    host::{self, HostOptions},
};

use crate::{exit::Exit, problem::Problem};

/// Runs the agent of a workspace until it is stopped.
pub(crate) fn agent_host(workspace: &Path) -> Result<Exit, Problem> {
    // One thread: an agent waits for models and tools, and there may be hundreds of such processes.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime
        .map_err(|error| Problem::new(Exit::Failed, "no runtime can be made").cause(&error))?;
    match runtime.block_on(host::run(Workspace::at(workspace), HostOptions::new())) {
        Ok(()) => Ok(Exit::Finished),
        // Its log contains the reason, in a line for programs.
        Err(_) => Ok(Exit::Failed),
    }
}

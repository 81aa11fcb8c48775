//! The output of an agent's process.

use std::{
    io::{self, IsTerminal},
    path::Path,
};

use adjutant::runtime::{Logs, backend::LogLimits};

use super::place::AgentFolder;
use crate::{
    args::agent,
    exit::Exit,
    plain,
    problem::Problem,
    screen::{tell, write},
    trouble::runtime_problem,
};

/// Prints the last lines of a log, and new ones if requested.
pub(super) async fn logs(args: &agent::Logs) -> Result<Exit, Problem> {
    let entry = AgentFolder::new(&args.this.homed, Path::new(".")).find(&args.this.name)?;
    let logs = Logs::new(&entry.workspace, LogLimits::default());
    if !args.follow {
        let lines = logs
            .tail(args.lines)
            .map_err(|error| runtime_problem(&error))?;
        let text: String = lines.into_iter().map(|line| line + "\n").collect();
        if text.is_empty() {
            tell("nothing was written yet");
        }
        show(&text)?;
        return Ok(Exit::Finished);
    }
    let mut lines = logs
        .follow(args.lines)
        .map_err(|error| runtime_problem(&error))?;
    while show(
        &(lines
            .next()
            .await
            .map_err(|error| runtime_problem(&error))?
            + "\n"),
    )? {}
    Ok(Exit::Finished)
}

fn show(text: &str) -> Result<bool, Problem> {
    // Control sequences of external text must not reach the terminal.
    if io::stdout().is_terminal() {
        write(&plain::stream(text))
    } else {
        write(text)
    }
}

//! `adjutant completions`: what a shell needs to complete the command line.

use clap::CommandFactory;

use crate::{
    args::{Args, Completions},
    exit::Exit,
    problem::Problem,
    screen,
};

/// Writes the completions for a shell to standard output.
pub(crate) fn completions(args: &Completions) -> Result<Exit, Problem> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "adjutant", &mut script);
    screen::write(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Finished)
}

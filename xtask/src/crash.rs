//! `crash`: the kill test, whole: 200 trials for each kind of storage, each with as many kills as it takes; and the crew
//! drill: three workers on one board of 200 tasks, killed at any moment; and the drill of workers that drive sessions, alone by
//! `crash --fleet`; and that of a server of MCP and its client, alone by `crash --mcp`.

use crate::{Failure, cargo};

/// How many trials there are for each kind of storage.
const TRIALS: &str = "200";
const KILL: &str = "run --package adjutant-tests --bin kill --locked -- trials all --times";
/// How many drills with a shared board there are for each kind of storage.
const DRILLS: &str = "10";
const CREW: &str = "run --package adjutant-tests --bin crew --locked -- drill all --times";

/// The drill of workers.
const FLEET: &str = "run --package adjutant-tests --bin fleet --locked -- drill all";

/// The drill of a server of MCP and its client.
const MCP: &str = "run --package adjutant-tests --bin mcp --locked -- drill all";

pub(crate) fn run(options: &[&str]) -> Result<(), Failure> {
    match options {
        ["--fleet", rest @ ..] => return cargo::step_with(FLEET, rest),
        ["--mcp", rest @ ..] => return cargo::step_with(MCP, rest),
        _ => {}
    }
    cargo::step_with(KILL, &[&[TRIALS], options].concat())?;
    cargo::step_with(CREW, &[&[DRILLS], options].concat())?;
    cargo::step(FLEET)?;
    cargo::step(MCP)
}

//! `crash`: the complete kill test: 200 trials for each kind of storage, each with as many kills as it needs; the
//! crew drill: three workers on one board of 200 tasks, killed at random moments; the drill of workers that drive
//! sessions and its simulation, also separately with `crash --fleet`; and the drill of an MCP server and its client,
//! also separately with `crash --mcp`.

use crate::{Failure, cargo};

/// The number of trials for each kind of storage.
const TRIALS: &str = "200";
const KILL: &str = "run --package adjutant-tests --bin kill --locked -- trials all --times";
/// The number of drills with a shared board for each kind of storage.
const DRILLS: &str = "10";
const CREW: &str = "run --package adjutant-tests --bin crew --locked -- drill all --times";

/// The drill of workers, and how many seeds of their simulation are played.
const FLEET: &str = "run --package adjutant-tests --bin fleet --locked -- drill all";
const SIMULATION: &str = "test --package adjutant-fleet --test simulation --locked -- --nocapture";
const SIMULATIONS: &str = "200";

/// The drill of a server of MCP and its client.
const MCP: &str = "run --package adjutant-tests --bin mcp --locked -- drill all";

pub(crate) fn run(options: &[&str]) -> Result<(), Failure> {
    match options {
        ["--fleet", rest @ ..] => return fleet(rest),
        ["--mcp", rest @ ..] => return cargo::step_with(MCP, rest),
        _ => {}
    }
    cargo::step_with(KILL, &[&[TRIALS], options].concat())?;
    cargo::step_with(CREW, &[&[DRILLS], options].concat())?;
    fleet(&[])?;
    cargo::step(MCP)
}

fn fleet(options: &[&str]) -> Result<(), Failure> {
    cargo::step_with(FLEET, options)?;
    cargo::run(
        SIMULATION,
        cargo::command(SIMULATION).env("SIMULATIONS", SIMULATIONS),
    )
}

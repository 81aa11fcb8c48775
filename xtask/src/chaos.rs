//! `chaos`: 20 agents in processes of their own under a real `adjutant up`, killed for a minute while they are prompted, answered,
//! steered, updated, exported and imported; `chaos measure`: what such agents cost in time and memory, as they are released.

use crate::{Failure, cargo};

const BUILD: &str = "build --package adjutant-tests --bin adjutant-program --bin chaos --locked";
const DRILL: &str = "run --package adjutant-tests --bin chaos --locked -- drill";
const MEASURE: &str = "run --release --package adjutant-tests --bin chaos --locked -- measure";

pub(crate) fn run(options: &[&str]) -> Result<(), Failure> {
    if let ["measure", rest @ ..] = options {
        cargo::step_with(BUILD, &["--release"])?;
        return cargo::step_with(MEASURE, rest);
    }
    cargo::step(BUILD)?;
    cargo::step_with(DRILL, options)
}

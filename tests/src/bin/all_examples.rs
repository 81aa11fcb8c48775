//! All examples as one program, which runs the one that `EXAMPLE` names: the arguments are its own.

use std::{env, process::ExitCode};

include!(concat!(env!("OUT_DIR"), "/examples.rs"));

fn main() -> ExitCode {
    // The one that is a host of agents is begun with a cleared environment.
    let is_host = env::args().nth(1).is_some_and(|word| word == "agent-host");
    let host = || is_host.then(|| "own_host".to_owned());
    let example = env::var("EXAMPLE").ok().or_else(host).unwrap_or_default();
    start(&example).unwrap_or_else(|| {
        eprintln!("EXAMPLE names no example: {example:?}");
        ExitCode::FAILURE
    })
}

//! All examples as one program, which runs the one that `EXAMPLE` names: the arguments are its own.

use std::{env, process::ExitCode};

include!(concat!(env!("OUT_DIR"), "/examples.rs"));

fn main() -> ExitCode {
    let example = env::var("EXAMPLE").unwrap_or_default();
    start(&example).unwrap_or_else(|| {
        eprintln!("EXAMPLE names no example: {example:?}");
        ExitCode::FAILURE
    })
}

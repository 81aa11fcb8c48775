//! `restate`: the drill of sessions that a real Restate server has driven; server and service are killed at any moment.
//!
//! The server comes from npm into a folder below `target/`.

use crate::{Failure, cargo, npm};

/// The program itself: its package with a launcher needs Node, and reports that it was installed.
const SERVER: (&str, &str) = ("@restatedev/restate-server-linux-x64", "1.7");
const DRILL: &str = "run --package adjutant-restate --example restate_drill --locked -- drill";

pub(crate) fn run(options: &[&str]) -> Result<(), Failure> {
    if cfg!(not(all(target_os = "linux", target_arch = "x86_64"))) {
        println!("skipped: restate: the drill knows the server for Linux on x86-64 alone");
        return Ok(());
    }
    let server = match npm::install(&npm::folder("restate"), &[SERVER]) {
        Ok(installed) => installed.packages.join(SERVER.0).join("bin/restate-server"),
        Err(Failure::Step(why) | Failure::Usage(why)) => {
            println!("skipped: restate: its server cannot be installed: {why}");
            return Ok(());
        }
    };
    let server = server.to_string_lossy();
    let kind = options.first().filter(|option| !option.starts_with("--"));
    let options = &options[usize::from(kind.is_some())..];
    cargo::step_with(
        DRILL,
        &[&[kind.unwrap_or(&"all"), "--server", &server], options].concat(),
    )
}

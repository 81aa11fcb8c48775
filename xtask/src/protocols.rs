//! `protocols`: every sequence of docs/events.md over the streams of other people's pages, read by those pages' own clients.

use std::process::Command;

use crate::{
    Failure, cargo,
    npm::{self, Server},
};

/// Tests are built with this program: alone, with the features of fewer crates, every crate would be built again.
const PROGRAMS: &str = "test --workspace --locked --tests --no-run --quiet";
const PACKAGES: &[(&str, &str)] = &[
    ("@ag-ui/client", "1.0.0"),
    ("ai", "7.0.173"),
    ("acpx", "0.19.1"),
    ("@a2a-js/sdk", "1.3.0"),
];

pub(crate) fn run() -> Result<(), Failure> {
    let npm = npm::install(&npm::folder("protocols"), PACKAGES)?;
    let program = cargo::built(PROGRAMS, "protocols")?;
    let (_server, told) = Server::start(&program)?;
    println!("==> the clients of {PACKAGES:?}");
    for judge in ["tests/protocols.mjs", "tests/a2a.mjs", "tests/acp.mjs"] {
        let mut node = Command::new(&npm.node);
        // An editor begins its agents itself.
        node.arg(cargo::root().join(judge))
            .arg(&npm.packages)
            .arg(&told)
            .arg(&program);
        match node.status() {
            Ok(status) if status.success() => {}
            Ok(status) => {
                return Err(Failure::Step(format!(
                    "{judge}: a client refuses what it is told: {status}"
                )));
            }
            Err(error) => return Err(Failure::Step(format!("{}: {error}", npm.node.display()))),
        }
    }
    Ok(())
}

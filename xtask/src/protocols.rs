//! `protocols`: every sequence of docs/events.md over the streams of other people's pages, read by those pages' own clients.

use std::process::Command;

use crate::{
    Failure, cargo,
    npm::{self, Server},
};

/// Tests are built with this program: by itself, with the features of fewer crates, every crate would be built once more.
const PROGRAMS: &str = "test --workspace --locked --tests --no-run --quiet";
const PACKAGES: &[(&str, &str)] = &[("@ag-ui/client", "1.0.0"), ("ai", "7.0.173"), ("acpx", "0.19.1")];

pub(crate) fn run() -> Result<(), Failure> {
    let npm = npm::install(&npm::folder("protocols"), PACKAGES)?;
    let program = cargo::built(PROGRAMS, "protocols")?;
    let (_server, told) = Server::start(&program)?;
    let mut node = Command::new(&npm.node);
    node.arg(cargo::root().join("tests/protocols.mjs")).arg(&npm.packages).arg(&told);
    println!("==> the clients of {PACKAGES:?}");
    judged(node)?;
    // An editor begins its agents itself.
    let mut node = Command::new(&npm.node);
    node.arg(cargo::root().join("tests/acp.mjs")).arg(&npm.packages).arg(&program).arg(&told);
    judged(node)
}

fn judged(mut node: Command) -> Result<(), Failure> {
    match node.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::Step(format!("a client refuses what it is told: {status}"))),
        Err(error) => Err(Failure::Step(format!("{}: {error}", node.get_program().display()))),
    }
}

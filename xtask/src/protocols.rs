//! `protocols`: every sequence of docs/events.md over the streams of other people's pages, read by those pages' own clients.

use std::process::Command;

use serde_json::Value;

use crate::{
    Failure, cargo,
    npm::{self, Server},
};

/// Tests are built with this program: by itself, with the features of fewer crates, every crate would be built once more.
const PROGRAMS: &str = "test --workspace --locked --tests --no-run --quiet";
const PACKAGES: &[(&str, &str)] = &[("@ag-ui/client", "1.0.0"), ("ai", "7.0.173"), ("@a2a-js/sdk", "1.3.0")];
/// The judges, each with the name of its cases.
const JUDGES: [(&str, &str); 2] = [("tests/protocols.mjs", "cases"), ("tests/a2a.mjs", "a2a")];

pub(crate) fn run() -> Result<(), Failure> {
    let npm = npm::install(&npm::folder("protocols"), PACKAGES)?;
    let (_server, told) = Server::start(&cargo::built(PROGRAMS, "protocols")?)?;
    let told: Value = serde_json::from_str(&told).map_err(|error| Failure::Step(format!("protocols: {error}")))?;
    println!("==> the clients of {PACKAGES:?}");
    for (judge, cases) in JUDGES {
        let mut node = Command::new(&npm.node);
        node.arg(cargo::root().join(judge)).arg(&npm.packages);
        node.args([told["url"].as_str().unwrap_or_default(), &told[cases].to_string()]);
        match node.status() {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(Failure::Step(format!("{judge}: a client refuses what it is told: {status}"))),
            Err(error) => return Err(Failure::Step(format!("{}: {error}", npm.node.display()))),
        }
    }
    Ok(())
}

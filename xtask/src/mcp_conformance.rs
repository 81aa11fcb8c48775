//! `mcp-conformance`: the official conformance suite of the Model Context Protocol against our programs, both revisions.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Failure, cargo,
    npm::{self, Installed, Server},
};

const SUITE: &str = "@modelcontextprotocol/conformance";
const SUITE_VERSION: &str = "0.2.0-alpha.12";
const REVISIONS: [&str; 2] = ["2026-07-28", "2025-11-25"];

/// The sides of the protocol, each with the example of `adjutant-mcp` that the suite speaks to.
const SIDES: &[(&str, &str)] = &[
    ("client", "mcp_conformance_client"),
    ("server", "mcp_conformance_server"),
];

pub(crate) fn run(sides: &[&str]) -> Result<(), Failure> {
    let known = |side: &&str| SIDES.iter().any(|(name, _)| name == side);
    if let Some(unknown) = sides.iter().find(|side| !known(side)) {
        return Err(Failure::Usage(format!(
            "mcp-conformance: no side is called {unknown}"
        )));
    }
    let chosen = SIDES
        .iter()
        .filter(|(name, _)| sides.is_empty() || sides.contains(name));
    let suite = install()?;
    let mut failed = Vec::new();
    for (side, example) in chosen {
        let program = build(example)?;
        for revision in REVISIONS {
            println!("==> conformance suite {SUITE_VERSION}, {side}, revision {revision}");
            if !judge(&suite, side, &program, revision)? {
                failed.push(format!("{side} at {revision}"));
            }
        }
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(step(format!(
            "scored scenarios fail: {}",
            failed.join(", ")
        )))
    }
}

/// As [`run`]; packages that cannot be installed on this machine are reported, and are no failure.
pub(crate) fn if_possible() -> Result<(), Failure> {
    if let Err(Failure::Step(why) | Failure::Usage(why)) = install() {
        println!("skipped: conformance suite of MCP: it cannot be installed: {why}");
        return Ok(());
    }
    run(&[])
}

/// An installed suite.
struct Suite {
    node: PathBuf,
    script: PathBuf,
    results: PathBuf,
}

/// Builds with the features of all tests: with others, cargo would build every crate once more.
fn build(example: &str) -> Result<PathBuf, Failure> {
    let words = format!(
        "build --workspace --features adjutant-mcp/server --example {example} --locked --quiet"
    );
    cargo::built(&words, example)
}

/// Installs the suite, unless it is there.
fn install() -> Result<Suite, Failure> {
    let at = npm::folder("mcp-conformance");
    let Installed { node, packages } = npm::install(&at, &[(SUITE, SUITE_VERSION)])?;
    Ok(Suite {
        node,
        script: packages.join(SUITE).join("dist/index.js"),
        results: at.join("results"),
    })
}

/// Runs the scenarios of a revision for one side and prints the table; false if a scored one fails.
fn judge(suite: &Suite, side: &str, program: &Path, revision: &str) -> Result<bool, Failure> {
    let mut command = Command::new(&suite.node);
    command
        .arg(&suite.script)
        .args([side, "--requirements", revision, "--output-dir"])
        .arg(&suite.results);
    let _server = match side {
        "client" => {
            command.arg("--command").arg(program);
            None
        }
        _ => {
            let (server, url) = Server::start(program)?;
            command.arg("--url").arg(url);
            Some(server)
        }
    };
    let output = command
        .output()
        .map_err(|error| step(format!("{}: {error}", suite.node.display())))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let summary = text.find("=== SUMMARY").or(text.find("=== SUITE SUMMARY"));
    match summary {
        Some(at) => println!("{}", &text[at..]),
        None => println!("{text}{}", String::from_utf8_lossy(&output.stderr)),
    }
    Ok(output.status.success() && summary.is_some())
}

fn step(message: String) -> Failure {
    Failure::Step(message)
}

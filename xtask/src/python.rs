//! Installs packages from PyPI into a virtual environment below `target/`. Nothing of the user's is used but `python3`.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Failure, npm};

/// A virtual environment.
pub(crate) struct Environment {
    directory: PathBuf,
}

impl Environment {
    /// Creates the environment with this name below the target directory, unless it exists.
    pub(crate) fn create(name: &str) -> Result<Self, Failure> {
        let environment = Self {
            directory: npm::folder(name),
        };
        if !environment.python().is_file() {
            run(
                "python3",
                Command::new("python3")
                    .args(["-m", "venv"])
                    .arg(&environment.directory),
            )?;
        }
        Ok(environment)
    }

    /// Installs a package with its version, which pip skips if it is installed.
    pub(crate) fn install(&self, package: &str, options: &[&str]) -> Result<(), Failure> {
        println!("==> pip install {package}");
        let mut pip = Command::new(self.python());
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ])
        .args(["--only-binary", ":all:", package])
        .args(options);
        run("pip", &mut pip)
    }

    /// The interpreter of the environment.
    pub(crate) fn python(&self) -> PathBuf {
        self.directory.join("bin/python")
    }

    /// The directory of an installed module.
    pub(crate) fn module(&self, name: &str) -> Result<PathBuf, Failure> {
        let find = format!(
            "import importlib.util; print(importlib.util.find_spec({name:?}).submodule_search_locations[0])"
        );
        let output = Command::new(self.python()).args(["-c", &find]).output();
        let output = output.map_err(|error| Failure::Step(format!("python: {error}")))?;
        let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if output.status.success() {
            Ok(Path::new(&path).to_owned())
        } else {
            Err(Failure::Step(format!("python: module {name} is missing")))
        }
    }
}

/// Runs a program with its output on the terminal.
fn run(name: &str, command: &mut Command) -> Result<(), Failure> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::Step(format!("{name}: {status}"))),
        Err(error) => Err(Failure::Step(format!("{name}: {error}"))),
    }
}

//! Runs cargo from the root of the repository. It knows no command of ours.

use std::path::Path;
use std::process::Command;

use crate::Failure;

/// The root of the repository this program was built from.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Runs cargo with its output on the terminal, after printing the step's name.
pub(crate) fn step(name: &str, arguments: &[&str]) -> Result<(), Failure> {
    step_with(name, arguments, &[])
}

/// Like [`step`], with extra environment variables.
pub(crate) fn step_with(
    name: &str,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Result<(), Failure> {
    println!("==> {name}: cargo {}", arguments.join(" "));
    let status = command(arguments).envs(variables.iter().copied()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::Step(format!("step `{name}` failed: {status}"))),
        Err(error) => Err(Failure::Step(format!(
            "step `{name}` did not start: {error}"
        ))),
    }
}

/// Runs cargo and returns what it wrote to its standard output.
pub(crate) fn output(arguments: &[&str]) -> Result<String, Failure> {
    let what = || format!("cargo {}", arguments.join(" "));
    let output = command(arguments)
        .output()
        .map_err(|error| Failure::Step(format!("{}: {error}", what())))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::Step(format!("{}: {}", what(), message.trim_end())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    // `cargo run` sets these for xtask itself. Build scripts that watch them would run again in every other build.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
        }) {
            command.env_remove(name);
        }
    }
    command
}

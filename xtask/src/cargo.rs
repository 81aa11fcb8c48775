//! Runs cargo from the root of the repository. It knows no command of ours.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::Failure;

/// The root of the repository. Determined at run time: clones with a shared target directory share this program.
pub(crate) fn root() -> PathBuf {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
    PathBuf::from(xtask)
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default()
}

/// Prints the words and runs cargo with them, its output on the terminal.
pub(crate) fn step(words: &str) -> Result<(), Failure> {
    step_with(words, &[])
}

/// Like [`step`], with arguments that may hold spaces.
pub(crate) fn step_with(words: &str, more: &[&str]) -> Result<(), Failure> {
    run(words, command(words).args(more))
}

/// Like [`step`], after `clippy -- -D warnings`, whose work it takes over.
///
/// Clippy is cargo's `check` with another compiler, named by these variables. Cargo keeps what each compiler made apart:
/// under its own, it would check every crate once more. Were they other ones in some version, that would be all.
pub(crate) fn step_after_clippy(words: &str) -> Result<(), Failure> {
    let driver = program().with_file_name(format!("clippy-driver{}", std::env::consts::EXE_SUFFIX));
    let mut command = command(words);
    if driver.exists() {
        command.env("RUSTC_WORKSPACE_WRAPPER", driver);
        command.env(
            "CLIPPY_ARGS",
            "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__",
        );
    }
    run(words, &mut command)
}

/// Like [`step`], with a command that was made of the words.
pub(crate) fn run(words: &str, command: &mut Command) -> Result<(), Failure> {
    let more = command
        .get_args()
        .skip(words.split_whitespace().count())
        .map(|it| it.to_string_lossy());
    println!("==> cargo {words} {}", more.collect::<Vec<_>>().join(" "));
    let status = command.status().map_err(|error| failure(words, &error))?;
    if status.success() {
        Ok(())
    } else {
        Err(failure(words, &status))
    }
}

/// Runs cargo and returns its standard output.
pub(crate) fn output(words: &str) -> Result<String, Failure> {
    let output = command(words)
        .output()
        .map_err(|error| failure(words, &error))?;
    let [text, why] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if output.status.success() {
        Ok(text)
    } else {
        Err(failure(words, &why))
    }
}

/// Builds, and returns the program of this name.
pub(crate) fn built(words: &str, name: &str) -> Result<PathBuf, Failure> {
    println!("==> cargo {words}");
    let told = output(&format!("{words} --message-format=json"))?;
    let messages = told
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = |message: Value| {
        (message["target"]["name"] == name)
            .then(|| message["executable"].as_str().map(PathBuf::from))
            .flatten()
    };
    messages
        .filter_map(program)
        .next_back()
        .ok_or_else(|| failure(words, &format!("built no {name}")))
}

/// The platform that programs are built for here.
pub(crate) fn host() -> Result<String, Failure> {
    let text = output("--version --verbose")?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| failure("--version", &"names no host"))
}

pub(crate) fn failure(words: &str, why: &dyn std::fmt::Display) -> Failure {
    Failure::Step(format!("cargo {words}: {why}"))
}

fn program() -> PathBuf {
    std::env::var_os("CARGO").unwrap_or("cargo".into()).into()
}

/// Cargo with these words, in the root of the repository.
pub(crate) fn command(words: &str) -> Command {
    let mut command = Command::new(program());
    command.current_dir(root()).args(words.split_whitespace());
    command.env("RUSTDOCFLAGS", "-D warnings");
    // `cargo run` sets these for xtask itself. Build scripts that watch them would run again in every other build.
    let ours =
        |name: &String| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for name in std::env::vars().map(|(name, _)| name).filter(ours) {
        command.env_remove(name);
    }
    command
}

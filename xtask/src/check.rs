//! `check`: what must hold before a commit. The tests come last, so that their own summary closes the output.

use crate::{Failure, cargo, tidy};

pub(crate) fn run() -> Result<(), Failure> {
    cargo::step("fmt", &["fmt", "--all", "--check"])?;
    println!("==> tidy");
    tidy::run()?;
    cargo::step(
        "clippy",
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ],
    )?;
    let strict = [("RUSTDOCFLAGS", "-D warnings")];
    cargo::step_with(
        "doc",
        &["doc", "--workspace", "--no-deps", "--locked"],
        &strict,
    )?;
    cargo::step("doc tests", &["test", "--doc", "--workspace", "--locked"])?;
    // Not `--all-targets`: that would run the benchmarks too.
    let targets = ["--lib", "--bins", "--tests", "--examples"];
    let test = [
        ["test", "--workspace", "--locked", "--no-fail-fast"].as_slice(),
        &targets,
    ]
    .concat();
    cargo::step("tests", &test)
}

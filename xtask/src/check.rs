//! `check`: what must hold before a commit. The tests come last, so that their own summary closes the output.

use crate::{Failure, cargo, tidy};

const AFTER_TIDY: &[&str] = &[
    "clippy --workspace --all-targets --locked -- -D warnings",
    "doc --workspace --no-deps --locked",
    "test --workspace --locked --doc",
    // Not `--all-targets`: that would run the benchmarks too. Not `--bins`, not `--examples`: each of them has no test,
    // and would be linked once more; `tests/` runs the examples as its own binaries, and clippy has seen them all.
    "test --workspace --locked --no-fail-fast --tests",
];

pub(crate) fn run() -> Result<(), Failure> {
    cargo::step("fmt --all --check")?;
    println!("==> tidy");
    tidy::run()?;
    AFTER_TIDY.iter().try_for_each(|words| cargo::step(words))
}

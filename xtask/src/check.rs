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
    deny()?;
    AFTER_TIDY.iter().try_for_each(|words| cargo::step(words))
}

/// Licences, banned crates, sources and known faults of dependencies. It needs a tool and a database that not every
/// machine can have: what could not be looked at is said, and is no failure.
fn deny() -> Result<(), Failure> {
    if cargo::output("deny --version").is_err() {
        println!("skipped: cargo deny: it is not installed; hint: cargo install cargo-deny --locked");
        return Ok(());
    }
    cargo::step("deny check bans licenses sources")?;
    if cargo::output("deny fetch db").is_err() {
        println!("skipped: cargo deny check advisories: its database cannot be had from here");
        return Ok(());
    }
    cargo::step("deny check advisories")
}

//! `check`: what must hold before a commit. The tests come last: below their own summary stand only the times of all steps.

use std::time::Instant;

use crate::{Failure, cargo, tidy};

type Step = fn() -> Result<(), Failure>;

const STEPS: &[(&str, Step)] = &[
    ("formatting", || cargo::step("fmt --all --check")),
    ("tidy", tidy),
    ("cargo deny", deny),
    ("clippy", || cargo::step("clippy --workspace --all-targets --locked -- -D warnings")),
    ("docs", || cargo::step_after_clippy(DOC)),
    ("doc tests", || cargo::step("test --workspace --locked --doc")),
    ("build of the tests", || cargo::step(&format!("{TESTS} --no-run"))),
    ("tests", || cargo::step(&format!("{TESTS} --no-fail-fast"))),
];
/// An example is named so that cargo chooses the features that it chose for clippy, those of tests included: with others,
/// it would check every crate once more. Programs are named because `--bins` takes the examples of `tests/` too.
const DOC: &str =
    "doc --workspace --no-deps --locked --lib --bin chaos --bin crew --bin kill --bin xtask --example hello";
/// Not `--all-targets`: that would run the benchmarks too. Not `--bins`, not `--examples`: each of them has no test, and
/// would be linked once more; `tests/` runs the examples as a binary of its own, and clippy has seen them all.
const TESTS: &str = "test --workspace --locked --tests";

pub(crate) fn run() -> Result<(), Failure> {
    let mut times = String::new();
    let result = STEPS.iter().try_for_each(|(name, step)| {
        let start = Instant::now();
        let result = step();
        times += &format!("{:>8.1} s  {name}\n", start.elapsed().as_secs_f64());
        result
    });
    println!("==> time of each step\n{times}");
    result
}

fn tidy() -> Result<(), Failure> {
    println!("==> tidy");
    tidy::run()
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

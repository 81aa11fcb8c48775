//! `check`: what must hold before a commit. The tests come last: below their own summaries stand only the times of all steps.

use std::{thread, time::Instant};

use crate::{Failure, cargo, mcp_conformance, programs, tidy};

type Step = fn() -> Result<(), Failure>;

const STEPS: &[(&str, Step)] = &[
    ("formatting", || cargo::step("fmt --all --check")),
    ("tidy", tidy),
    ("cargo deny", deny),
    ("clippy", || {
        cargo::step("clippy --workspace --all-targets --locked -- -D warnings")
    }),
    ("docs", || cargo::step_after_clippy(DOC)),
    ("build of the tests", || {
        cargo::step(&format!("{TESTS} --no-run"))
    }),
    ("conformance of MCP", mcp_conformance::if_possible),
    ("the page", page),
    ("tests", tests),
];
/// An example is named so that cargo chooses the features that it chose for clippy, those of tests included: with others,
/// it would check every crate once more. Programs are named because `--bins` takes the examples of `tests/` too.
const DOC: &str = "doc --workspace --no-deps --locked --lib --bin chaos --bin crew --bin kill --bin xtask --example hello";
/// Not `--all-targets`: that would run the benchmarks too. Not `--bins`, not `--examples`: each of them has no test, and
/// would be linked once more; `tests/` runs the examples as a binary of its own, and clippy has seen them all.
const TESTS: &str = "test --workspace --locked --tests";
const DOC_TESTS: &str = "test --workspace --locked --doc";

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

/// It takes minutes, and a browser.
fn page() -> Result<(), Failure> {
    println!("skipped: the page in a browser: `cargo xtask page` drives it");
    Ok(())
}

/// All tests; those of the documentation meanwhile, because most of their time one of them is compiled, on one processor.
fn tests() -> Result<(), Failure> {
    let programs = programs::built(TESTS)?;
    let documented = thread::spawn(|| cargo::command(DOC_TESTS).output());
    let tests = programs::run(programs);
    println!("==> cargo {DOC_TESTS}");
    let failed = |why: &dyn std::fmt::Display| cargo::failure(DOC_TESTS, why);
    let output = documented
        .join()
        .map_err(|_| failed(&"panicked"))?
        .map_err(|error| failed(&error))?;
    print!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    tests.and(if output.status.success() {
        Ok(())
    } else {
        Err(failed(&output.status))
    })
}

/// Licences, banned crates, sources and known faults of dependencies. It needs a tool and a database that not every
/// machine can have: what could not be looked at is said, and is no failure.
fn deny() -> Result<(), Failure> {
    if cargo::output("deny --version").is_err() {
        println!(
            "skipped: cargo deny: it is not installed; hint: cargo install cargo-deny --locked"
        );
        return Ok(());
    }
    cargo::step("deny check bans licenses sources")?;
    if cargo::output("deny fetch db").is_err() {
        println!("skipped: cargo deny check advisories: its database cannot be had from here");
        return Ok(());
    }
    cargo::step("deny check advisories")
}

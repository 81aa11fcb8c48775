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
/// An example is named so that cargo selects the same features as for clippy, including those of tests: with others,
/// it would check every crate again. Programs are named because `--bins` includes the examples of `tests/`.
const DOC: &str = "doc --workspace --no-deps --locked --lib --bin chaos --bin crew --bin kill --bin xtask --example hello";
/// Not `--all-targets`, which also runs the benchmarks. Not `--bins`, not `--examples`: they have no tests, and would
/// be linked again; `tests/` runs the examples in its own binary, and clippy has checked them all.
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

/// All tests, and concurrently the doctests, because those mostly consist of one compilation on one processor.
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

/// Licences, banned crates, sources and known vulnerabilities of dependencies. It needs a tool and a database that
/// are not always available: a check that could not run is reported, and is no failure.
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

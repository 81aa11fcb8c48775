//! `fuzz`: builds the fuzz targets with the toolchain at hand and runs them. Findings end the command.

use std::process::Command;

use crate::{Failure, cargo};

/// Targets, and the fixtures they start from.
const TARGETS: &[(&str, &str)] = &[
    (
        "messages",
        "crates/adjutant-providers/tests/fixtures/anthropic",
    ),
    ("chat", "crates/adjutant-providers/tests/fixtures/chat"),
    (
        "responses",
        "crates/adjutant-providers/tests/fixtures/openai",
    ),
    ("gemini", "crates/adjutant-providers/tests/fixtures/gemini"),
    ("files", "crates/adjutant-providers/src/catalogue"),
    ("stored", ""),
    ("arguments", ""),
];
/// The seconds for each target with `--smoke`.
const SMOKE: u32 = 60;
/// The flags that cargo-fuzz sets too: coverage for the engine, of our code and its dependencies, but not of build
/// scripts.
const FLAGS: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "--cfg=fuzzing",
];

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let (targets, more): (Vec<_>, Vec<String>) = match arguments {
        ["--smoke"] => (TARGETS.to_vec(), vec![format!("-max_total_time={SMOKE}")]),
        [name, rest @ ..] => {
            let found: Vec<_> = TARGETS
                .iter()
                .copied()
                .filter(|(target, _)| target == name)
                .collect();
            (found, rest.iter().map(|&it| it.to_owned()).collect())
        }
        [] => (Vec::new(), Vec::new()),
    };
    if targets.is_empty() {
        let names: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
        return Err(Failure::Usage(format!(
            "fuzz takes `--smoke` or a target: {}",
            names.join(", ")
        )));
    }
    let host = cargo::host()?;
    let flags: Vec<_> = FLAGS.iter().map(|flag| format!("\"{flag}\"")).collect();
    let flags = format!("build.rustflags=[{}]", flags.join(","));
    let build = format!(
        "build --manifest-path fuzz/Cargo.toml --release --target {host} --target-dir target/fuzz --config"
    );
    cargo::step_with(&build, &[&flags])?;
    targets
        .into_iter()
        .try_for_each(|(name, seeds)| one(&host, name, seeds, &more))
}

fn one(host: &str, name: &str, seeds: &str, more: &[String]) -> Result<(), Failure> {
    let root = cargo::root();
    let [corpus, found] =
        ["corpus", "found"].map(|kind| root.join("target/fuzz").join(kind).join(name));
    let fail = |why: &dyn std::fmt::Display| Failure::Step(format!("fuzz {name}: {why}"));
    for folder in [&corpus, &found] {
        std::fs::create_dir_all(folder).map_err(|error| fail(&error))?;
    }
    println!("==> fuzz {name}");
    let mut command = Command::new(root.join(format!("target/fuzz/{host}/release/{name}")));
    command
        .args(["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"])
        .args(more);
    command
        .arg(format!("-artifact_prefix={}/", found.display()))
        .arg(&corpus);
    if !seeds.is_empty() {
        command.arg(root.join(seeds));
    }
    let status = command.status().map_err(|error| fail(&error))?;
    if status.success() {
        Ok(())
    } else {
        Err(fail(&format!(
            "{status}; what broke it is in {}",
            found.display()
        )))
    }
}

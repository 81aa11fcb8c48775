//! `bfcl`: the functions and answers of the Berkeley Function-Calling Leaderboard through every wire's translation.
//!
//! The data and the judges come from PyPI at run time: jsonschema and the request types of the vendors' own clients.

use std::process::Command;

use crate::{Failure, cargo, npm, python::Environment};

/// Of this package only the data is read.
const DATA: (&str, &str) = ("bfcl-eval==2026.3.23", "bfcl_eval");
const JUDGES: [&str; 4] = [
    "jsonschema==4.26.0",
    "anthropic==2.14.0",
    "google-genai==3.6.1",
    "openai==3.57.0",
];
const BUILD: &str = "build --package adjutant-tests --bin bfcl --locked";

pub(crate) fn run(options: &[&str]) -> Result<(), Failure> {
    if !options.is_empty() {
        return Err(Failure::Usage("bfcl takes no options".into()));
    }
    let environment = match install() {
        Ok(environment) => environment,
        Err(Failure::Step(why) | Failure::Usage(why)) => {
            println!("skipped: bfcl: it cannot be installed: {why}");
            return Ok(());
        }
    };
    let script = cargo::root().join("tests/bfcl.py");
    let data = environment.module(DATA.1)?;
    let [cases, requests] =
        ["cases.jsonl", "requests.jsonl"].map(|name| npm::folder("bfcl").join(name));
    let python = || {
        let mut python = Command::new(environment.python());
        python.arg(&script);
        python
    };
    step("cases", python().arg("cases").args([&data, &cases]))?;
    let program = cargo::built(BUILD, "bfcl")?;
    let travel = step(
        "the way to a provider and back",
        Command::new(program).args([&cases, &requests]),
    );
    let judges = step("the judges", python().arg("judge").arg(&requests));
    travel.and(judges)
}

fn install() -> Result<Environment, Failure> {
    let environment = Environment::create("bfcl")?;
    environment.install(DATA.0, &["--no-deps"])?;
    for judge in JUDGES {
        environment.install(judge, &[])?;
    }
    Ok(environment)
}

fn step(name: &str, command: &mut Command) -> Result<(), Failure> {
    println!("==> bfcl: {name}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::Step(format!("bfcl: {name}: {status}"))),
        Err(error) => Err(Failure::Step(format!("bfcl: {name}: {error}"))),
    }
}

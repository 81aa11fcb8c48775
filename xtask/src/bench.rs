//! `bench`: runs the benchmarks, whose rows with limits make one table, and fails past a limit.
//!
//! The first argument may be the name of one of them; `--instructions` and `--build` are parts of one.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    time::Instant,
};

use serde_json::Value;

use crate::{Failure, cargo};

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let (program, arguments) = match arguments {
        ["--instructions", ..] => (Some("overhead"), arguments),
        ["--build", ..] => (Some("command"), arguments),
        [name, rest @ ..] if is_program(name) => (Some(*name), rest),
        _ => (None, arguments),
    };
    let which = program.map_or("--benches".to_owned(), |name| format!("--bench {name}"));
    let words = format!(
        "bench --package adjutant-benches {which} --locked --quiet --no-run --message-format=json"
    );
    println!("==> cargo {words}\n");
    let built = cargo::output(&words)?;
    if program.is_none_or(|name| name == "command") {
        // Before anything is measured, not while.
        cargo::output("build --release --quiet --locked --package adjutant-cli")?;
    }
    println!("| what | measured | figure | limit | verdict |\n|---|---|---|---|---|");
    let (mut took, mut failed) = (Vec::new(), Vec::new());
    for message in built
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
    {
        let [name, path] = [&message["target"]["name"], &message["executable"]].map(Value::as_str);
        if let (Some(name), Some(path)) = (name, path) {
            let began = Instant::now();
            failed.extend(measure(name, Command::new(path).args(arguments))?);
            took.push(format!("{name} {}", began.elapsed().as_secs()));
        }
    }
    println!(
        "\nseconds: {}; past their limits: {}",
        took.join(", "),
        failed.len()
    );
    failed.iter().for_each(|row| println!("{row}"));
    if failed.is_empty() {
        Ok(())
    } else {
        Err(Failure::Step("bench: not every row is held".into()))
    }
}

/// Prints the rows of a program; returns those beyond their limits, and a line for another failure.
fn measure(name: &str, command: &mut Command) -> Result<Vec<String>, Failure> {
    let failure = |error| Failure::Step(format!("bench {name}: {error}"));
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(failure)?;
    let mut past = Vec::new();
    for row in child
        .stdout
        .take()
        .into_iter()
        .flat_map(|rows| BufReader::new(rows).lines())
        .map_while(Result::ok)
    {
        println!("{row}");
        past.extend(row.ends_with("| PAST |").then_some(row));
    }
    if !child.wait().map_err(failure)?.success() && past.is_empty() {
        past.push(format!("{name} ended early"));
    }
    Ok(past)
}

fn is_program(name: &str) -> bool {
    cargo::root()
        .join(format!("benches/benches/{name}.rs"))
        .is_file()
}

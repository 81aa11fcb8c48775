//! The chaos drill as a program.
//!
//! `chaos drill [--agents N] [--seconds S] [--seed X]`: agents and their operator are killed for S seconds while people work with
//! them; it tells how often what was done, or which promise did not hold. `chaos measure
//! [--agents N]`: what agents cost. The program that runs them lies beside this one. Exit code 1 if a promise was broken.

use std::{
    path::PathBuf,
    process::ExitCode,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

#[cfg(unix)]
use adjutant_tests::chaos::{Drill, measure};
use adjutant_tests::kill::Rng;

const USAGE: &str = "usage: chaos drill|measure [--agents N] [--seconds S] [--seed X]";

/// What the command line asks for.
struct Asked {
    agents: Option<usize>,
    seconds: u64,
    seed: u64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["drill", options @ ..] => asked(options).and_then(|asked| drill(&asked)),
        ["measure", options @ ..] => asked(options).and_then(|asked| costs(&asked)),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("chaos: {message}");
            ExitCode::FAILURE
        }
    }
}

fn asked(options: &[&str]) -> Result<Asked, String> {
    let chance = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(1, |since| u64::from(since.subsec_nanos()));
    let mut asked = Asked {
        agents: None,
        seconds: 60,
        seed: chance,
    };
    for pair in options.chunks(2) {
        let [name, value] = pair else {
            return Err(USAGE.to_owned());
        };
        let value: u64 = value
            .parse()
            .map_err(|_| format!("{name} takes a number\n{USAGE}"))?;
        match *name {
            "--agents" => asked.agents = usize::try_from(value).ok().filter(|agents| *agents > 0),
            "--seconds" => asked.seconds = value,
            "--seed" => asked.seed = value,
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(asked)
}

#[cfg(unix)]
fn drill(asked: &Asked) -> Result<(), String> {
    println!("chaos: seed {}", asked.seed);
    let (folder, runtime) = (folder()?, runtime()?);
    let (agents, seconds) = (asked.agents.unwrap_or(20), asked.seconds);
    let drill = Drill {
        program: program()?,
        directory: folder.path().join("drill"),
        agents,
        seconds,
    };
    let began = Instant::now();
    let survived = runtime.block_on(async { drill.run(&mut Rng::new(asked.seed)).await });
    let survived = survived.map_err(|why| format!("seed {}: {why}", asked.seed))?;
    println!(
        "chaos: {agents} agents, {seconds} s: {survived:?}, {:.1} s in all: ok",
        began.elapsed().as_secs_f32()
    );
    Ok(())
}

#[cfg(unix)]
fn costs(asked: &Asked) -> Result<(), String> {
    let (folder, runtime) = (folder()?, runtime()?);
    let lines = runtime.block_on(measure(
        &program()?,
        folder.path(),
        asked.agents.unwrap_or(100),
    ))?;
    lines.iter().for_each(|line| println!("chaos: {line}"));
    Ok(())
}

#[cfg(not(unix))]
fn drill(asked: &Asked) -> Result<(), String> {
    costs(asked)
}

#[cfg(not(unix))]
fn costs(asked: &Asked) -> Result<(), String> {
    let _ = (asked, program, folder, runtime, Instant::now(), Rng::new(0));
    Err("processes are killed on unix only".to_owned())
}

/// The program that supervises and runs agents: it is built with this one.
fn program() -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let program = this.with_file_name(format!("adjutant-program{}", std::env::consts::EXE_SUFFIX));
    if program.is_file() {
        Ok(program)
    } else {
        Err(format!("it is not built: {}", program.display()))
    }
}

fn folder() -> Result<tempfile::TempDir, String> {
    tempfile::tempdir().map_err(|error| error.to_string())
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let built = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    built.map_err(|error| error.to_string())
}

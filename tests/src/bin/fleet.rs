//! The drill of workers as a program: `fleet worker …` is the process that is killed, `fleet drill …` kills it.
//!
//! `fleet drill <sqlite|postgres|all> [--sessions N] [--workers N] [--kills N] [--lease MS] [--seed N]`. Exit code 1 if a
//! promise was broken.

use std::{
    collections::BTreeMap,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use adjutant_testing::PostgresServer;
use adjutant_tests::{
    asked::chain,
    fleet::{Drill, worker},
    kill::{Place, Rng},
};

const USAGE: &str = "usage: fleet drill <sqlite|postgres|all> [--sessions N] [--workers N] [--kills N] [--lease MS] [--seed N]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["worker", place, lease, files, concurrency] => {
            live(place, lease, Path::new(files), concurrency)
        }
        ["drill", kind, options @ ..] => drills(kind, options),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("fleet: {message}");
            ExitCode::FAILURE
        }
    }
}

fn live(place: &str, lease: &str, files: &Path, concurrency: &str) -> Result<(), String> {
    let concurrency = concurrency.parse().map_err(|_| USAGE)?;
    let lease = Duration::from_millis(lease.parse().map_err(|_| USAGE)?);
    runtime()?
        .block_on(worker(&Place::parse(place), lease, files, concurrency))
        .map_err(|error| chain(&*error))
}

fn drills(kind: &str, options: &[&str]) -> Result<(), String> {
    let mut asked: BTreeMap<&str, u64> = [
        ("--sessions", 500),
        ("--workers", 8),
        ("--kills", 100),
        ("--lease", 15_000),
        ("--seed", 1),
    ]
    .into();
    for pair in options.chunks(2) {
        let [name, value] = pair else {
            return Err(USAGE.to_owned());
        };
        *asked.get_mut(name).ok_or(USAGE)? = value.parse().map_err(|_| USAGE)?;
    }
    let count = |name: &str| usize::try_from(asked[name]).unwrap_or(usize::MAX);
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    for kind in ["sqlite", "postgres"]
        .into_iter()
        .filter(|it| *it == kind || kind == "all")
    {
        let server = match (kind, PostgresServer::start()) {
            ("sqlite", _) => None,
            (_, Ok(server)) => Some(server),
            (_, Err(why)) => {
                println!("fleet: skipped: postgres: {why}");
                continue;
            }
        };
        let files = tempfile::tempdir().map_err(|error| error.to_string())?;
        let place = match &server {
            Some(server) => Place::Postgres(server.url("postgres")),
            None => Place::Sqlite(files.path().join("log.db")),
        };
        let drill = Drill {
            program: program.clone(),
            place,
            server: server.as_ref(),
            files: files.path().to_owned(),
            sessions: count("--sessions"),
            workers: count("--workers").max(1),
            kills: count("--kills"),
            lease: Duration::from_millis(asked["--lease"]),
            asks: false,
        };
        let began = Instant::now();
        let survived = runtime()?.block_on(drill.run(&mut Rng::new(asked["--seed"])));
        let survived =
            survived.map_err(|why| format!("{kind}, seed {}: {why}", asked["--seed"]))?;
        println!(
            "fleet: {kind}: {asked:?}: {survived:?}, {:.1} s: ok",
            began.elapsed().as_secs_f32()
        );
    }
    Ok(())
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let built = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    built.map_err(|error| error.to_string())
}

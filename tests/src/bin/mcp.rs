//! The drill of the Model Context Protocol as a program: `mcp server …` and `mcp client …` are the processes that are killed,
//! `mcp drill …` kills them.
//!
//! `mcp drill <sqlite|postgres|all> [--sessions N] [--kills N] [--falls N] [--lease MS] [--seed N]`: so often the client is killed,
//! and so often its server. Exit code 1 if a promise was broken.

use std::{
    collections::BTreeMap,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use adjutant_testing::PostgresServer;
use adjutant_tests::{
    asked::chain,
    kill::{Place, Rng},
    mcp::{Drill, client, server},
};

const USAGE: &str = "usage: mcp drill <sqlite|postgres|all> [--sessions N] [--kills N] [--falls N] [--lease MS] [--seed N]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["server", place, files, address @ ..] => serve(place, files, address.first().copied()),
        ["client", place, host, files, url, steps, lease] => {
            live([place, host, files, url], steps, lease)
        }
        ["drill", kind, options @ ..] => drills(kind, options),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("mcp: {message}");
            ExitCode::FAILURE
        }
    }
}

fn serve(place: &str, files: &str, address: Option<&str>) -> Result<(), String> {
    let address = address.map(str::parse).transpose().map_err(|_| USAGE)?;
    runtime()?
        .block_on(server(&Place::parse(place), Path::new(files), address))
        .map_err(|error| chain(&*error))
}

fn live([place, host, files, url]: [&str; 4], steps: &str, lease: &str) -> Result<(), String> {
    let (steps, lease) = (
        steps.parse().map_err(|_| USAGE)?,
        lease.parse().map_err(|_| USAGE)?,
    );
    let (place, host) = (Place::parse(place), Place::parse(host));
    let client = client(
        &place,
        &host,
        Path::new(files),
        (url, steps, Duration::from_millis(lease)),
    );
    runtime()?.block_on(client).map_err(|error| chain(&*error))
}

fn drills(kind: &str, options: &[&str]) -> Result<(), String> {
    let chance = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(1, |since| u64::from(since.subsec_nanos()));
    let mut asked: BTreeMap<&str, u64> = [
        ("--sessions", 40),
        ("--kills", 200),
        ("--falls", 50),
        ("--lease", 500),
        ("--seed", chance),
    ]
    .into();
    for pair in options.chunks(2) {
        let [name, value] = pair else {
            return Err(USAGE.to_owned());
        };
        *asked.get_mut(name).ok_or(USAGE)? = value.parse().map_err(|_| USAGE)?;
    }
    println!("mcp: seed {}", asked["--seed"]);
    let (sessions, kills, falls) = (
        asked["--sessions"].max(1),
        asked["--kills"],
        asked["--falls"],
    );
    for kind in ["sqlite", "postgres"]
        .into_iter()
        .filter(|it| *it == kind || kind == "all")
    {
        let server = match (kind, PostgresServer::start()) {
            ("sqlite", _) => None,
            (_, Ok(server)) => Some(server),
            (_, Err(why)) => {
                println!("mcp: skipped: postgres: {why}");
                continue;
            }
        };
        let files = tempfile::tempdir().map_err(|error| error.to_string())?;
        let place = |name: &str| match &server {
            Some(server) => server
                .database()
                .map(Place::Postgres)
                .map_err(|error| error.to_string()),
            None => Ok(Place::Sqlite(files.path().join(name))),
        };
        let drill = Drill {
            program: std::env::current_exe().map_err(|error| error.to_string())?,
            place: place("log.db")?,
            host: place("host.db")?,
            files: files.path().to_owned(),
            sessions: usize::try_from(sessions).unwrap_or(usize::MAX),
            // Enough that there is something to do for as long as somebody is killed.
            steps: usize::try_from((kills + falls) * 6 / sessions + 2).unwrap_or(usize::MAX),
            kills,
            falls,
            lease: Duration::from_millis(asked["--lease"]),
        };
        let began = Instant::now();
        let survived = runtime()?.block_on(drill.run(&mut Rng::new(asked["--seed"])));
        let survived =
            survived.map_err(|why| format!("{kind}, seed {}: {why}", asked["--seed"]))?;
        println!(
            "mcp: {kind}: {survived:?}, {:.1} s: ok",
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

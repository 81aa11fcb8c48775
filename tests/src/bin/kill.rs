//! The kill test as a program: `kill victim …` is the process that is killed, `kill trials …` kills it.
//!
//! `kill trials <sqlite|jsonl|postgres|all> [--times N] [--seconds S] [--seed N]`: trials of each kind until N are done or
//! S seconds are over. Exit code 1 if a promise was broken.

use std::{
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use adjutant_testing::PostgresServer;
use adjutant_tests::{
    asked::{Asked, chain},
    kill::{Place, Rng, Seen, Trial, Victim, lead, victim},
};

const USAGE: &str =
    "usage: kill trials <sqlite|jsonl|postgres|all> [--times N] [--seconds S] [--seed N]";
/// The kinds of storage.
const KINDS: [&str; 3] = ["sqlite", "jsonl", "postgres"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        [word @ ("victim" | "lead"), place, session, address, files] => {
            live(word, place, session, address, Path::new(files))
        }
        ["trials", kind, options @ ..] => {
            Asked::read(&KINDS, kind, options, USAGE).and_then(|asked| trials(&asked))
        }
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("kill: {message}");
            ExitCode::FAILURE
        }
    }
}

fn live(word: &str, place: &str, session: &str, address: &str, files: &Path) -> Result<(), String> {
    let (runtime, place) = (runtime()?, Place::parse(place));
    let answer = match word {
        "lead" => runtime.block_on(lead(&place, session, address, files)),
        _ => runtime.block_on(victim(&place, session, address, files)),
    };
    answer
        .map(|answer| println!("{answer}"))
        .map_err(|error| chain(&*error))
}

fn trials(asked: &Asked) -> Result<(), String> {
    println!("kill: seed {}", asked.seed);
    let root = tempfile::tempdir().map_err(|error| error.to_string())?;
    for kind in &asked.kinds {
        // One server for all trials of the kind; each has a database of its own log.
        let server = match *kind {
            "postgres" => match PostgresServer::start() {
                Ok(server) => Some(server),
                Err(why) => {
                    println!("kill: skipped: postgres: {why}");
                    continue;
                }
            },
            _ => None,
        };
        kind_of(kind, asked, &root.path().join(kind), server.as_ref())?;
    }
    Ok(())
}

fn kind_of(
    kind: &str,
    asked: &Asked,
    root: &Path,
    server: Option<&PostgresServer>,
) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let (began, runtime) = (Instant::now(), runtime()?);
    let mut rng = Rng::new(asked.seed);
    let (mut all, mut times) = (Seen::default(), 0);
    while times < asked.times
        && asked
            .seconds
            .is_none_or(|most| began.elapsed() < Duration::from_secs(most))
    {
        times += 1;
        let files = Trial::directory(root, times).map_err(|error| error.to_string())?;
        let place = match server {
            Some(server) => Place::Postgres(server.url("postgres")),
            None if kind == "sqlite" => Place::Sqlite(root.join("log.db")),
            None => Place::Jsonl(root.join("logs")),
        };
        // Every second one has a team and background tasks.
        let who = if times % 2 == 0 {
            Victim::Lead
        } else {
            Victim::Alone
        };
        let trial = Trial {
            program: program.clone(),
            place,
            session: format!("trial {times}"),
            files,
            who,
        };
        let seen = runtime
            .block_on(trial.run(&mut rng))
            .map_err(|why| format!("{kind}, trial {times} of seed {}: {why}", asked.seed))?;
        all.kills += seen.kills;
        all.unknown += seen.unknown;
        all.requests += seen.requests;
    }
    let Seen {
        kills,
        unknown,
        requests,
    } = all;
    let took = began.elapsed().as_secs_f32();
    println!(
        "kill: {kind}: {times} trials, {kills} kills, {unknown} unknown outcomes, {requests} requests, {took:.1} s: ok"
    );
    Ok(())
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let built = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    built.map_err(|error| error.to_string())
}

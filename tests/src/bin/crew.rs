//! The crew drill as a program: `crew worker …` is a process that is killed, `crew drill …` kills them.
//!
//! `crew drill <sqlite|postgres|all> [--times N] [--seconds S] [--tasks N] [--seed N]`: drills of each kind until N are done or S
//! seconds are over. Exit code 1 if a promise was broken.

use std::{
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use adjutant_testing::PostgresServer;
use adjutant_tests::{
    asked::Asked,
    crew::{Drill, TASKS, worker},
    kill::{Place, Rng},
};

const USAGE: &str =
    "usage: crew drill <sqlite|postgres|all> [--times N] [--seconds S] [--tasks N] [--seed N]";
/// The kinds of storage that several processes share a board on.
const KINDS: [&str; 2] = ["sqlite", "postgres"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["worker", place, name, address, files] => live(place, name, address, Path::new(files)),
        ["drill", kind, options @ ..] => {
            Asked::read(&KINDS, kind, options, USAGE).and_then(|asked| drills(&asked))
        }
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("crew: {message}");
            ExitCode::FAILURE
        }
    }
}

fn live(place: &str, name: &str, address: &str, files: &Path) -> Result<(), String> {
    let worked = runtime()?.block_on(worker(&Place::parse(place), name, address, files));
    worked.map_err(|error| adjutant_tests::asked::chain(&*error))
}

fn drills(asked: &Asked) -> Result<(), String> {
    println!("crew: seed {}", asked.seed);
    let root = tempfile::tempdir().map_err(|error| error.to_string())?;
    for kind in &asked.kinds {
        kind_of(kind, asked, &root.path().join(kind))?;
    }
    Ok(())
}

fn kind_of(kind: &str, asked: &Asked, root: &Path) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let (began, runtime, mut rng) = (Instant::now(), runtime()?, Rng::new(asked.seed));
    let mut times = 0;
    while times < asked.times
        && asked
            .seconds
            .is_none_or(|most| began.elapsed() < Duration::from_secs(most))
    {
        times += 1;
        let files = Drill::directory(root, times).map_err(|error| error.to_string())?;
        // A server for each drill: its board is that of the whole database.
        let server = match kind {
            "postgres" => match PostgresServer::start() {
                Ok(server) => Some(server),
                Err(why) => {
                    println!("crew: skipped: postgres: {why}");
                    return Ok(());
                }
            },
            _ => None,
        };
        let place = match &server {
            Some(server) => Place::Postgres(server.url("postgres")),
            None => Place::Sqlite(files.join("board.db")),
        };
        let tasks = asked.tasks.unwrap_or(TASKS);
        let drill = Drill {
            program: program.clone(),
            place,
            files,
            tasks,
        };
        let survived = runtime.block_on(drill.run(&mut rng));
        let survived = survived
            .map_err(|why| format!("{kind}, drill {times} of seed {}: {why}", asked.seed))?;
        println!(
            "crew: {kind}: {survived:?}, {:.1} s: ok",
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

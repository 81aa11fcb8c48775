//! One drill: the board is filled, the workers are started and killed until every task has ended.

use std::{
    io::Read,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use adjutant::{agent::kv::KvStore, orchestration::board::Board};
use adjutant_testing::Loopback;

use super::{
    check::check,
    plan::{self, Payer},
};
use crate::kill::{Place, Rng};

/// How many workers there are at a time.
const WORKERS: usize = 3;
/// How long it is between two kills at most.
const BETWEEN_MS: u64 = 250;
/// For how many tasks a worker is killed, at most: after that they are left alone.
const TASKS_PER_KILL: usize = 5;

/// What is needed for a drill.
#[derive(Debug)]
pub struct Drill {
    /// The program that is killed: it takes a place, a name, an address and a directory.
    pub program: PathBuf,
    /// Where the board and the logs are kept.
    pub place: Place,
    /// A directory of its own.
    pub files: PathBuf,
    /// How many tasks there are.
    pub tasks: usize,
}

/// What came of a drill.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Survived {
    /// How often a worker was killed.
    pub kills: u32,
    /// How many tasks were completed.
    pub completed: usize,
    /// How many were reported failed.
    pub failed: usize,
    /// How many tasks were begun more than once.
    pub again: usize,
    /// How many tokens the logs tell of.
    pub tokens: u64,
}

/// A worker process; it is killed when it is dropped.
struct Worker(Child);

impl Drill {
    /// Runs the drill.
    ///
    /// # Errors
    /// The first promise that was broken, in words.
    pub async fn run(&self, rng: &mut Rng) -> Result<Survived, String> {
        let server = Loopback::setup(Payer::default())
            .delay(Duration::from_millis(1))
            .forget_requests();
        let server = server
            .start_blocking()
            .map_err(|error| format!("the provider does not start: {error}"))?;
        let (journal, kv) = self
            .place
            .open_both()
            .await
            .map_err(|error| format!("nothing opens: {error}"))?;
        fill(&kv, self.tasks)
            .await
            .map_err(|error| format!("the board cannot be filled: {error}"))?;
        let kills = self.survive(&server.anthropic_base_url(), rng)?;
        check(&journal, &kv, self, kills).await
    }

    /// Starts the workers, and kills one after the other until all have come to their end.
    fn survive(&self, address: &str, rng: &mut Rng) -> Result<u32, String> {
        let mut number = 0;
        let mut start = || {
            number += 1;
            self.start(address, &format!("worker-{number}"))
        };
        let mut workers = (0..WORKERS)
            .map(|_| start())
            .collect::<Result<Vec<_>, _>>()?;
        let (mut kills, most) = (
            0,
            u32::try_from(self.tasks / TASKS_PER_KILL).unwrap_or(u32::MAX),
        );
        while !workers.is_empty() {
            std::thread::sleep(Duration::from_millis(1 + rng.below(BETWEEN_MS)));
            let mut left = Vec::new();
            for worker in workers {
                left.extend(worker.unless_done()?);
            }
            workers = left;
            if kills < most && !workers.is_empty() {
                let at = usize::try_from(rng.below(workers.len() as u64)).unwrap_or(0);
                if workers.swap_remove(at).kill()? {
                    kills += 1;
                }
                workers.push(start()?);
            }
        }
        Ok(kills)
    }

    fn start(&self, address: &str, name: &str) -> Result<Worker, String> {
        let process = Command::new(&self.program)
            .args(["worker", &self.place.to_string(), name, address])
            .arg(&self.files)
            .stderr(Stdio::piped())
            .spawn();
        process.map(Worker).map_err(told)
    }

    /// Where a drill may put its files.
    ///
    /// # Errors
    /// If the directory cannot be made.
    pub fn directory(root: &Path, number: u32) -> std::io::Result<PathBuf> {
        let directory = root.join(format!("drill-{number}"));
        std::fs::create_dir_all(&directory)?;
        Ok(directory)
    }
}

impl Worker {
    /// The worker, unless it has come to its end.
    fn unless_done(mut self) -> Result<Option<Self>, String> {
        match self.0.try_wait().map_err(told)? {
            None => Ok(Some(self)),
            Some(status) if status.success() => Ok(None),
            Some(_) => {
                let mut complained = String::new();
                self.0
                    .stderr
                    .take()
                    .map(|mut it| it.read_to_string(&mut complained))
                    .transpose()
                    .map_err(told)?;
                Err(format!("a worker failed by itself: {complained}"))
            }
        }
    }

    /// Kills the worker; whether it was still at work.
    fn kill(mut self) -> Result<bool, String> {
        let ended = self.0.try_wait().map_err(told)?;
        if ended.is_none() {
            self.0.kill().map_err(told)?;
            self.0.wait().map_err(told)?;
        }
        Ok(ended.is_none())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Puts the tasks on the board.
async fn fill(kv: &Arc<dyn KvStore>, tasks: usize) -> Result<(), adjutant::orchestration::Error> {
    let board = Board::new(Arc::clone(kv));
    let mut last = None;
    for number in 0..tasks {
        let task = match last.take().filter(|_| plan::waits(number)) {
            Some(before) => plan::task(number).after(before),
            None => plan::task(number),
        };
        last = Some(board.create(task).await?.id);
    }
    Ok(())
}

fn told(error: std::io::Error) -> String {
    format!("a worker cannot be used: {error}")
}

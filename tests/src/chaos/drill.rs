//! One drill from its manifests to the last look for what is left.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use adjutant::runtime::{Entry, Goal, Status};

use super::{field::Field, killer, prompts::Prompts, trace};
use crate::kill::Rng;

/// How many prompt at a time.
const PROMPTERS: u64 = 4;
/// How long agents may take to stand where they should: pauses of 30 s are among it.
const SETTLE_WITHIN: Duration = Duration::from_secs(120);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// What is needed for a drill.
#[derive(Debug)]
pub struct Drill {
    /// The program that supervises and runs agents.
    pub program: PathBuf,
    /// A directory of its own.
    pub directory: PathBuf,
    /// How many agents there are.
    pub agents: usize,
    /// How long they are killed, in seconds.
    pub seconds: u64,
}

/// What came of a drill.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Survived {
    /// How often an agent was killed.
    pub agent_kills: u32,
    /// How often the operator was.
    pub operator_kills: u32,
    /// How often an agent was ordered to run or to stop.
    pub orders: u32,
    /// How many prompts were answered.
    pub answered: usize,
    /// How many were not: their agent was killed or did not run.
    pub unanswered: u64,
    /// How long it took until every agent stood where it should, in milliseconds.
    pub settled_ms: u64,
}

impl Drill {
    /// Runs the drill.
    ///
    /// # Errors
    /// The first promise that was broken, in words.
    pub async fn run(&self, rng: &mut Rng) -> Result<Survived, String> {
        let field = Field::new(&self.program, &self.directory, self.agents)?;
        let done = self.survive(&field, rng).await;
        done.map_err(|why| format!("{why}\nthe operators wrote:\n{}", field.last_lines()))
    }

    async fn survive(&self, field: &Field, rng: &mut Rng) -> Result<Survived, String> {
        let operator = field.operate()?;
        let entries = self.wait_for_all(field).await?;
        let mut survived = Survived::default();
        let prompts = Arc::new(Prompts::default());
        let shared: Arc<[Entry]> = entries.clone().into();
        let prompters: Vec<_> = (0..PROMPTERS)
            .map(|_| {
                let rng = Rng::new(rng.below(u64::MAX));
                tokio::spawn(Arc::clone(&prompts).go_on(Arc::clone(&shared), rng))
            })
            .collect();
        let killed =
            tokio::task::block_in_place(|| killer::kill(field, &entries, operator, rng, self.seconds, &mut survived));
        prompts.is_over.store(true, Ordering::Relaxed);
        for prompter in prompters {
            prompter.await.map_err(|error| error.to_string())?;
        }
        let (operator, mut groups) = killed?;
        let began = Instant::now();
        settle(field, &entries).await?;
        survived.settled_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        // What was answered by those that are stopped now must be there too.
        for entry in &entries {
            field.home.desire(entry.id, Goal::Running).map_err(|error| error.to_string())?;
        }
        settle(field, &entries).await?;
        prompts.check(&entries).await?;
        (survived.answered, survived.unanswered) = prompts.counts();
        groups.extend(entries.iter().filter_map(super::field::host).map(|host| host.pid));
        tokio::task::block_in_place(|| operator.end())?;
        left(field.home.root(), &entries, &groups)?;
        Ok(survived)
    }

    /// Waits until all agents are made and ready.
    async fn wait_for_all(&self, field: &Field) -> Result<Vec<Entry>, String> {
        let until = Instant::now() + SETTLE_WITHIN;
        loop {
            let entries = field.entries()?;
            if entries.len() == self.agents && entries.iter().all(|entry| wrong(field, entry).is_none()) {
                return Ok(entries);
            }
            if Instant::now() > until {
                return Err(format!("{} of {} agents are made", entries.len(), self.agents));
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Waits until every agent stands where it should, and stays there for a moment.
async fn settle(field: &Field, entries: &[Entry]) -> Result<(), String> {
    let until = Instant::now() + SETTLE_WITHIN;
    let mut calm = 0;
    loop {
        let wrong: Vec<String> = entries.iter().filter_map(|entry| wrong(field, entry)).collect();
        calm = if wrong.is_empty() { calm + 1 } else { 0 };
        if calm == 10 {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(format!("agents do not stand where they should: {}", wrong.join("; ")));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// How an agent differs from where it should stand, if it does.
fn wrong(field: &Field, entry: &Entry) -> Option<String> {
    let desired = field.home.desired(entry.id).ok()?;
    let is_taken = field.home.course(entry.id).is_ok_and(|course| course.order == desired.order);
    let status = entry.workspace.status().map_or(Status::Created, |written| written.status);
    let is_hosted = entry.workspace.is_hosted().unwrap_or(false);
    let is_right = match desired.goal {
        Goal::Running => status.is_up() && is_hosted,
        _ => !status.is_active() && !is_hosted,
    };
    let lives = if is_hosted { "lives" } else { "does not live" };
    let text = || format!("{} should be {:?}, is {status}, and its process {lives}", entry.name, desired.goal);
    (!is_right || !is_taken).then(text)
}

/// Looks for processes that are left.
fn left(home: &Path, entries: &[Entry], groups: &BTreeSet<u32>) -> Result<(), String> {
    let ids: BTreeSet<String> = entries.iter().map(|entry| entry.id.to_string()).collect();
    match &trace::processes(home, &ids, groups)[..] {
        [] => Ok(()),
        left => Err(format!("processes are left: {left:?}")),
    }
}

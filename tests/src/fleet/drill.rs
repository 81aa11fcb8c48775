//! One drill: prompts are posted, workers are started and killed, the database starts anew; then every log is looked at.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use adjutant::{
    agent::{DueWork, Lane, LogId, LogQuery, Owner, Post, PostNo, Seq, Sessions, Work},
    llm::{Entry, UserMessage},
    store::{Postgres, Sqlite},
};
use adjutant_testing::PostgresServer;
use futures_util::StreamExt;

use super::{ASKED, DONE, EFFECTS, GIVEN, STEPS, TAKEN};
use crate::kill::{Place, Rng};

/// The longest time between two kills.
const BETWEEN_MS: u64 = 300;
/// The longest time that a session may take to go on after its worker was killed, beside its lease, or beside the rest of a suspect.
const GOES_ON: Duration = Duration::from_secs(5);
/// The longest rest of a suspect; a lease is part of it.
const RESTS: Duration = Duration::from_secs(8);
/// The longest time that the drill may take after the last kill.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is needed for a drill.
#[derive(Debug)]
pub struct Drill<'a> {
    /// The program that is killed.
    pub program: PathBuf,
    /// Where the sessions are kept.
    pub place: Place,
    /// The server of that, which starts anew twice.
    pub server: Option<&'a PostgresServer>,
    /// A directory of its own.
    pub files: PathBuf,
    /// How many sessions there are.
    pub sessions: usize,
    /// How many workers there are.
    pub workers: usize,
    /// How many of them are killed.
    pub kills: usize,
    /// How long a log belongs to a worker that is gone.
    pub lease: Duration,
    /// True if a step of each session waits for an approval.
    pub asks: bool,
}

/// What came of a drill.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Survived {
    /// How many steps were done.
    pub steps: usize,
    /// How many steps nobody knows the outcome of.
    pub unknown: usize,
    /// How many steps were done by another process than the one before.
    pub moved: usize,
    /// The longest time that a session took to go on after its worker was killed.
    pub slowest: Duration,
}

/// A worker process; it is killed when it is dropped.
pub(crate) struct Worker(pub(crate) Child);

impl Drill<'_> {
    /// Runs the drill.
    ///
    /// # Errors
    /// The first promise that was broken, in words.
    pub async fn run(&self, rng: &mut Rng) -> Result<Survived, String> {
        let journal = due_work(&self.place, self.lease).await?;
        let ids: Vec<LogId> = (0..self.sessions)
            .map(|no| LogId::from(format!("bill/{no}")))
            .collect();
        for id in &ids {
            drop(journal.own(id, &Owner::default()).await.map_err(told)?);
            let content = Entry::from(UserMessage::text("Pay the bill."));
            journal
                .post(
                    id,
                    Post::Message {
                        lane: Lane::FollowUp,
                        content,
                    },
                )
                .await
                .map_err(told)?;
        }
        let killed = self.survive(rng).await?;
        let journal = due_work(&self.place, self.lease).await?;
        self.check(&journal, &ids, &killed).await
    }

    /// Opens the journal of the sessions.
    ///
    /// # Errors
    /// Whatever keeps it from being opened, in words.
    pub async fn open(&self) -> Result<Arc<dyn DueWork>, String> {
        due_work(&self.place, self.lease).await
    }

    fn start(&self) -> Result<Worker, String> {
        let mut command = Command::new(&self.program);
        command
            .arg("worker")
            .arg(self.place.to_string())
            .arg(self.lease.as_millis().to_string())
            .arg(&self.files);
        // Half as many again as each would have: they are spread, and none waits for a place.
        command.arg((self.sessions * 3 / (self.workers * 2) + 1).to_string());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit());
        command
            .spawn()
            .map(Worker)
            .map_err(|error| format!("a worker does not start: {error}"))
    }

    /// Kills workers until that is enough, and lets the last ones bring everything to its end; who was killed, and when.
    async fn survive(&self, rng: &mut Rng) -> Result<Vec<(u32, u128)>, String> {
        let mut workers = (0..self.workers)
            .map(|_| self.start())
            .collect::<Result<Vec<_>, _>>()?;
        let mut killed = Vec::new();
        for kill in 0..self.kills {
            tokio::time::sleep(Duration::from_millis(rng.below(BETWEEN_MS))).await;
            if let Some(server) = self
                .server
                .filter(|_| kill == self.kills / 3 || kill == self.kills * 2 / 3)
            {
                server.restart().map_err(|error| error.to_string())?;
            }
            let at = usize::try_from(rng.below(self.workers as u64)).unwrap_or(0);
            killed.push((workers[at].0.id(), now_ms()));
            workers[at] = self.start()?;
        }
        self.end().await?;
        Ok(killed)
    }

    /// Waits until every session has ended.
    ///
    /// # Errors
    /// Some have not after two minutes, in words.
    pub async fn end(&self) -> Result<(), String> {
        let (began, journal) = (Instant::now(), self.open().await?);
        loop {
            let left = journal.backlog().await.map_err(told)?;
            if (left.due, left.at_work, left.parked) == (0, 0, 0) {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                let logs = journal
                    .list(&LogQuery {
                        limit: usize::MAX / 2,
                        ..LogQuery::default()
                    })
                    .await
                    .map_err(told)?
                    .logs;
                let (open, rest): (Vec<_>, Vec<_>) = logs
                    .into_iter()
                    .partition(|info| info.work != Some(Work::Idle));
                let mut said = format!("not everything came to its end: {left:?}");
                for info in open {
                    let children = rest.iter().filter(|it| {
                        it.about
                            .parent
                            .as_ref()
                            .is_some_and(|(it, _)| *it == info.log)
                    });
                    let children: Vec<_> = children.map(|it| (&it.log, it.updated_ms)).collect();
                    let posts = journal
                        .read_posts(&info.log, PostNo(0))
                        .await
                        .map_err(told)?
                        .len();
                    said += &format!(
                        "\n{}, since {}, posts {posts}: {:?}; {children:?}",
                        info.log, info.updated_ms, info.work
                    );
                    let mut records = journal.read(&info.log, Seq(0));
                    while let Some(stamped) = records.next().await {
                        said += &format!("\n  {stamped:?}");
                    }
                }
                return Err(said);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Looks at every log, and at what was done; `killed` has the processes and the times, in milliseconds since 1970-01-01 UTC.
    ///
    /// # Errors
    /// The first promise that was broken, in words.
    pub async fn check(
        &self,
        journal: &Arc<dyn DueWork>,
        ids: &[LogId],
        killed: &[(u32, u128)],
    ) -> Result<Survived, String> {
        let mut done: BTreeMap<(String, usize), (u32, u128)> = BTreeMap::new();
        let mut taken: BTreeMap<String, Vec<(u32, u128)>> = BTreeMap::new();
        let text =
            fs::read_to_string(self.files.join(EFFECTS)).map_err(|error| error.to_string())?;
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [session, step, pid, at] = words.as_slice() else {
                return Err(format!("a line is broken: {line}"));
            };
            let (Ok(pid), Ok(at)) = (pid.parse(), at.parse()) else {
                return Err(format!("a line is broken: {line}"));
            };
            if *step == TAKEN {
                taken
                    .entry((*session).to_owned())
                    .or_default()
                    .push((pid, at));
                continue;
            }
            let Ok(step) = step.parse() else {
                return Err(format!("a line is broken: {line}"));
            };
            if done
                .insert(((*session).to_owned(), step), (pid, at))
                .is_some()
            {
                return Err(format!("step {step} of {session} was done twice"));
            }
        }
        let (sessions, mut survived) = (
            Sessions::new(Arc::clone(journal) as Arc<dyn adjutant::agent::Journal>),
            Survived::default(),
        );
        for id in ids {
            let work = journal.info(id).await.map_err(told)?.work;
            if work != Some(Work::Idle) {
                return Err(format!("{id} is not at its end: {work:?}"));
            }
            let run = sessions.transcript(id, Seq(u64::MAX)).await.map_err(told)?;
            let (mut steps, mut text) = (0, String::new());
            for stored in run.history().iter() {
                let Entry::Turn(turn) = &stored.entry else {
                    continue;
                };
                text = turn.reply().text().to_string();
                for result in turn.results() {
                    let is_done = done.contains_key(&(id.0.to_string(), steps));
                    // What was given to another one is told by its report.
                    let report = result.details[0]
                        .get("result")
                        .or(result.details[0].get("error"));
                    let said = report.map_or_else(
                        || result.text(),
                        |said| said.as_str().unwrap_or_default().to_owned(),
                    );
                    if said == format!("paid {steps}") && !is_done {
                        return Err(format!("step {steps} of {id} is told and was not done"));
                    }
                    survived.unknown += usize::from(!said.starts_with("paid"));
                    steps += 1;
                }
            }
            if (steps, &*text) != (STEPS, DONE) {
                return Err(format!("{id} has {steps} steps and ended with {text:?}"));
            }
            self.timed(
                id,
                &done,
                taken.get(&*id.0).map_or(&[], Vec::as_slice),
                killed,
                &mut survived,
            )?;
        }
        let children = LogQuery {
            label: Some("child".into()),
            limit: usize::MAX / 2,
            ..LogQuery::default()
        };
        let children = sessions.list(&children).await.map_err(told)?.logs;
        let given = if self.asks { 0 } else { ids.len() };
        if children.len() != given || children.iter().any(|info| info.work != Some(Work::Idle)) {
            return Err(format!(
                "{} sessions have {} children, or not all have ended",
                ids.len(),
                children.len()
            ));
        }
        survived.steps = done.len();
        Ok(survived)
    }

    /// How long the session took to be taken again after kills of a worker that had it: of one that did a step of it, and of those
    /// that took it then and were killed before the next step.
    fn timed(
        &self,
        id: &LogId,
        done: &BTreeMap<(String, usize), (u32, u128)>,
        taken: &[(u32, u128)],
        killed: &[(u32, u128)],
        survived: &mut Survived,
    ) -> Result<(), String> {
        let steps =
            (0..STEPS).filter_map(|step| Some((step, done.get(&(id.0.to_string(), step))?)));
        let steps: Vec<(usize, &(u32, u128))> = steps.collect();
        for pair in steps.windows(2) {
            let [(first, (before, _)), (second, (after, at))] = pair else {
                continue;
            };
            // Between these, it waited for a person or for an agent elsewhere.
            let (begins, ends) = if self.asks {
                (ASKED, ASKED)
            } else {
                (GIVEN + 1, GIVEN)
            };
            if *first < begins && *second >= ends {
                continue;
            }
            let dies = |pid| {
                killed
                    .iter()
                    .find(|(killed, _)| *killed == pid)
                    .map(|(_, at)| *at)
            };
            let Some(mut killed_at) = dies(*before).filter(|_| before != after) else {
                continue;
            };
            survived.moved += 1;
            for (by, at) in taken.iter().filter(|(_, taken)| *taken <= *at) {
                if *at < killed_at {
                    continue;
                }
                let after = |killed_at| {
                    Duration::from_millis(u64::try_from(at - killed_at).unwrap_or(u64::MAX))
                };
                // One that is killed while the server still takes sessions for it never says so: its lease is another one.
                let limit = self.lease.max(RESTS) + GOES_ON;
                let is_again = |other| {
                    other < *at
                        && other >= killed_at + self.lease.as_millis()
                        && after(other) <= limit
                        && after(killed_at) > limit
                };
                let again = killed
                    .iter()
                    .map(|(_, other)| *other)
                    .find(|other| is_again(*other));
                let took = after(again.unwrap_or(killed_at));
                survived.slowest = survived.slowest.max(took);
                if took > limit {
                    return Err(format!("{id} went on {took:?} after its worker was killed"));
                }
                let Some(at) = dies(*by) else { break };
                killed_at = at;
            }
        }
        Ok(())
    }
}

/// Opens the journal at a place that knows what is due.
pub(crate) async fn due_work(place: &Place, lease: Duration) -> Result<Arc<dyn DueWork>, String> {
    Ok(match place {
        Place::Sqlite(path) => Arc::new(Sqlite::open(path).map_err(told)?.journal()),
        Place::Postgres(url) => Arc::new(
            Postgres::connect(url.as_str())
                .lease(lease)
                .await
                .map_err(told)?
                .journal(),
        ),
        Place::Jsonl(_) => return Err("files of JSON lines do not know what is due".to_owned()),
    })
}

/// The time, in milliseconds since 1970-01-01 UTC.
pub fn now_ms() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis())
}

fn told(error: impl std::error::Error) -> String {
    crate::asked::chain(&error)
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

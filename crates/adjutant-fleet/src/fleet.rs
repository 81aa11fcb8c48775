//! A worker: takes sessions that are due, and drives each until it parks or ends.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use adjutant_agent::{
    Agent, DueLog, DueWork, JournalError, LogId, LogInfo, MAX_LOST_OWNERS, Owner, SUSPECT_AFTER,
    SUSPECT_BARS,
};
use adjutant_tool::Cancel;
use tokio::{
    task::{Id, JoinError, JoinSet},
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::{
    drive::{drive, set_aside},
    gauges,
    status::FleetStatus,
};

/// The default number of sessions that are driven at a time.
const CONCURRENCY: usize = 16;
/// The longest time between two looks for due sessions.
const LOOK: Duration = Duration::from_secs(1);
/// The time that a suspect is left alone with what the worker has already, and between two looks as long as it may bar others.
const ALONE: Duration = Duration::from_millis(200);
/// The first and the longest time that a storage which fails is left alone.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// The default time that active sessions have after the worker is stopped.
const GRACE: Duration = Duration::from_secs(30);

/// Makes the agent of a session.
type MakeAgent = dyn Fn(&LogInfo) -> Result<Agent, String> + Send + Sync;

/// A worker over the sessions of a journal.
///
/// Each due session goes to one worker, for any number of workers in this process and others; the sessions of a dead
/// worker go to another one when its ownership expires. A session is set aside if five workers in a row die without
/// completing a turn of it, if its agent cannot be created, or if its log cannot be used: [`DueWork::retry`] returns
/// it.
pub struct Fleet {
    journal: Arc<dyn DueWork>,
    agents: Arc<MakeAgent>,
    concurrency: usize,
    grace: Duration,
    status: FleetStatus,
}

impl Fleet {
    /// A worker over a journal; `agents` creates the agent of a session, or returns an error in one line.
    ///
    /// The agent continues the run with its recorded terms: see [`Agent::resume`].
    pub fn new(
        journal: impl DueWork + 'static,
        agents: impl Fn(&LogInfo) -> Result<Agent, String> + Send + Sync + 'static,
    ) -> Self {
        let status = FleetStatus::default();
        let (journal, agents) = (Arc::new(journal), Arc::new(agents));
        Self {
            journal,
            agents,
            concurrency: CONCURRENCY,
            grace: GRACE,
            status,
        }
    }

    /// Sets how many sessions are worked on at a time; 16 by default, at least 1.
    #[must_use]
    pub fn concurrency(self, concurrency: usize) -> Self {
        Self {
            concurrency: concurrency.max(1),
            ..self
        }
    }

    /// Sets the time that active sessions have to park or end after the worker is stopped; 30 s by default. Then they
    /// are released as those of a dead worker, immediately: another worker continues them.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// The activity of the worker, in numbers.
    pub fn status(&self) -> FleetStatus {
        self.status.clone()
    }

    /// Works until it is stopped, and then until the active sessions are released.
    ///
    /// A storage that fails is retried, after up to 10 s.
    ///
    /// Cancel: the active runs are cancelled; use `stop` to avoid that.
    ///
    /// # Errors
    /// `Version` and `Unsupported` of the journal: asking again would not help.
    pub async fn run(self, stop: Cancel) -> Result<(), JournalError> {
        let journal = Arc::clone(&self.journal);
        tokio::select! {
            ended = self.work(stop) => ended,
            never = gauges::tell(&*journal) => match never {},
        }
    }

    async fn work(self, stop: Cancel) -> Result<(), JournalError> {
        let mut ended = Ok(());
        let (owner, mut at_work, mut pause) =
            (Owner::default(), DrivenSessions::default(), PAUSES.0);
        let mut barred_until = None;
        while !stop.is_cancelled() {
            at_work.clear();
            let room = self.concurrency.saturating_sub(at_work.names.len());
            if room == 0 {
                wait(&stop, at_work.next()).await;
                continue;
            }
            let is_more = match self.journal.due(&owner, room).await {
                Ok(due) => {
                    pause = PAUSES.0;
                    let (is_suspect, is_full) = (
                        due.iter().any(|due| due.lost >= SUSPECT_AFTER),
                        due.len() == room,
                    );
                    due.into_iter()
                        .for_each(|due| self.begin(&mut at_work, due, &owner));
                    if is_suspect {
                        barred_until = Some(Instant::now() + SUSPECT_BARS);
                        wait(&stop, sleep(ALONE)).await;
                    }
                    is_suspect || is_full
                }
                Err(error) if error.is_retryable() => {
                    tracing::warn!(%error, "due sessions cannot be queried");
                    wait(&stop, sleep(pause)).await;
                    pause = (pause * 2).min(PAUSES.1);
                    true
                }
                // Active runs are not cancelled because of it.
                Err(error) => {
                    ended = Err(error);
                    break;
                }
            };
            if !is_more {
                let look = if barred_until > Some(Instant::now()) {
                    ALONE
                } else {
                    LOOK
                };
                wait(&stop, timeout(look, self.journal.until_due())).await;
            }
        }
        self.drain(at_work).await;
        ended
    }

    fn begin(&self, at_work: &mut DrivenSessions, due: DueLog, owner: &Owner) {
        let (journal, status, owner) = (
            Arc::clone(&self.journal),
            self.status.clone(),
            owner.clone(),
        );
        let (name, working, lost) = (due.info.log.clone(), self.status.works(), due.lost);
        let agent = if lost < MAX_LOST_OWNERS {
            (self.agents)(&due.info).map_err(|why| format!("its agent cannot be made: {why}"))
        } else {
            Err(format!("{lost} owners in a row left its run open"))
        };
        at_work.spawn(name, async move {
            let ended = match agent {
                Ok(agent) => drive(&journal, agent, due, &owner).await,
                Err(why) => set_aside(&journal, &due.info, &why).await,
            };
            status.record_end(ended);
            drop(working);
        });
    }

    /// Lets the active sessions finish; the ones that do not in time are fenced and left to other workers.
    async fn drain(self, mut at_work: DrivenSessions) {
        let until = Instant::now() + self.grace;
        loop {
            tokio::select! {
                is_left = at_work.next() => if !is_left { return },
                () = sleep_until(until) => break,
            }
        }
        let thief = Owner {
            takes_over: true,
            ..Owner::default()
        };
        for log in at_work.names.values() {
            // Later writes of the run are refused; once released, the log is due for others.
            if let Err(error) = self.journal.own(log, &thief).await {
                tracing::warn!(%error, %log, "a session at work could not be given up");
            }
        }
    }
}

/// The active sessions, each on its own task.
#[derive(Default)]
struct DrivenSessions {
    tasks: JoinSet<()>,
    names: BTreeMap<Id, LogId>,
}

impl DrivenSessions {
    fn spawn(&mut self, name: LogId, work: impl Future<Output = ()> + Send + 'static) {
        let task = self.tasks.spawn(work);
        self.names.insert(task.id(), name);
    }

    /// Removes the ones that have ended.
    fn clear(&mut self) {
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            self.forget(ended);
        }
    }

    /// Waits until one has ended; false if there are no sessions.
    async fn next(&mut self) -> bool {
        let Some(ended) = self.tasks.join_next_with_id().await else {
            return false;
        };
        self.forget(ended);
        true
    }

    fn forget(&mut self, ended: Result<(Id, ()), JoinError>) {
        let id = ended.map_or_else(|error| error.id(), |(id, ())| id);
        self.names.remove(&id);
    }
}

/// Waits for something, unless it is to stop.
async fn wait(stop: &Cancel, something: impl Future) {
    tokio::select! {
        _ = something => {}
        () = stop.cancelled() => {}
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet")
            .field("journal", &self.journal)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

//! Runs the tasks of clients: sessions by name, each with one active run at a time.

use std::{
    collections::HashMap,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use adjutant_agent::{Agent, RunBuilder};
use adjutant_core::{Answered, Event, EventKind, Lane, LogId, Post, Seq};
use adjutant_llm::Entry;
use async_trait::async_trait;
use futures_core::Stream;
use futures_util::{StreamExt, stream};
use tokio::{sync::Notify, time::timeout};

use crate::error::Error;

/// The largest number of active runs.
const MAX_RUNS: usize = 192;
/// The time in which a run that has ended lets go of its session.
const LET_GO: Duration = Duration::from_secs(2);

/// Events, or the reason why there are no more.
pub type Events = Pin<Box<dyn Stream<Item = Result<Event, Error>> + Send>>;

/// The sessions in which the tasks of callers are performed.
#[async_trait]
pub trait Desk: Send + Sync + 'static {
    /// The events of a session after a record; `None` if there is no such session.
    ///
    /// # Errors
    /// `Invalid` if no session can have that name, `Agent` if its log cannot be read.
    async fn events(&self, session: &str, after: Seq, until: Until) -> Result<Events, Error>;

    /// The creation time of a session's log, in milliseconds, and its newest record: while both stay the same, it is
    /// not read again. `None`, the default, if that is unknown.
    async fn mark(&self, session: &str) -> Option<(u64, Seq)> {
        let _ = session;
        None
    }

    /// Requests an operation in a session; returns when its execution is certain, not when it has ended.
    ///
    /// # Errors
    /// `Stale` if a run is active or waits there, or none does; `Invalid` if the answers do not match.
    async fn perform(&self, session: &str, wish: DeskWish) -> Result<(), Error>;
}

/// The end of a stream of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Until {
    /// The current content of the log.
    Now,
    /// Follow the active run until it has ended or waits.
    End,
}

/// Something that is to be done in a session.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum DeskWish {
    /// Start a run with these entries, which continues without followers.
    Prompt(Vec<Entry>),
    /// Resume the waiting run with answers.
    Answers {
        /// The answers.
        answers: Vec<Answered>,
        /// The log entry that names the message of these answers.
        note: Entry,
    },
    /// Resume the run that a crash interrupted; no effect if no run was interrupted.
    GoOn,
    /// Stop the active or the waiting run.
    Stop,
}

/// The sessions of an agent's journal in this process.
pub struct AgentDesk {
    agent: Agent,
    /// The sessions with an active run, each with its agent.
    at_work: Arc<Occupied>,
}

/// The sessions with an active run.
#[derive(Default)]
struct Occupied {
    agents: Mutex<HashMap<LogId, Agent>>,
    /// Notified when one of them is free.
    freed: Notify,
}

impl AgentDesk {
    /// The sessions of the journal that this agent has; without one, each is lost when its run ends or waits.
    pub fn new(agent: Agent) -> Self {
        Self {
            agent,
            at_work: Arc::default(),
        }
    }

    fn at_work(&self) -> MutexGuard<'_, HashMap<LogId, Agent>> {
        self.at_work
            .agents
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a session whose run, according to its log, has ended or waits.
    async fn take(&self, log: &LogId) -> Result<Place, Error> {
        let freed = async {
            loop {
                let freed = self.at_work.freed.notified();
                if !self.at_work().contains_key(log) {
                    return;
                }
                freed.await;
            }
        };
        // The end is recorded shortly before the session is released; a run that continues refuses.
        let _is_free = timeout(LET_GO, freed).await;
        self.take_now(log)
    }

    /// Takes a session without an active run, until the value is dropped.
    fn take_now(&self, log: &LogId) -> Result<Place, Error> {
        let mut at_work = self.at_work();
        if at_work.contains_key(log) {
            return Err(Error::stale(
                "a run is at work in this conversation: wait for its end",
            ));
        }
        if at_work.len() >= MAX_RUNS {
            return Err(Error::stale("too many active runs: try again later"));
        }
        let agent = self.agent.session(log.clone());
        at_work.insert(log.clone(), agent.clone());
        Ok(Place {
            log: log.clone(),
            agent,
            at_work: Arc::clone(&self.at_work),
        })
    }

    /// Starts a run, which continues on its own task.
    async fn begin(place: Place, run: impl FnOnce(&Agent) -> RunBuilder) -> Result<(), Error> {
        let mut running = run(&place.agent)
            .stream()
            .map_err(convert_error)?
            .only_saved();
        // A run that cannot start ends immediately, and then returns the reason.
        let first = running.next().await;
        if first.is_none_or(|event| matches!(event.kind, EventKind::RunFinished { .. })) {
            running.next().await;
        }
        if let Some(Err(error)) = running.result() {
            return Err(convert_error(error.clone()));
        }
        tokio::spawn(async move {
            // The log contains its outcome.
            let _ended = running.finish().await;
            drop(place);
        });
        Ok(())
    }

    async fn go_on(&self, log: &LogId) -> Result<(), Error> {
        let Ok(place) = self.take_now(log) else {
            return Ok(());
        };
        // Another owner of the log performs its run, or returns the reason why it cannot.
        if place.agent.log().open().await.is_err() {
            return Ok(());
        }
        if !place.agent.log().has_open_run() || !place.agent.log().pauses().is_empty() {
            return Ok(());
        }
        Self::begin(place, |agent| agent.resume(Vec::new())).await
    }

    async fn stop(&self, log: &LogId) -> Result<(), Error> {
        let working = self.at_work().get(log).cloned();
        if working.is_some_and(|agent| agent.abort()) {
            return Ok(());
        }
        let place = self.take(log).await?;
        place.agent.log().open().await.map_err(convert_error)?;
        if !place.agent.log().has_open_run() {
            return Ok(());
        }
        place
            .agent
            .cancel_paused()
            .await
            .map(drop)
            .map_err(convert_error)
    }
}

#[async_trait]
impl Desk for AgentDesk {
    async fn events(&self, session: &str, after: Seq, until: Until) -> Result<Events, Error> {
        let log = LogId::from(session);
        let working = self.at_work().get(&log).cloned();
        let agent = working.clone().unwrap_or_else(|| self.agent.session(log));
        let is_missing = |error: &adjutant_core::Error| {
            error
                .journal_error()
                .is_some_and(|error| error.kind == adjutant_core::JournalErrorKind::Missing)
        };
        let there = move |event: Result<Event, adjutant_core::Error>| match event {
            Err(error) if is_missing(&error) => None,
            event => Some(event.map_err(convert_error)),
        };
        let events: Pin<Box<dyn Stream<Item = Result<Event, adjutant_core::Error>> + Send>> =
            match until {
                Until::End if working.is_some() => Box::pin(agent.log().attach(after)),
                Until::Now | Until::End => Box::pin(agent.log().events_after(after)),
            };
        Ok(Box::pin(
            events
                .map(there)
                .take_while(|it| std::future::ready(it.is_some()))
                .flat_map(stream::iter),
        ))
    }

    async fn perform(&self, session: &str, wish: DeskWish) -> Result<(), Error> {
        let log = LogId::from(session);
        match wish {
            DeskWish::Prompt(entries) => {
                Self::begin(self.take(&log).await?, |agent| agent.run(entries)).await
            }
            DeskWish::Answers { answers, note } => {
                let place = self.take(&log).await?;
                let post = Post::Message {
                    lane: Lane::Steering,
                    content: note,
                };
                place
                    .agent
                    .queue()
                    .post(post)
                    .await
                    .map_err(convert_error)?;
                Self::begin(place, |agent| agent.resume(answers)).await
            }
            DeskWish::GoOn => self.go_on(&log).await,
            DeskWish::Stop => self.stop(&log).await,
        }
    }
}

fn convert_error(error: adjutant_core::Error) -> Error {
    use adjutant_core::ErrorKind as Kind;
    match error.kind() {
        Kind::Busy | Kind::Paused => Error::stale(error.to_string()),
        Kind::Answers | Kind::Prompt => Error::invalid(error.to_string()),
        _ => Error::agent(error),
    }
}

/// A taken session.
struct Place {
    log: LogId,
    agent: Agent,
    at_work: Arc<Occupied>,
}

impl Drop for Place {
    fn drop(&mut self) {
        // The agent is dropped without the lock.
        let _gone = self
            .at_work
            .agents
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.log);
        self.at_work.freed.notify_waiters();
    }
}

impl fmt::Debug for AgentDesk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentDesk")
            .field("agent", self.agent.identity())
            .finish_non_exhaustive()
    }
}

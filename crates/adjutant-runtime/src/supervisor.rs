//! The supervisor: what should run does, and what should not does not. How agents are made and run is the backend's business.

mod course;
mod drive;
mod notice;
mod work;

use std::{sync::Arc, time::Duration};

use adjutant_llm::{SystemWorld, World};
use adjutant_tool::Cancel;
use tokio::sync::{broadcast, watch};
use uuid::Uuid;

pub use crate::home::Course;
pub use notice::{AgentRow, Notice, Notices, Table};

use crate::{
    backend::Backend,
    error::Error,
    home::{Home, Operator},
};
use drive::Drive;

/// The largest number of notices that may wait for a slow reader.
const NOTICES: usize = 1_024;

/// Keeps the agents of a folder where they should stand.
pub struct Supervisor {
    backend: Arc<dyn Backend>,
    operator: Operator,
    settings: Settings,
    world: Arc<dyn World>,
    notices: broadcast::Sender<Notice>,
    table: watch::Sender<Arc<[AgentRow]>>,
    agents: watch::Sender<notice::Agents>,
}

/// The settings of a supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// The largest number of agents that may run at a time; without it, all. Those that wait for a place are shown as
    /// waiting.
    pub max_running: Option<usize>,
    /// The longest time that an agent may take to become ready: 60 s.
    pub ready_within: Duration,
    /// The longest time that all agents together may take to end when the supervisor does: 30 s.
    pub end_within: Duration,
    /// The time between two probes that ask a running agent whether it still answers: 10 s. One that does not three
    /// times is begun anew.
    pub probe_every: Duration,
    /// The longest time that its answer may take: 5 s.
    pub probe_within: Duration,
}

/// The report of what became of the agents when the supervisor ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SupervisorReport {
    /// The names of those that were stopped.
    pub stopped: Vec<Arc<str>>,
    /// The names of those that did not run.
    pub idle: Vec<Arc<str>>,
    /// Those that may still run, and why.
    pub left: Vec<(Arc<str>, Arc<str>)>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_running: None,
            ready_within: Duration::from_secs(60),
            end_within: Duration::from_secs(30),
            probe_every: Duration::from_secs(10),
            probe_within: Duration::from_secs(5),
        }
    }
}

impl Settings {
    /// The usual ones.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many agents may run at a time.
    #[must_use]
    pub fn max_running(self, count: usize) -> Self {
        Self {
            max_running: Some(count),
            ..self
        }
    }

    /// Sets how long an agent may take to become ready.
    #[must_use]
    pub fn ready_within(self, time: Duration) -> Self {
        Self {
            ready_within: time,
            ..self
        }
    }

    /// Sets how long all agents together may take to end when the supervisor does.
    #[must_use]
    pub fn end_within(self, time: Duration) -> Self {
        Self {
            end_within: time,
            ..self
        }
    }
}

impl Supervisor {
    /// A supervisor of the agents of a backend, whose folders are those that the operator works on.
    pub fn new(backend: Arc<dyn Backend>, operator: Operator, settings: Settings) -> Self {
        let (notices, table) = (
            broadcast::Sender::new(NOTICES),
            watch::Sender::new(Arc::from([])),
        );
        let agents = watch::Sender::new(Arc::default());
        Self {
            backend,
            operator,
            settings,
            world: Arc::new(SystemWorld),
            notices,
            table,
            agents,
        }
    }

    /// Takes time and chance from elsewhere.
    #[must_use]
    pub fn world(self, world: impl World + 'static) -> Self {
        Self {
            world: Arc::new(world),
            ..self
        }
    }

    /// Returns the notices of what happens from now on.
    pub fn notices(&self) -> Notices {
        Notices::of(self.notices.subscribe())
    }

    /// Returns the table of where the agents stand, now and later.
    pub fn table(&self) -> Table {
        Table::of(self.table.subscribe(), self.agents.subscribe())
    }

    /// Works until it is asked to end, then stops every agent and tells what became of each.
    ///
    /// Where agents should stand is not changed by its end: one that begins later starts them again. `at_once` ends it
    /// without waiting for them; those that still run are told.
    ///
    /// Cancel: agents that run go on, and one that begins later adopts them.
    ///
    /// # Errors
    /// `Storage` if the agents cannot be found.
    pub async fn run(self, end: Cancel, at_once: Cancel) -> Result<SupervisorReport, Error> {
        let mut drive = Drive::begin(self).await?;
        drive.work(&end).await;
        Ok(drive.end(&at_once).await)
    }
}

impl std::fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supervisor")
            .field("operator", &self.operator)
            .field("settings", &self.settings)
            .finish()
    }
}

impl Home {
    /// Writes down that the order that holds for an agent was carried out, by whoever did so without a supervisor.
    ///
    /// # Errors
    /// `Storage` if it cannot be written.
    pub fn carried_out(&self, id: Uuid) -> Result<(), Error> {
        let mut course = self.course(id).unwrap_or_default();
        course.take(&self.desired(id)?);
        course.stopped();
        self.keep(id, &course)
    }
}

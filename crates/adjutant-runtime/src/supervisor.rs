//! The supervisor keeps agents in their desired states. The backend creates and runs the agents.

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

/// The maximum number of notices that are buffered for a slow reader.
const NOTICES: usize = 1_024;

/// Keeps the agents of a directory in their desired states.
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
    /// The maximum number of agents that run at the same time; by default, all. Agents beyond it are queued and
    /// reported as waiting.
    pub max_running: Option<usize>,
    /// The maximum time for an agent to become ready: 60 s.
    pub ready_within: Duration,
    /// The maximum time for all agents together to stop when the supervisor stops: 30 s.
    pub end_within: Duration,
    /// The interval of health checks of a running agent: 10 s. An agent that fails three of them is restarted.
    pub probe_every: Duration,
    /// The timeout of a health check: 5 s.
    pub probe_within: Duration,
}

/// The outcome for each agent when the supervisor stops.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SupervisorReport {
    /// The names of the stopped agents.
    pub stopped: Vec<Arc<str>>,
    /// The names of the agents that were not running.
    pub idle: Vec<Arc<str>>,
    /// The agents that may still be running, with the reasons.
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
    /// Returns the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of running agents.
    #[must_use]
    pub fn max_running(self, count: usize) -> Self {
        Self {
            max_running: Some(count),
            ..self
        }
    }

    /// Sets the maximum time for an agent to become ready.
    #[must_use]
    pub fn ready_within(self, time: Duration) -> Self {
        Self {
            ready_within: time,
            ..self
        }
    }

    /// Sets the maximum time for all agents together to stop when the supervisor stops.
    #[must_use]
    pub fn end_within(self, time: Duration) -> Self {
        Self {
            end_within: time,
            ..self
        }
    }
}

impl Supervisor {
    /// Creates a supervisor for the agents of a backend in the operator's directory.
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

    /// Sets the source of time and randomness.
    #[must_use]
    pub fn world(self, world: impl World + 'static) -> Self {
        Self {
            world: Arc::new(world),
            ..self
        }
    }

    /// Returns the notices from now on.
    pub fn notices(&self) -> Notices {
        Notices::new(self.notices.subscribe())
    }

    /// Returns the table of all agents, which is updated.
    pub fn table(&self) -> Table {
        Table::new(self.table.subscribe(), self.agents.subscribe())
    }

    /// Runs until `end` is cancelled, then stops every agent and reports each outcome.
    ///
    /// The desired states are unchanged: a later supervisor starts the agents again. `at_once` ends it without waiting
    /// for the agents; agents that are still running are reported.
    ///
    /// Cancel: running agents continue, and a later supervisor adopts them.
    ///
    /// # Errors
    /// `Storage` if the directory cannot be read.
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
    /// Records that the current order for an agent was carried out without a supervisor.
    ///
    /// # Errors
    /// `Storage` if the file cannot be written.
    pub fn carried_out(&self, id: Uuid) -> Result<(), Error> {
        let mut course = self.course(id).unwrap_or_default();
        course.take(&self.desired(id)?);
        course.stopped();
        self.keep(id, &course)
    }
}

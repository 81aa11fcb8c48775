//! The news of a supervisor: events, and a table of all agents.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use tokio::sync::{broadcast, watch};
use uuid::Uuid;

use crate::{Goal, Instance, Status};

/// Something that a supervisor did or found.
///
/// Shape: `{"notice":"status","agent":"…","id":"…","status":"ready"}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "notice", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Notice {
    /// The status of an agent has changed, or was found.
    Status {
        /// Its name.
        agent: Arc<str>,
        /// Its id.
        id: Uuid,
        /// Its status.
        #[serde(flatten)]
        status: Status,
    },
    /// An agent failed, and is started again after a pause.
    Pause {
        /// Its name.
        agent: Arc<str>,
        /// Its id.
        id: Uuid,
        /// The number of times that it failed in a row.
        attempts: u32,
        /// The pause, in milliseconds.
        pause_ms: u64,
        /// The reason why it failed.
        why: Arc<str>,
    },
    /// An agent failed, and is not started again before it is ordered to.
    GivenUp {
        /// Its name.
        agent: Arc<str>,
        /// Its id.
        id: Uuid,
        /// The reason.
        why: Arc<str>,
    },
    /// An agent waits until another one ends, since so many run already.
    Waiting {
        /// Its name.
        agent: Arc<str>,
        /// Its id.
        id: Uuid,
        /// The number of agents that may run.
        max_running: usize,
    },
    /// Something is wrong that is no failure of an agent.
    Problem {
        /// The agent that it is about, if it is about one.
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<Arc<str>>,
        /// A description of the problem.
        message: Arc<str>,
    },
    /// So many notices were not read in time.
    Lost {
        /// The number of lost notices.
        count: u64,
    },
}

/// Receives the events of a supervisor.
#[derive(Debug)]
pub struct Notices {
    from: broadcast::Receiver<Notice>,
}

/// Sees where all agents of a supervisor stand.
#[derive(Clone)]
pub struct Table {
    from: watch::Receiver<Arc<[AgentRow]>>,
    agents: watch::Receiver<Agents>,
}

/// The agents of a supervisor, by their ids.
pub(super) type Agents = Arc<BTreeMap<Uuid, Arc<dyn Instance>>>;

/// An agent of a supervisor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgentRow {
    /// Its name.
    pub agent: Arc<str>,
    /// Its id.
    pub id: Uuid,
    /// Its status.
    #[serde(flatten)]
    pub status: Status,
    /// The goal: where it should stand.
    pub goal: Goal,
    /// The number of automatic restarts since it was ordered to run.
    pub restarts: u64,
    /// True if it waits for a place, since so many agents run already.
    pub is_waiting: bool,
    /// The time when it is started again, in milliseconds since 1970-01-01 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_ms: Option<u64>,
    /// The reason why it is not started again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_up: Option<Arc<str>>,
}

impl Notices {
    pub(super) fn of(from: broadcast::Receiver<Notice>) -> Self {
        Self { from }
    }

    /// The next one; none when the supervisor has ended.
    ///
    /// Cancel: nothing is lost.
    pub async fn next(&mut self) -> Option<Notice> {
        match self.from.recv().await {
            Ok(notice) => Some(notice),
            Err(broadcast::error::RecvError::Lagged(count)) => Some(Notice::Lost { count }),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

impl Table {
    pub(super) fn of(
        from: watch::Receiver<Arc<[AgentRow]>>,
        agents: watch::Receiver<Agents>,
    ) -> Self {
        Self { from, agents }
    }

    /// Returns the agent of this name or id, if the supervisor has it.
    pub fn agent(&self, word: &str) -> Option<Arc<dyn Instance>> {
        let agents = Arc::clone(&self.agents.borrow());
        let named = agents.values().find(|agent| *agent.name() == *word);
        named
            .or_else(|| agents.get(&Uuid::try_parse(word).ok()?))
            .cloned()
    }

    /// The agents, sorted by their names.
    pub fn rows(&self) -> Arc<[AgentRow]> {
        Arc::clone(&self.from.borrow())
    }

    /// Waits until it has changed; whether it did, or the supervisor has ended.
    ///
    /// Cancel: nothing is lost.
    pub async fn changed(&mut self) -> bool {
        self.from.changed().await.is_ok()
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("rows", &*self.from.borrow())
            .finish_non_exhaustive()
    }
}

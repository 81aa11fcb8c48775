//! The notices of a supervisor, and a table of all agents.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use tokio::sync::{broadcast, watch};
use uuid::Uuid;

use crate::{Goal, Instance, Status};

/// An event of a supervisor.
///
/// Format: `{"notice":"status","agent":"…","id":"…","status":"ready"}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "notice", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Notice {
    /// The status of an agent changed, or was found.
    Status {
        /// Its name.
        agent: Arc<str>,
        /// Its id.
        id: Uuid,
        /// Its status.
        #[serde(flatten)]
        status: Status,
    },
    /// An agent failed, and is restarted after a pause.
    Pause {
        /// Its name.
        agent: Arc<str>,
        /// Its id.
        id: Uuid,
        /// The number of consecutive failures.
        attempts: u32,
        /// The pause, in milliseconds.
        pause_ms: u64,
        /// The reason of the failure.
        why: Arc<str>,
    },
    /// An agent failed, and is not restarted before the next order.
    GivenUp {
        /// Its name.
        agent: Arc<str>,
        /// Its id.
        id: Uuid,
        /// The reason.
        why: Arc<str>,
    },
    /// An agent is queued because the maximum number of agents is running.
    Waiting {
        /// Its name.
        agent: Arc<str>,
        /// Its id.
        id: Uuid,
        /// The maximum number of running agents.
        max_running: usize,
    },
    /// A problem other than a failure of an agent.
    Problem {
        /// The agent, if the problem concerns one.
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<Arc<str>>,
        /// The message.
        message: Arc<str>,
    },
    /// Notices were lost because the reader was too slow.
    Lost {
        /// The number of lost notices.
        count: u64,
    },
}

/// Receives the notices of a supervisor.
#[derive(Debug)]
pub struct Notices {
    from: broadcast::Receiver<Notice>,
}

/// A live table of all agents of a supervisor.
#[derive(Clone)]
pub struct Table {
    from: watch::Receiver<Arc<[AgentRow]>>,
    agents: watch::Receiver<Agents>,
}

/// The agents of a supervisor by id.
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
    /// Its desired state.
    pub goal: Goal,
    /// The number of automatic restarts since the last start order.
    pub restarts: u64,
    /// True if it is queued because the maximum number of agents is running.
    pub is_waiting: bool,
    /// The time of the next start attempt, in milliseconds since 1970-01-01 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_ms: Option<u64>,
    /// The reason why it is not restarted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_up: Option<Arc<str>>,
}

impl Notices {
    pub(super) fn new(from: broadcast::Receiver<Notice>) -> Self {
        Self { from }
    }

    /// Waits for the next notice; `None` when the supervisor has stopped.
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
    pub(super) fn new(
        from: watch::Receiver<Arc<[AgentRow]>>,
        agents: watch::Receiver<Agents>,
    ) -> Self {
        Self { from, agents }
    }

    /// Returns the agent with this name or id.
    pub fn agent(&self, word: &str) -> Option<Arc<dyn Instance>> {
        let agents = Arc::clone(&self.agents.borrow());
        let named = agents.values().find(|agent| *agent.name() == *word);
        named
            .or_else(|| agents.get(&Uuid::try_parse(word).ok()?))
            .cloned()
    }

    /// Returns the agents, sorted by name.
    pub fn rows(&self) -> Arc<[AgentRow]> {
        Arc::clone(&self.from.borrow())
    }

    /// Waits for a change; false when the supervisor has stopped.
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

//! What applications see of tasks in the background.

use std::sync::Arc;

use adjutant_agent::LogId;
use adjutant_llm::{ThreadId, Usage};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::task_table::TaskTable;
use crate::fan_out::EndKind;

/// Where a task stands; from running it goes to one of the others, and stays there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskState {
    /// Its agent is at work.
    Running,
    /// Its agent has answered.
    Completed,
    /// Its agent could not answer.
    Failed,
    /// It was stopped before its agent answered.
    Cancelled,
}

/// A task in the background, as it stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TaskSnapshot {
    /// The session.
    pub session: LogId,
    /// The thread of the agent that launched it.
    pub by: ThreadId,
    /// Its id, `task-<n>`, unique among those of the agent that launched it.
    pub id: Arc<str>,
    /// The agent that does it, by the name it is launched by.
    pub agent: Arc<str>,
    /// The thread of the agent that does it.
    pub thread: ThreadId,
    /// What it is to do.
    pub task: Arc<str>,
    /// Where it stands.
    pub state: TaskState,
    /// What its agent said or did last, in one line.
    pub progress: Arc<str>,
    /// Its answer, or why there is none; empty while it runs.
    pub text: Arc<str>,
    /// What it used, once it has ended.
    pub usage: Usage,
    /// Whether the agent that launched it knows the text.
    pub read: bool,
}

/// Shows tasks whenever something about them changes.
#[derive(Debug)]
pub struct TaskWatch {
    table: Arc<TaskTable>,
    changes: watch::Receiver<u64>,
}

impl TaskState {
    /// Whether it stays there.
    pub fn is_ended(self) -> bool {
        self != TaskState::Running
    }

    /// The state in one word, as models see it.
    pub fn word(self) -> &'static str {
        match self {
            TaskState::Running => "running",
            TaskState::Completed => "completed",
            TaskState::Failed => "failed",
            TaskState::Cancelled => "cancelled",
        }
    }
}

impl From<EndKind> for TaskState {
    fn from(end: EndKind) -> Self {
        match end {
            EndKind::Completed => TaskState::Completed,
            EndKind::Failed => TaskState::Failed,
            EndKind::Cancelled => TaskState::Cancelled,
        }
    }
}

impl TaskWatch {
    pub(super) fn new(table: &Arc<TaskTable>) -> Self {
        let mut changes = table.changes();
        changes.mark_changed();
        Self { table: Arc::clone(table), changes }
    }

    /// The tasks as they are at first, and after each change; changes that come fast are shown together.
    ///
    /// Cancel: nothing is lost.
    pub async fn next(&mut self) -> Vec<TaskSnapshot> {
        // The table holds the other end.
        let _ = self.changes.changed().await;
        self.table.snapshot()
    }
}

//! The view that applications have of tasks in the background.

use std::sync::Arc;

use adjutant_agent::LogId;
use adjutant_llm::{ThreadId, Usage};
use serde::Serialize;
use tokio::sync::watch;

use super::task_table::TaskTable;
use crate::child_run::TaskState;

/// The current state of a background task.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TaskSnapshot {
    /// The session.
    pub session: LogId,
    /// The thread of the agent that launched it.
    pub by: ThreadId,
    /// Its id, `task-<n>`, unique for the agent that launched it.
    pub id: Arc<str>,
    /// The agent that does it, by the name it is launched by.
    pub agent: Arc<str>,
    /// The thread of the agent that does it.
    pub thread: ThreadId,
    /// The task to do.
    pub task: Arc<str>,
    /// The state of the task.
    pub state: TaskState,
    /// The newest words or deeds of its agent, in one line.
    pub progress: Arc<str>,
    /// Its answer, or the reason why it has none; empty while it runs.
    pub text: Arc<str>,
    /// The usage, once the task has ended.
    pub usage: Usage,
    /// True if the agent that launched it knows the text.
    pub read: bool,
}

/// Shows tasks whenever something about them changes.
#[derive(Debug)]
pub struct TaskWatch {
    table: Arc<TaskTable>,
    changes: watch::Receiver<u64>,
}

impl TaskWatch {
    pub(super) fn new(table: &Arc<TaskTable>) -> Self {
        let mut changes = table.changes();
        changes.mark_changed();
        Self {
            table: Arc::clone(table),
            changes,
        }
    }

    /// The tasks at first, and after each change; fast changes are combined.
    ///
    /// Cancel: nothing is lost.
    pub async fn next(&mut self) -> Vec<TaskSnapshot> {
        // The table holds the other end.
        let _ = self.changes.changed().await;
        self.table.snapshot()
    }
}

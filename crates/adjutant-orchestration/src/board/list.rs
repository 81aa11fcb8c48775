//! Pages of tasks, oldest first, with what blocks them.

use std::sync::Arc;

use adjutant_agent::kv::Scan;
use serde::Serialize;

use super::{Board, Task, TaskId, TaskStatus, keys};
use crate::Error;

/// The most tasks of one page.
pub const MAX_PAGE: usize = 1_000;

/// The number of tasks that are read at once.
const CHUNK: usize = 256;

/// The choice of tasks that are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskQuery {
    /// Only tasks with this status.
    pub status: Option<TaskStatus>,
    /// Only tasks that this agent works on, worked on last, or that are reserved for it.
    pub assignee: Option<Arc<str>>,
    /// Only tasks that are blocked by a dependency, or only unblocked ones.
    pub is_blocked: Option<bool>,
    /// Only those behind this one.
    pub after: Option<TaskId>,
    /// The largest number of tasks; 1 to [`MAX_PAGE`], 50 by default.
    pub limit: usize,
}

/// A page of tasks.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TaskPage {
    /// The tasks, oldest first.
    pub tasks: Vec<ListedTask>,
    /// The task with which the next page begins, if there may be one.
    pub next: Option<TaskId>,
}

/// A task with what blocks it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ListedTask {
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// The dependencies that are not completed, if it is pending.
    pub blocked_by: Vec<Blocker>,
}

/// A dependency that is not completed. A failed or cancelled one blocks until it is retried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Blocker {
    /// The task.
    pub id: TaskId,
    /// Its title.
    pub title: Arc<str>,
    /// The status of the task.
    pub status: TaskStatus,
}

impl TaskQuery {
    /// All tasks.
    pub fn new() -> Self {
        Self {
            status: None,
            assignee: None,
            is_blocked: None,
            after: None,
            limit: 50,
        }
    }

    /// Only tasks with this status.
    #[must_use]
    pub fn status(self, status: TaskStatus) -> Self {
        Self {
            status: Some(status),
            ..self
        }
    }

    /// Only tasks of this agent.
    #[must_use]
    pub fn assignee(self, agent: impl Into<Arc<str>>) -> Self {
        Self {
            assignee: Some(agent.into()),
            ..self
        }
    }

    /// Only tasks that are blocked by a dependency.
    #[must_use]
    pub fn only_blocked(self) -> Self {
        Self {
            is_blocked: Some(true),
            ..self
        }
    }

    /// Only tasks that are not blocked.
    #[must_use]
    pub fn only_unblocked(self) -> Self {
        Self {
            is_blocked: Some(false),
            ..self
        }
    }

    /// Only those behind this one.
    #[must_use]
    pub fn after(self, id: TaskId) -> Self {
        Self {
            after: Some(id),
            ..self
        }
    }

    /// Sets how many there are at most.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    fn fits(&self, task: &Task) -> bool {
        self.status.is_none_or(|status| status == task.status)
            && self
                .assignee
                .as_ref()
                .is_none_or(|agent| task.assignee.as_ref() == Some(agent))
    }
}

impl Default for TaskQuery {
    fn default() -> Self {
        Self::new()
    }
}

impl Blocker {
    pub(super) fn from_task(task: Task) -> Self {
        Self {
            id: task.id,
            title: task.title,
            status: task.status,
        }
    }
}

impl Board {
    /// Tasks, oldest first, with what blocks them.
    ///
    /// # Errors
    /// `Store`.
    pub async fn list(&self, query: &TaskQuery) -> Result<TaskPage, Error> {
        let limit = query.limit.clamp(1, MAX_PAGE);
        let mut tasks = Vec::new();
        let mut scan = Scan {
            limit: Some(CHUNK),
            ..Scan::prefix(keys::TASKS)
        };
        if let Some(after) = &query.after {
            scan = Scan {
                after: Some(keys::task(after).into()),
                ..scan
            };
        }
        loop {
            let chunk = self.kv.scan(&scan).await?;
            for item in &chunk {
                let task = keys::decode_task(item)?.task;
                if !query.fits(&task) {
                    continue;
                }
                let listed = self.build_listed_task(task).await?;
                if query
                    .is_blocked
                    .is_some_and(|wanted| wanted == listed.blocked_by.is_empty())
                {
                    continue;
                }
                // One more than wanted: there is a next page.
                if tasks.len() == limit {
                    return Ok(TaskPage {
                        next: tasks.last().map(|it: &ListedTask| it.task.id.clone()),
                        tasks,
                    });
                }
                tasks.push(listed);
            }
            match chunk.last() {
                Some(last) if chunk.len() == CHUNK => {
                    scan = Scan {
                        after: Some(last.key.as_ref().into()),
                        ..scan
                    }
                }
                _ => return Ok(TaskPage { tasks, next: None }),
            }
        }
    }

    /// A task with what blocks it.
    ///
    /// # Errors
    /// `Missing`, `Store`.
    pub async fn show(&self, id: &TaskId) -> Result<ListedTask, Error> {
        let task = self.get(id).await?;
        self.build_listed_task(task).await
    }

    async fn build_listed_task(&self, task: Task) -> Result<ListedTask, Error> {
        let is_pending = task.status == TaskStatus::Pending;
        let blocked_by = if is_pending {
            self.blockers(&task).await?
        } else {
            Vec::new()
        };
        Ok(ListedTask { task, blocked_by })
    }
}

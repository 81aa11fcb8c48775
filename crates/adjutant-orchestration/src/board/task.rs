//! A task, and the form in which it is kept.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Error, ErrorKind};

/// The number of letters of an id.
const ID_BYTES: usize = 32;
/// The largest number of characters of an invalid id in an error.
const MAX_SHOWN: usize = 60;

/// The id of a task; ids of later tasks come later in the order of texts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(pub Arc<str>);

/// The status of a task. Whether it is blocked depends on its dependencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskStatus {
    /// It has no worker.
    Pending,
    /// A worker has claimed it.
    InProgress,
    /// It is done.
    Completed,
    /// It could not be done; it may be tried again.
    Failed,
    /// It should not be done; it may be taken up again.
    Cancelled,
}

/// For how long a task belongs to a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Lease {
    /// The worker.
    pub holder: Arc<str>,
    /// Until when, in milliseconds since 1970-01-01 UTC.
    pub until_ms: u64,
}

/// The evidence that a criterion is met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Evidence {
    /// The criterion, as the task has it.
    pub criterion: Arc<str>,
    /// The proof.
    pub proof: Arc<str>,
}

/// A piece of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// The title, in a line. Any text: it is data, whatever it looks like.
    pub title: Arc<str>,
    /// The description.
    #[serde(default)]
    pub description: Arc<str>,
    /// The status.
    pub status: TaskStatus,
    /// The higher, the earlier it is claimed.
    #[serde(default)]
    pub priority: i32,
    /// The agent that works on it, that it is reserved for, or that worked on it last.
    #[serde(default)]
    pub assignee: Option<Arc<str>>,
    /// The tasks that must be completed before it can be claimed.
    #[serde(default)]
    pub dependencies: Vec<TaskId>,
    /// The application's own data about it.
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// The criteria that need evidence for its completion.
    #[serde(default)]
    pub acceptance_criteria: Vec<Arc<str>>,
    /// The evidence so far.
    #[serde(default)]
    pub evidence: Vec<Evidence>,
    /// The result, or the reason of the failure.
    #[serde(default)]
    pub result: Option<Arc<str>>,
    /// The caveats about the result.
    #[serde(default)]
    pub caveats: Option<Arc<str>>,
    /// The reason why the attempt before this one failed.
    #[serde(default)]
    pub last_failure: Option<Arc<str>>,
    /// The creator.
    #[serde(default)]
    pub created_by: Arc<str>,
    /// The time when it was created, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// The time when it was changed last, in milliseconds since 1970-01-01 UTC.
    pub updated_ms: u64,
    /// The number of times that an agent began to work on it.
    #[serde(default)]
    pub attempts: u32,
    /// The number of workers in a row that lost it, because their leases ran out.
    #[serde(default)]
    pub lost: u32,
    /// The lease of the agent that has it, while it is in progress.
    #[serde(default)]
    pub lease: Option<Lease>,
    /// The number of tasks that depend on it.
    #[serde(default)]
    pub dependents: u32,
    /// True if a dependency was not completed at the last check; never set once all are.
    #[serde(default)]
    pub(super) waits: bool,
    /// By what name it was created at most once.
    #[serde(default)]
    pub(super) key: Option<Arc<str>>,
}

impl TaskId {
    pub(super) fn from_number(number: u128) -> Self {
        Self(format!("{number:032x}").into())
    }

    /// True if a task can have this id; a text that cannot be one is never looked up.
    pub(super) fn is_possible(&self) -> bool {
        self.0.len() == ID_BYTES
            && self
                .0
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    }

    /// The id, truncated if it is invalid.
    pub(super) fn to_display_string(&self) -> String {
        if self.is_possible() {
            return self.to_string();
        }
        let cut: String = self.0.chars().take(MAX_SHOWN).collect();
        format!("{cut:?}")
    }
}

impl TaskStatus {
    /// Every status.
    pub const ALL: [Self; 5] = [
        Self::Pending,
        Self::InProgress,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Its name, as it is written everywhere: `in_progress`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// True if nothing more happens without a request.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

impl Task {
    /// True if an agent holds it, be the lease over or not.
    pub fn is_held_by(&self, agent: &str) -> bool {
        self.lease
            .as_ref()
            .is_some_and(|lease| &*lease.holder == agent)
    }
}

/// A task as it is kept.
pub(super) fn encode(task: &Task) -> Result<Value, Error> {
    serde_json::to_value(task).map_err(|error| {
        Error::new(
            ErrorKind::Invalid,
            format!("task {} cannot be written as JSON", task.id),
        )
        .with_source(error)
    })
}

/// A task that is kept.
pub(super) fn decode(value: &Value) -> Result<Task, Error> {
    Task::deserialize(value).map_err(|error| {
        Error::new(
            ErrorKind::Store,
            "what the key-value store has there is no task",
        )
        .with_source(error)
    })
}

impl From<&str> for TaskId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

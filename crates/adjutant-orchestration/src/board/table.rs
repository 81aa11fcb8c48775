//! The one table of the actions that are possible in each status, and of the status after them.

use std::fmt;

use super::{Task, TaskStatus};
use crate::{Error, ErrorKind};

/// An action on a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// A worker takes it, keeps it, or takes it over after another one's lease expired.
    Claim,
    /// A heartbeat of its worker.
    Heartbeat,
    /// Its worker has done it.
    Complete,
    /// Its worker could not do it.
    Fail,
    /// Its worker, or the agent that it is reserved for, releases it.
    Release,
    /// It is assigned to an agent.
    Reassign,
    /// The lease of its worker has run out.
    Lapse,
    /// Too many workers in a row lost it.
    GiveUp,
    /// It must not be done.
    Cancel,
    /// It should be tried again.
    Retry,
    /// Its texts are changed.
    Edit,
    /// Its dependencies are changed.
    Depend,
    /// It is deleted.
    Delete,
}

use Action as A;
use TaskStatus as S;

/// The possible actions, row by row; no other one is possible.
const TABLE: [(TaskStatus, &[(Action, TaskStatus)]); 5] = [
    (
        S::Pending,
        &[
            (A::Claim, S::InProgress),
            (A::Release, S::Pending),
            (A::Reassign, S::Pending),
            (A::Cancel, S::Cancelled),
            (A::Edit, S::Pending),
            (A::Depend, S::Pending),
        ],
    ),
    (
        S::InProgress,
        &[
            (A::Claim, S::InProgress),
            (A::Heartbeat, S::InProgress),
            (A::Complete, S::Completed),
            (A::Fail, S::Failed),
            (A::Release, S::Pending),
            (A::Reassign, S::InProgress),
            (A::Lapse, S::Pending),
            (A::GiveUp, S::Failed),
            (A::Cancel, S::Cancelled),
            (A::Edit, S::InProgress),
        ],
    ),
    (S::Completed, &[(A::Delete, S::Completed)]),
    (S::Failed, &[(A::Retry, S::Pending), (A::Delete, S::Failed)]),
    (
        S::Cancelled,
        &[(A::Retry, S::Pending), (A::Delete, S::Cancelled)],
    ),
];

impl Action {
    /// Every action.
    pub const ALL: [Self; 13] = [
        A::Claim,
        A::Heartbeat,
        A::Complete,
        A::Fail,
        A::Release,
        A::Reassign,
        A::Lapse,
        A::GiveUp,
        A::Cancel,
        A::Retry,
        A::Edit,
        A::Depend,
        A::Delete,
    ];

    /// Returns the participle for "it cannot be …".
    fn done(self) -> &'static str {
        match self {
            A::Claim => "claimed",
            A::Heartbeat => "kept alive",
            A::Complete => "completed",
            A::Fail => "failed",
            A::Release => "released",
            A::Reassign => "reassigned",
            A::Lapse => "taken from its worker",
            A::GiveUp => "given up",
            A::Cancel => "cancelled",
            A::Retry => "retried",
            A::Edit => "edited",
            A::Depend => "made to depend on others",
            A::Delete => "deleted",
        }
    }
}

impl TaskStatus {
    /// The status that an action leads to from this one; `None` if it is not possible. A deleted task has none.
    pub fn after(self, action: Action) -> Option<TaskStatus> {
        let row = self
            .row()
            .iter()
            .find(|(possible, _)| *possible == action)?;
        Some(row.1)
    }

    fn row(self) -> &'static [(Action, TaskStatus)] {
        TABLE
            .iter()
            .find(|(status, _)| *status == self)
            .map_or(&[], |(_, row)| row)
    }
}

/// The status that an action leads a task to.
pub(super) fn step(task: &Task, action: Action) -> Result<TaskStatus, Error> {
    task.status.after(action).ok_or_else(|| {
        let possible: Vec<&str> = task
            .status
            .row()
            .iter()
            .map(|(possible, _)| possible.done())
            .collect();
        let (id, status, possible) = (&task.id, task.status, possible.join(", "));
        let message =
            format!("task {id} is {status} and cannot be {action}; hint: it can be {possible}");
        Error::new(ErrorKind::Conflict, message)
    })
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.done())
    }
}

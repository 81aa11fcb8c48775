//! The end of a task, and its new begin.

use std::sync::Arc;

use super::{Action, Board, Finish, Task, TaskId, TaskStatus, claim::check_holder, table::step};
use crate::{Error, ErrorKind};

impl Board {
    /// Ends the work of an agent on a task.
    ///
    /// The current worker can do so even if its lease has just expired; a worker that lost it to another one, or to
    /// the board, cannot. Repeating it with the same result has no effect.
    ///
    /// # Errors
    /// `Conflict` if the agent no longer has the task; `Invalid` if a criterion has no evidence, the evidence is of no
    /// criterion, or a text is too long; `Missing`, `Store`.
    pub async fn finish(&self, id: &TaskId, agent: &str, finish: Finish) -> Result<Task, Error> {
        finish.check()?;
        let action = if finish.is_completed {
            Action::Complete
        } else {
            Action::Fail
        };
        let edit = |task: &mut Task, _| {
            if is_done(task, agent, &finish) {
                return Ok(());
            }
            let status = step(task, action)?;
            check_holder(task, agent)?;
            task.evidence = finish.evidence_for(&task.acceptance_criteria)?;
            (task.status, task.lease, task.lost) = (status, None, 0);
            task.result = Some(Arc::clone(&finish.result));
            task.caveats.clone_from(&finish.caveats);
            Ok(())
        };
        let task = self.change(id, edit).await?;
        if task.status == TaskStatus::Completed
            && task.dependents > 0
            && let Err(error) = self.settle(id).await
        {
            // It is recorded in the key-value store: the next search for work does it.
            tracing::warn!(task = %id, %error, "the dependents of a completed task could not be told yet");
        }
        Ok(task)
    }

    /// Cancels a task that has not ended. Its worker is notified by [`cancelled`](Board::cancelled).
    ///
    /// # Errors
    /// `Conflict` if it has ended; `Missing`, `Store`.
    pub async fn cancel(&self, id: &TaskId) -> Result<Task, Error> {
        let edit = |task: &mut Task, _| {
            (task.status, task.lease) = (step(task, Action::Cancel)?, None);
            Ok(())
        };
        self.change(id, edit).await
    }

    /// Makes a failed or cancelled task pending again, for any agent.
    ///
    /// # Errors
    /// `Conflict` if it has neither failed nor been cancelled; `Missing`, `Store`.
    pub async fn retry(&self, id: &TaskId) -> Result<Task, Error> {
        let edit = |task: &mut Task, _| {
            task.status = step(task, Action::Retry)?;
            (task.assignee, task.caveats, task.lost) = (None, None, 0);
            task.last_failure = task.result.take().or_else(|| task.last_failure.take());
            task.evidence.clear();
            Ok(())
        };
        self.change(id, edit).await
    }

    /// Deletes a task that has ended and that no other depends on.
    ///
    /// # Errors
    /// `Conflict` if it has not ended or another task depends on it; `Missing`, `Store`.
    pub async fn delete(&self, id: &TaskId) -> Result<(), Error> {
        for _ in 0..super::MAX_TRIES {
            let kept = self.read(id).await?;
            step(&kept.task, Action::Delete)?;
            if kept.task.dependents > 0 {
                let message = format!(
                    "task {id} cannot be deleted: {} tasks depend on it",
                    kept.task.dependents
                );
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            if self.remove(&kept).await? {
                return Ok(());
            }
        }
        Err(super::busy(id))
    }
}

/// True if the agent has ended it just so before.
fn is_done(task: &Task, agent: &str, finish: &Finish) -> bool {
    let status = if finish.is_completed {
        TaskStatus::Completed
    } else {
        TaskStatus::Failed
    };
    task.status == status
        && task.assignee.as_deref() == Some(agent)
        && task.result.as_ref() == Some(&finish.result)
        && task.caveats == finish.caveats
}

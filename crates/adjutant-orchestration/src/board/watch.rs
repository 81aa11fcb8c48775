//! Hearing of changes, from any process.

use std::{future, pin::Pin, time::Duration};

use adjutant_agent::kv::{ChangeStream, Version};
use futures_core::Stream;
use futures_util::StreamExt;

use super::{Board, Task, TaskId, TaskStatus, keys};
use crate::{Error, ErrorKind};

/// The delay before a retry after a failure of the key-value store.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A change of a task.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TaskChange {
    /// The task.
    pub id: TaskId,
    /// The task as it is now; `None` if it was deleted.
    pub task: Option<Task>,
    /// The number of the change; later ones have higher numbers.
    pub version: Version,
}

/// The changes of tasks as they occur; it never ends.
pub type TaskChanges = Pin<Box<dyn Stream<Item = Result<TaskChange, Error>> + Send>>;

impl Board {
    /// The changes of all tasks from now on, by any process. Of several changes of one task possibly only the newest
    /// is reported.
    ///
    /// # Errors
    /// `Store`, here and as items, after which more may come.
    pub async fn watch(&self) -> Result<TaskChanges, Error> {
        let newest = self.kv.newest().await?;
        let changes = self.kv.watch(keys::TASKS, newest).map(|changed| {
            let changed = changed?;
            let kept = changed.item.as_ref().map(keys::decode_task).transpose()?;
            let (id, task) = (keys::last(&changed.key), kept.map(|kept| kept.task));
            Ok(TaskChange {
                id,
                task,
                version: changed.version,
            })
        });
        Ok(Box::pin(changes))
    }

    /// Waits until a task has ended, at most this long.
    ///
    /// # Errors
    /// `TimedOut` if it has not ended; `Missing` if there is no such task, or it was deleted in the meantime;
    /// `Store`.
    pub async fn wait(&self, id: &TaskId, within: Duration) -> Result<Task, Error> {
        let ended =
            tokio::time::timeout(within, self.until(id, |task| task.status.is_terminal())).await;
        ended.unwrap_or_else(|_| {
            Err(Error::new(
                ErrorKind::TimedOut,
                format!(
                    "task {} did not end within {within:?}",
                    id.to_display_string()
                ),
            ))
        })
    }

    /// Ends when a task is cancelled or deleted, by any process; never if it ends in another way.
    ///
    /// Cancel: nothing is lost.
    pub async fn cancelled(&self, id: &TaskId) {
        loop {
            match self.until(id, |task| task.status.is_terminal()).await {
                Ok(task) if task.status == TaskStatus::Cancelled => return,
                Ok(_) => future::pending().await,
                Err(error) if error.kind() == ErrorKind::Missing => return,
                Err(_) => tokio::time::sleep(LOOK_AGAIN).await,
            }
        }
    }

    async fn until(
        &self,
        id: &TaskId,
        is_so: impl Fn(&Task) -> bool + Send,
    ) -> Result<Task, Error> {
        // Watched before it is read, so that no change is missed.
        let newest = self.kv.newest().await?;
        let task = self.get(id).await?;
        if is_so(&task) {
            return Ok(task);
        }
        let mut changes: ChangeStream = self.kv.watch(&keys::task(id), newest);
        while let Some(changed) = changes.next().await {
            let Some(item) = changed?.item else { break };
            let task = keys::decode_task(&item)?.task;
            if is_so(&task) {
                return Ok(task);
            }
        }
        Err(Error::new(
            ErrorKind::Missing,
            format!("task {id} was deleted"),
        ))
    }
}

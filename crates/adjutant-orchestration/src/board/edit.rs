//! Editing a task.

use super::{
    Action, Board, MAX_DEPENDENCIES, MAX_TRIES, Task, TaskEdit, TaskId,
    bounds::{check_count, each_once},
    busy,
    table::step,
};
use crate::Error;

impl Board {
    /// Edits a task, while it is pending or in progress; its dependencies only while it is pending.
    ///
    /// # Errors
    /// `Invalid` if something is too large or the task would wait for itself; `Missing` for a missing task or
    /// dependency; `Conflict` if the task can no longer be changed; `Full` if too many tasks are connected; `Store`.
    pub async fn update(&self, id: &TaskId, edit: TaskEdit) -> Result<Task, Error> {
        let Some(dependencies) = &edit.dependencies else {
            let change = |task: &mut Task, _| {
                task.status = step(task, Action::Edit)?;
                edit.apply(task)
            };
            return self.change(id, change).await;
        };
        check_count("dependencies", dependencies.len(), MAX_DEPENDENCIES)?;
        for _ in 0..MAX_TRIES {
            let kept = self.read(id).await?;
            let mut task = kept.task.clone();
            step(&task, Action::Edit)?;
            task.status = step(&task, Action::Depend)?;
            edit.apply(&mut task)?;
            if self
                .replace_behind(&kept, &mut task, each_once(dependencies))
                .await?
            {
                return Ok(task);
            }
        }
        Err(busy(id))
    }
}

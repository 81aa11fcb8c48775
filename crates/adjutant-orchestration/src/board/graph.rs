//! The dependencies of tasks: creating tasks with dependencies, changing them without cycles, and notifying
//! dependents.

use std::collections::HashSet;

use adjutant_agent::kv::{Change, Scan, When};
use futures_util::{StreamExt, TryStreamExt, stream};

use super::{
    Blocker, Board, MAX_TRIES, NewTask, Task, TaskId, TaskStatus, VersionedTask, bounds::invalid,
    busy, keys, task::encode,
};
use crate::{Error, ErrorKind};

/// The largest number of tasks that are examined to detect a cycle.
const MAX_WALK: usize = 10_000;
/// The number of dependents that are read at once.
const PAGE: usize = 256;
/// The number of tasks that are read concurrently.
const AT_ONCE: usize = 16;

impl Board {
    /// Creates a task: pending, and blocked as long as a dependency is not completed.
    ///
    /// # Errors
    /// `Missing` for a dependency that is not there; `Invalid` for a text, metadata or numbers that are too large;
    /// `Store`.
    pub async fn create(&self, new: NewTask) -> Result<Task, Error> {
        new.check()?;
        let id = TaskId::from_number(self.world.id());
        for _ in 0..MAX_TRIES {
            if let Some(key) = &new.key
                && let Some(item) = self.kv.get(&keys::once(key)).await?
            {
                return self.get(&keys::decode_task_id(&item.value)).await;
            }
            let mut task = new.task(id.clone(), self.world.now_ms());
            let dependencies = self.read_all(&task.dependencies).await?;
            task.waits = dependencies.iter().any(is_open);
            let mut changes = keys::create(&task)?;
            for kept in &dependencies {
                // Also what keeps it from ending, or from being deleted, in this moment.
                changes.push(touch(kept, kept.task.dependents.saturating_add(1))?);
            }
            if self.write(changes).await? {
                return Ok(task);
            }
        }
        Err(busy(&id))
    }

    /// Returns the blockers of a task: its dependencies that are not completed, with their status.
    ///
    /// # Errors
    /// `Store`.
    pub async fn blockers(&self, task: &Task) -> Result<Vec<Blocker>, Error> {
        if !task.waits {
            return Ok(Vec::new());
        }
        let found =
            stream::iter(task.dependencies.clone()).map(|id| async move { self.find(&id).await });
        let found: Vec<Option<VersionedTask>> = found.buffered(AT_ONCE).try_collect().await?;
        Ok(found
            .into_iter()
            .flatten()
            .filter(is_open)
            .map(|kept| Blocker::from_task(kept.task))
            .collect())
    }

    /// Replaces the version of a task that was read, with other dependencies; returns whether everything was
    /// unchanged.
    pub(super) async fn replace_behind(
        &self,
        before: &VersionedTask,
        after: &mut Task,
        dependencies: Vec<TaskId>,
    ) -> Result<bool, Error> {
        let graph = self
            .kv
            .get(keys::GRAPH)
            .await?
            .map_or(When::Absent, |item| When::Is(item.version));
        let wanted = self.read_all(&dependencies).await?;
        self.check_acyclic(&after.id, &dependencies).await?;
        let gone: Vec<TaskId> = before
            .task
            .dependencies
            .iter()
            .filter(|it| !dependencies.contains(it))
            .cloned()
            .collect();
        after.waits = wanted.iter().any(is_open);
        after.dependencies = dependencies;
        after.updated_ms = self.world.now_ms().max(before.task.updated_ms);
        let mut changes = keys::replace(before, after)?;
        changes.push(Change {
            when: graph,
            ..keys::mark(keys::GRAPH)
        });
        for kept in &wanted {
            let is_new = !before.task.dependencies.contains(&kept.task.id);
            if is_new || is_open(kept) {
                changes.push(touch(
                    kept,
                    kept.task.dependents.saturating_add(u32::from(is_new)),
                )?);
            }
            changes.extend(
                is_new.then(|| {
                    keys::mark(format!("{}{}", keys::dependents(&kept.task.id), after.id))
                }),
            );
        }
        for kept in self.read_all(&gone).await? {
            changes.push(touch(&kept, kept.task.dependents.saturating_sub(1))?);
            changes.push(Change::remove(format!(
                "{}{}",
                keys::dependents(&kept.task.id),
                after.id
            )));
        }
        self.write(changes).await
    }

    /// Removes a task; returns whether everything was as it was read.
    pub(super) async fn remove(&self, kept: &VersionedTask) -> Result<bool, Error> {
        let mut changes = keys::remove(kept);
        for dependency in self.read_all(&kept.task.dependencies).await? {
            changes.push(touch(
                &dependency,
                dependency.task.dependents.saturating_sub(1),
            )?);
        }
        self.write(changes).await
    }

    /// Makes those ready that waited for a task, unless they wait for others, too.
    pub(super) async fn unblock_dependents(&self, id: &TaskId) -> Result<(), Error> {
        let mut scan = Scan {
            limit: Some(PAGE),
            ..Scan::prefix(keys::dependents(id))
        };
        loop {
            let page = self.kv.scan(&scan).await?;
            let ids: Vec<TaskId> = page.iter().map(|item| keys::last(&item.key)).collect();
            let unblocked = stream::iter(ids).map(|id| async move { self.unblock(&id).await });
            unblocked
                .buffer_unordered(AT_ONCE)
                .try_collect::<Vec<()>>()
                .await?;
            match page.last() {
                Some(last) if page.len() == PAGE => {
                    scan = Scan {
                        after: Some(last.key.as_ref().into()),
                        ..scan
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    async fn unblock(&self, id: &TaskId) -> Result<(), Error> {
        while let Some(kept) = self.find(id).await? {
            // Completion is permanent: if all are completed now, nothing can block it any more.
            if !kept.task.waits || !self.blockers(&kept.task).await?.is_empty() {
                break;
            }
            let mut task = kept.task.clone();
            task.waits = false;
            if self.replace(&kept, &mut task).await? {
                break;
            }
        }
        Ok(())
    }

    /// Checks that a task that is there would not wait for itself.
    async fn check_acyclic(&self, id: &TaskId, dependencies: &[TaskId]) -> Result<(), Error> {
        let mut seen: HashSet<TaskId> = dependencies.iter().cloned().collect();
        let mut open: Vec<(TaskId, TaskId)> = dependencies
            .iter()
            .map(|it| (it.clone(), it.clone()))
            .collect();
        while let Some((next, through)) = open.pop() {
            if next == *id {
                return Err(invalid(format!(
                    "task {id} would wait for itself, through {through}"
                )));
            }
            if seen.len() > MAX_WALK {
                let message =
                    format!("task {id} would wait for more than {MAX_WALK} tasks, directly or not");
                return Err(Error::new(ErrorKind::Full, message));
            }
            let Some(kept) = self.find(&next).await? else {
                continue;
            };
            for behind in kept.task.dependencies {
                if seen.insert(behind.clone()) {
                    open.push((behind, through.clone()));
                }
            }
        }
        Ok(())
    }

    async fn read_all(&self, ids: &[TaskId]) -> Result<Vec<VersionedTask>, Error> {
        let read = stream::iter(ids.to_vec()).map(|id| async move {
            let missing = || {
                Error::new(
                    ErrorKind::Missing,
                    format!("there is no task {} to depend on", id.to_display_string()),
                )
            };
            self.find(&id).await?.ok_or_else(missing)
        });
        read.buffered(AT_ONCE).try_collect().await
    }
}

fn is_open(kept: &VersionedTask) -> bool {
    kept.task.status != TaskStatus::Completed
}

/// Writes a task again unchanged, with this number of dependents.
fn touch(kept: &VersionedTask, dependents: u32) -> Result<Change, Error> {
    let task = Task {
        dependents,
        ..kept.task.clone()
    };
    Ok(Change {
        when: When::Is(kept.version),
        ..Change::put(keys::task(&task.id), encode(&task)?)
    })
}

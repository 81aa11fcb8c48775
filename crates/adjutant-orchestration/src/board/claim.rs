//! The worker of a task: claiming it, keeping it, giving it back, giving it to another.

use std::{sync::Arc, time::Duration};

use adjutant_agent::kv::{Scan, Version};

use super::{
    Action, Board, Lease, MAX_LEASE, MAX_TRIES, Task, TaskId, TaskStatus, VersionedTask,
    bounds::{check_agent, invalid},
    busy, keys,
    table::step,
};
use crate::{Error, ErrorKind};

/// The number of ready tasks that are read at once.
const WINDOW: usize = 256;

/// The tasks that a claim may be of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Anything,
    /// Only from unowned tasks.
    Pending,
}

impl Board {
    /// Claims a task for an agent, for as long as a lease lasts.
    ///
    /// A second claim of the same agent is a heartbeat. A task with an expired lease can be claimed by any agent, as
    /// a new attempt.
    ///
    /// # Errors
    /// `Taken` if another agent has it (with the rest of its lease as `retry_after`) or it is reserved for one;
    /// `Conflict` if it is blocked or has ended; `Invalid` for a lease of no time or of more than [`MAX_LEASE`];
    /// `Missing`, `Store`.
    pub async fn claim(&self, id: &TaskId, agent: &str, lease: Duration) -> Result<Task, Error> {
        self.claim_of(Of::Anything, id, agent, lease_ms(agent, lease)?)
            .await
    }

    /// Claims the task of the highest priority that is ready for an agent, the oldest of several; `None` if none is.
    ///
    /// Tasks that are reserved for others are not ready. Within about a second, this also finds tasks with expired
    /// leases.
    ///
    /// # Errors
    /// `Invalid` for a lease of no time or of more than [`MAX_LEASE`], `Store`.
    pub async fn claim_next(&self, agent: &str, lease: Duration) -> Result<Option<Task>, Error> {
        let lease_ms = lease_ms(agent, lease)?;
        let mut is_tended = self.tend_sometimes().await?;
        for _ in 0..MAX_TRIES {
            let tried = self.shared.tries();
            let Some(key) = self.candidate(agent).await? else {
                tried.mark_claimed();
                if is_tended || !self.tend_anew().await? {
                    return Ok(None);
                }
                is_tended = true;
                continue;
            };
            let claimed = self
                .claim_of(Of::Pending, &keys::last(&key), agent, lease_ms)
                .await;
            match claimed {
                Ok(task) => {
                    tried.mark_claimed();
                    return Ok(Some(task));
                }
                Err(error) if matches!(error.kind(), ErrorKind::Taken | ErrorKind::Missing) => {
                    tried.mark_claimed()
                }
                // It was cancelled, or there are many concurrent changes: the ready tasks are read again.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::new(
            ErrorKind::Conflict,
            "every ready task is claimed by others just then",
        ))
    }

    /// Renews the lease of a worker's task: it lasts at least this long from now on.
    ///
    /// An expired lease is renewed too, if no other worker has taken the task.
    ///
    /// # Errors
    /// `Conflict` if the agent no longer has the task; `Invalid`, `Missing`, `Store`.
    pub async fn heartbeat(
        &self,
        id: &TaskId,
        agent: &str,
        lease: Duration,
    ) -> Result<Task, Error> {
        let lease_ms = lease_ms(agent, lease)?;
        let edit = |task: &mut Task, now: u64| {
            step(task, Action::Heartbeat)?;
            check_holder(task, agent)?;
            prolong(task, now, lease_ms);
            Ok(())
        };
        self.change(id, edit).await
    }

    /// Releases a task that an agent has, or that is reserved for it: then any agent can claim it.
    ///
    /// # Errors
    /// `Conflict` if the agent no longer has the task; `Missing`, `Store`.
    pub async fn release(&self, id: &TaskId, agent: &str) -> Result<Task, Error> {
        let edit = |task: &mut Task, _| {
            let status = step(task, Action::Release)?;
            if task.status == TaskStatus::InProgress || task.assignee.as_deref() != Some(agent) {
                check_holder(task, agent)?;
            }
            (task.status, task.assignee, task.lease) = (status, None, None);
            Ok(())
        };
        self.change(id, edit).await
    }

    /// Assigns a task to an agent: a pending one is reserved for it, one in progress belongs to it for the rest of
    /// the lease.
    ///
    /// Its previous worker can no longer finish it.
    ///
    /// # Errors
    /// `Conflict` if the task has ended; `Invalid`, `Missing`, `Store`.
    pub async fn reassign(&self, id: &TaskId, to: &str) -> Result<Task, Error> {
        check_agent(to)?;
        let edit = |task: &mut Task, _| {
            task.status = step(task, Action::Reassign)?;
            if let Some(lease) = &mut task.lease {
                lease.holder = to.into();
            }
            task.assignee = Some(to.into());
            Ok(())
        };
        self.change(id, edit).await
    }

    async fn claim_of(
        &self,
        of: Of,
        id: &TaskId,
        agent: &str,
        lease_ms: u64,
    ) -> Result<Task, Error> {
        for _ in 0..MAX_TRIES {
            let kept = self.read(id).await?;
            let mut task = kept.task.clone();
            if of == Of::Pending && task.status != TaskStatus::Pending {
                return Err(unavailable_error(&task, 0));
            }
            take(&mut task, agent, self.world.now_ms(), lease_ms)?;
            if kept.task.waits {
                self.check_unblocked(&kept.task).await?;
                task.waits = false;
            }
            if task == kept.task || self.replace(&kept, &mut task).await? {
                return Ok(task);
            }
        }
        Err(busy(id))
    }

    async fn check_unblocked(&self, task: &Task) -> Result<(), Error> {
        let blockers = self.blockers(task).await?;
        if blockers.is_empty() {
            return Ok(());
        }
        let by: Vec<String> = blockers
            .iter()
            .map(|it| format!("{} ({})", it.id, it.status))
            .collect();
        let message = format!("task {} is blocked by {}", task.id, by.join(", "));
        Err(Error::new(ErrorKind::Conflict, message))
    }

    /// The key of the next task that an agent can try to claim; no other task of this process tries it.
    async fn candidate(&self, agent: &str) -> Result<Option<Arc<str>>, Error> {
        let queue = self
            .kv
            .get(keys::QUEUE)
            .await?
            .map(|item| item.version)
            .unwrap_or_default();
        if let Some(known) = self.pop_from_window(agent, queue) {
            return Ok(known);
        }
        let _alone = self.shared.refill.lock().await;
        if let Some(known) = self.pop_from_window(agent, queue) {
            return Ok(known);
        }
        let prefix = keys::reservation_prefix(agent);
        let (ready, own) = (
            Scan {
                limit: Some(WINDOW),
                ..Scan::prefix(keys::READY)
            },
            Scan {
                limit: Some(1),
                ..Scan::prefix(prefix.as_str())
            },
        );
        let (ready, own) = futures_util::try_join!(self.kv.scan(&ready), self.kv.scan(&own))?;
        let mut window = self.shared.window();
        if !window.is_at(queue) {
            // A newer queue than the one just read is known: the result is valid for one answer only.
            return Ok(own.into_iter().chain(ready).map(|item| item.key).next());
        }
        if window.ready.is_empty() {
            window.is_whole = ready.len() < WINDOW;
            window.ready = ready.into_iter().map(|item| item.key).collect();
        }
        let Some(own) = own.into_iter().next() else {
            window.unreserved.insert(agent.into());
            return Ok(window.ready.pop_front());
        };
        let first = window
            .ready
            .front()
            .and_then(|key| key.strip_prefix(keys::READY));
        let is_first =
            first.is_none_or(|first| own.key.strip_prefix(&prefix).is_none_or(|own| own < first));
        Ok(if is_first {
            Some(own.key)
        } else {
            window.ready.pop_front()
        })
    }

    /// Returns the next task, or that there is none, if that is known without reading. `None` if the store must be
    /// read.
    fn pop_from_window(&self, agent: &str, queue: Version) -> Option<Option<Arc<str>>> {
        let mut window = self.shared.window();
        window.is_at(queue);
        if !window.unreserved.contains(agent) {
            return None;
        }
        match window.ready.pop_front() {
            Some(key) => Some(Some(key)),
            None => window.is_whole.then_some(None),
        }
    }
}

/// Makes a task an agent's.
fn take(task: &mut Task, agent: &str, now: u64, lease_ms: u64) -> Result<(), Error> {
    let status = step(task, Action::Claim)?;
    let reserved = task
        .assignee
        .as_deref()
        .is_some_and(|assignee| assignee != agent);
    match &task.lease {
        Some(lease) if lease.until_ms > now && &*lease.holder == agent => {
            prolong(task, now, lease_ms);
            return Ok(());
        }
        Some(lease) if lease.until_ms > now => return Err(unavailable_error(task, now)),
        Some(lease) => {
            task.last_failure = Some(lease_loss_reason(&lease.holder));
            task.lost = task.lost.saturating_add(1);
        }
        None if reserved => return Err(unavailable_error(task, now)),
        None => {}
    }
    task.status = status;
    task.attempts = task.attempts.saturating_add(1);
    task.assignee = Some(agent.into());
    task.lease = Some(Lease {
        holder: agent.into(),
        until_ms: now.saturating_add(lease_ms),
    });
    Ok(())
}

fn prolong(task: &mut Task, now: u64, lease_ms: u64) {
    if let Some(lease) = &mut task.lease {
        lease.until_ms = lease.until_ms.max(now.saturating_add(lease_ms));
    }
}

/// Returns the reason of an attempt that failed because its worker sent no heartbeat.
pub(super) fn lease_loss_reason(holder: &str) -> Arc<str> {
    format!("its worker {holder} was not heard of until its lease ran out").into()
}

/// Checks that an agent has a task, whether or not its lease has run out.
pub(super) fn check_holder(task: &Task, agent: &str) -> Result<(), Error> {
    if task.is_held_by(agent) {
        return Ok(());
    }
    let now = match &task.lease {
        Some(lease) => format!("{} has it now", lease.holder),
        None => format!("it is {}", task.status),
    };
    let message = format!("task {} does not belong to {agent}: {now}", task.id);
    Err(Error::new(ErrorKind::Conflict, message))
}

fn unavailable_error(task: &Task, now: u64) -> Error {
    let Some(lease) = &task.lease else {
        let whose = task.assignee.as_deref().unwrap_or("another agent");
        return Error::new(
            ErrorKind::Taken,
            format!("task {} is reserved for {whose}", task.id),
        );
    };
    let rest = Duration::from_millis(lease.until_ms.saturating_sub(now));
    let message = format!(
        "task {} is claimed by {} for {rest:?}",
        task.id, lease.holder
    );
    Error::new(ErrorKind::Taken, message).with_retry_after(rest)
}

fn lease_ms(agent: &str, lease: Duration) -> Result<u64, Error> {
    check_agent(agent)?;
    let ms = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
    if ms == 0 || lease > MAX_LEASE {
        return Err(invalid(format!(
            "a lease lasts from 1 ms to {MAX_LEASE:?}, not {lease:?}"
        )));
    }
    Ok(ms)
}

impl VersionedTask {
    /// True if the lease of its worker has run out.
    pub(super) fn is_lapsed(&self, now: u64) -> bool {
        self.task
            .lease
            .as_ref()
            .is_some_and(|lease| lease.until_ms <= now)
    }
}

//! Maintenance that no agent does: expired leases, and dependents that were not notified because a program died.

use adjutant_agent::kv::{Change, Scan};

use super::{Action, Board, Task, TaskId, claim::lease_loss_reason, keys, table::step};
use crate::Error;

/// The interval of checking leases while there are ready tasks, in milliseconds.
const TEND_EVERY_MS: u64 = 1_000;
/// The number of keys that are read at once.
const PAGE: usize = 64;

impl Board {
    /// Handles expired leases, if that was not done recently; returns whether it was done.
    pub(super) async fn tend_sometimes(&self) -> Result<bool, Error> {
        let now = self.world.now_ms();
        let is_due = self
            .shared
            .window()
            .tended_ms
            .is_none_or(|last| now.abs_diff(last) >= TEND_EVERY_MS);
        if is_due {
            self.tend().await.map(|()| true)
        } else {
            Ok(false)
        }
    }

    /// Handles expired leases, unless that was done in this millisecond; returns whether it was done.
    pub(super) async fn tend_anew(&self) -> Result<bool, Error> {
        if self.shared.window().tended_ms == Some(self.world.now_ms()) {
            return Ok(false);
        }
        self.tend().await.map(|()| true)
    }

    /// Takes tasks from workers with expired leases, and notifies the dependents of completed tasks.
    ///
    /// [`claim_next`](Board::claim_next) does this automatically; a supervisor can do it in addition.
    ///
    /// # Errors
    /// `Store`.
    pub async fn tend(&self) -> Result<(), Error> {
        let now = self.world.now_ms();
        self.shared.window().tended_ms = Some(now);
        let settling = self
            .kv
            .scan(&Scan {
                limit: Some(PAGE),
                ..Scan::prefix(keys::SETTLING)
            })
            .await?;
        for item in settling {
            self.settle(&keys::last(&item.key)).await?;
        }
        let mut scan = Scan {
            limit: Some(PAGE),
            ..Scan::prefix(keys::LEASES)
        };
        loop {
            let leases = self.kv.scan(&scan).await?;
            for lease in &leases {
                if keys::end_of(&lease.key).is_some_and(|until| until > now) {
                    return Ok(());
                }
                self.lapse(&keys::last(&lease.key), now).await?;
            }
            match leases.last() {
                Some(last) if leases.len() == PAGE => {
                    scan = Scan {
                        after: Some(last.key.as_ref().into()),
                        ..scan
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    /// Takes a task from its worker, if its lease is still expired.
    async fn lapse(&self, id: &TaskId, now: u64) -> Result<(), Error> {
        while let Some(kept) = self.find(id).await? {
            if !kept.is_lapsed(now) {
                break;
            }
            let mut task = kept.task.clone();
            lose(&mut task, self.max_lost)?;
            if self.replace(&kept, &mut task).await? {
                break;
            }
        }
        Ok(())
    }

    /// Notifies the dependents of a completed task.
    pub(super) async fn settle(&self, id: &TaskId) -> Result<(), Error> {
        self.unblock_dependents(id).await?;
        self.kv
            .write(vec![Change::remove(keys::settling(id))])
            .await?;
        Ok(())
    }
}

/// Takes a task from its worker; a task that was lost too often fails.
fn lose(task: &mut Task, max_lost: u32) -> Result<(), Error> {
    let why = task
        .lease
        .take()
        .map(|lease| lease_loss_reason(&lease.holder));
    task.lost = task.lost.saturating_add(1);
    task.last_failure.clone_from(&why);
    if task.lost < max_lost {
        (task.status, task.assignee) = (step(task, Action::Lapse)?, None);
    } else {
        let why = why.unwrap_or_default();
        task.status = step(task, Action::GiveUp)?;
        task.result = Some(format!("{} workers in a row lost it; {why}", task.lost).into());
    }
    Ok(())
}

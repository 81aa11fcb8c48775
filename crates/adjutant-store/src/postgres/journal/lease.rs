//! The leases of the logs that this program owns: renewed while their values live, released when they are dropped.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use adjutant_core::{Epoch, LogId};
use tokio::{runtime::Handle, sync::watch, time};

use crate::postgres::{database::Database, row::to_i64, wake};

/// The longest time that a request waits for a log that this program is about to release.
const LEAVE: Duration = Duration::from_secs(5);

/// The condition that a log is owned: a lease that is longer than possible was given before the server's clock was
/// set back. An excess of up to the renewal interval may come from a clock that is slowed down.
macro_rules! is_owned {
    () => {
        "(logs.owner is not null and logs.until > clock_timestamp() \
         and logs.until <= clock_timestamp() + logs.lease + logs.lease / 3)"
    };
}
pub(super) use is_owned;

const RENEW: &str = "update logs set until = clock_timestamp() + lease \
    from unnest($1::bigint[], $2::bigint[]) as held (id, epoch) \
    where logs.id = held.id and logs.epoch = held.epoch and logs.owner is not null";

/// Waiters are notified only if there is work: a commit that notifies takes a lock of the whole database.
const LEAVE_LOG: &str = "with given_up as ( \
        update logs set owner = null, until = null where id = $1 and epoch = $2 returning due_ms \
    ) select pg_notify($3, $4) from given_up where due_ms = 0";

/// The leases of this program.
#[derive(Default)]
pub(in crate::postgres) struct Leases {
    held: Mutex<HeldLeases>,
    /// The ownerships that are about to be released: row and epoch, and the name of the log.
    leaving: watch::Sender<BTreeMap<(i64, i64), LogId>>,
}

#[derive(Default)]
struct HeldLeases {
    epochs: HashMap<i64, Epoch>,
    is_renewing: bool,
}

/// An ownership of a log; dropping it releases it.
pub(super) struct Lease {
    pub(super) database: Arc<Database>,
    pub(super) log: LogId,
    /// The number of the log's row.
    pub(super) row: i64,
    pub(super) epoch: Epoch,
    runtime: Handle,
}

impl Leases {
    /// Waits with a timeout until this program has released a log that it is about to release.
    pub(super) async fn wait_for_release(&self, log: &LogId) {
        let mut leaving = self.leaving.subscribe();
        let left = leaving.wait_for(|leaving| leaving.values().all(|leaving| leaving != log));
        // A caller that has waited too long gets the owner of the log.
        let _ = time::timeout(LEAVE, left).await;
    }

    /// The ownerships that this program is about to release: row and epoch. Names are not sufficient: a log can be
    /// renamed and owned again in the meantime.
    pub(super) fn leaving(&self) -> BTreeSet<(i64, i64)> {
        self.leaving.borrow().keys().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HeldLeases> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    /// An ownership that the database has just given.
    pub(super) fn new(database: &Arc<Database>, log: &LogId, row: i64, epoch: Epoch) -> Self {
        let mut held = database.leases.lock();
        held.epochs.insert(row, epoch);
        if !held.is_renewing {
            held.is_renewing = true;
            tokio::spawn(renew(
                Arc::downgrade(database),
                Stopped(Arc::downgrade(database)),
                database.lease / 3,
            ));
        }
        drop(held);
        Self {
            database: Arc::clone(database),
            log: log.clone(),
            row,
            epoch,
            runtime: Handle::current(),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let leases = &self.database.leases;
        let mut held = leases.lock();
        if held.epochs.get(&self.row) == Some(&self.epoch) {
            held.epochs.remove(&self.row);
        }
        drop(held);
        let (row, epoch) = (self.row, to_i64(self.epoch.0));
        leases.leaving.send_modify(|leaving| {
            leaving.insert((row, epoch), self.log.clone());
        });
        let (database, log) = (Arc::clone(&self.database), self.log.clone());
        let left = GiveUpGuard {
            database,
            ownership: (row, epoch),
        };
        // Without a runtime the lease is not renewed either.
        self.runtime.spawn(async move {
            if let Err(error) =
                left.database.execute(LEAVE_LOG, &[&row, &epoch, &left.database.channel(), &wake::DUE]).await
            {
                tracing::warn!(%error, %log, "a log cannot be given up; it is free when its lease ends");
            }
        });
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("log", &self.log)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

/// Signals that a log has been released, also if the runtime ends before.
struct GiveUpGuard {
    database: Arc<Database>,
    ownership: (i64, i64),
}

impl Drop for GiveUpGuard {
    fn drop(&mut self) {
        self.database.leases.leaving.send_modify(|leaving| {
            leaving.remove(&self.ownership);
        });
    }
}

/// The next log that is owned makes another renewal, if the runtime of this one ended.
struct Stopped(Weak<Database>);

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Some(database) = self.0.upgrade() {
            database.leases.lock().is_renewing = false;
        }
    }
}

/// Renews all leases time and again while there are some.
async fn renew(database: Weak<Database>, mut stopped: Stopped, every: Duration) {
    loop {
        time::sleep(every).await;
        let Some(database) = database.upgrade() else {
            return;
        };
        let (rows, epochs): (Vec<i64>, Vec<i64>) = {
            let mut held = database.leases.lock();
            held.is_renewing = !held.epochs.is_empty();
            held.epochs
                .iter()
                .map(|(row, epoch)| (row, to_i64(epoch.0)))
                .unzip()
        };
        if rows.is_empty() {
            // It has already been signalled, and another release may have started since.
            stopped.0 = Weak::new();
            return;
        }
        if let Err(error) = database.execute(RENEW, &[&rows, &epochs]).await {
            tracing::warn!(%error, logs = rows.len(), "the leases of logs cannot be renewed");
        }
    }
}

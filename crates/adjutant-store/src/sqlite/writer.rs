//! The single writer thread: waiting jobs are committed as a group, and each one succeeds or fails alone.

use std::sync::{Arc, mpsc::Receiver};

use adjutant_core::Flush;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{
    changes::{Changes, Topic},
    fault::Fault,
    owners::Owners,
};

/// The largest number of jobs that are committed as one transaction.
const MAX_GROUP: usize = 256;
/// The number of bytes at which a group accepts no more jobs.
const MAX_GROUP_BYTES: usize = 8 * 1024 * 1024;

/// The terms on which a job is done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    pub(super) flush: Flush,
    /// About how many bytes it writes.
    pub(super) bytes: usize,
    /// The topic that it changes, if it can be watched.
    pub(super) topic: Option<Topic>,
}

/// Something to be done in a transaction.
pub(super) trait Job: Send {
    fn order(&self) -> Order;

    /// Does it; whether it is to be kept. Again if the transaction was lost.
    fn run(&mut self, db: &Connection) -> bool;

    /// It is over; with a fault if the transaction was lost.
    fn finish(self: Box<Self>, lost: Option<&Fault>);
}

/// A job with an answer.
pub(super) struct Request<W, A, N, T> {
    pub(super) order: Order,
    pub(super) work: W,
    /// The result of the work, before it is committed.
    pub(super) done: Option<Result<A, Fault>>,
    /// Makes the answer of it, once it is committed.
    pub(super) then: N,
    pub(super) reply: oneshot::Sender<Result<T, Fault>>,
}

/// The state of the writer thread.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) db: Connection,
    pub(super) changes: Arc<Changes>,
    /// Dropped last: its logs become free when the thread ends.
    pub(super) _owners: Arc<Owners>,
    /// The way in which commits are flushed now.
    pub(super) flush: Option<Flush>,
}

/// The reason why a group is not committed.
enum Lost {
    /// It did not begin.
    Whole(Fault),
    /// One of its jobs, or the commit, broke it.
    Together(Fault),
}

impl<W, A, N, T> Job for Request<W, A, N, T>
where
    W: FnMut(&Connection) -> Result<A, Fault> + Send,
    A: Send,
    N: FnOnce(A) -> T + Send,
    T: Send,
{
    fn order(&self) -> Order {
        self.order
    }

    fn run(&mut self, db: &Connection) -> bool {
        let done = (self.work)(db);
        self.done.insert(done).is_ok()
    }

    fn finish(self: Box<Self>, lost: Option<&Fault>) {
        let Self {
            done, then, reply, ..
        } = *self;
        let done = match (done, lost) {
            (Some(Err(fault)), _) => Err(fault),
            (_, Some(fault)) => Err(fault.clone()),
            (Some(Ok(done)), None) => Ok(done),
            (None, None) => Err(Fault::Gone),
        };
        // The caller may be gone: its write stays committed, and its new ownership is released.
        let _ = reply.send(done.map(then));
    }
}

impl Writer {
    /// Works until all senders of jobs are gone.
    pub(super) fn run(mut self, queue: &Receiver<Box<dyn Job>>) {
        while let Ok(first) = queue.recv() {
            let mut bytes = first.order().bytes;
            let mut group = vec![first];
            while group.len() < MAX_GROUP && bytes < MAX_GROUP_BYTES {
                let Ok(job) = queue.try_recv() else { break };
                bytes = bytes.saturating_add(job.order().bytes);
                group.push(job);
            }
            self.commit(group);
        }
    }

    fn commit(&mut self, mut group: Vec<Box<dyn Job>>) {
        match self.attempt(&mut group) {
            Ok(kept) => {
                for (job, is_kept) in group.into_iter().zip(kept) {
                    let topic = job.order().topic.filter(|_| is_kept);
                    job.finish(None);
                    topic.into_iter().for_each(|topic| self.changes.tell(topic));
                }
            }
            Err(Lost::Together(_)) if group.len() > 1 => {
                group.into_iter().for_each(|job| self.commit(vec![job]))
            }
            Err(Lost::Whole(fault) | Lost::Together(fault)) => {
                group.into_iter().for_each(|job| job.finish(Some(&fault)));
            }
        }
    }

    /// Does the jobs in one transaction; which of them were kept.
    fn attempt(&mut self, group: &mut [Box<dyn Job>]) -> Result<Vec<bool>, Lost> {
        self.begin(group)
            .map_err(|error| Lost::Whole(error.into()))?;
        let done = self.each(group);
        if done.is_err() && !self.db.is_autocommit() {
            // If this fails too, the next transaction fails and returns the reason.
            let _ = self.db.execute_batch("ROLLBACK");
        }
        done
    }

    fn begin(&mut self, group: &[Box<dyn Job>]) -> rusqlite::Result<()> {
        let is_now = group.iter().any(|job| job.order().flush == Flush::Now);
        let (flush, sql) = if is_now {
            (Flush::Now, "PRAGMA synchronous=FULL")
        } else {
            (Flush::Lazy, "PRAGMA synchronous=NORMAL")
        };
        if self.flush != Some(flush) {
            self.db.execute_batch(sql)?;
            self.flush = Some(flush);
        }
        self.db
            .prepare_cached("BEGIN IMMEDIATE")?
            .execute([])
            .map(drop)
    }

    fn each(&self, group: &mut [Box<dyn Job>]) -> Result<Vec<bool>, Lost> {
        let db = &self.db;
        let lost = |error: rusqlite::Error| Lost::Together(error.into());
        let run = |sql: &str| db.prepare_cached(sql)?.execute([]).map(drop);
        let is_alone = group.len() == 1;
        let mut kept = Vec::with_capacity(group.len());
        for job in group {
            if !is_alone {
                run("SAVEPOINT job").map_err(lost)?;
            }
            let is_kept = job.run(db);
            kept.push(is_kept);
            if db.is_autocommit() {
                // SQLite rolled the whole transaction back, as for a full disk.
                return if is_alone {
                    Ok(kept)
                } else {
                    Err(Lost::Together(Fault::Gone))
                };
            }
            match (is_alone, is_kept) {
                (true, true) => {}
                (true, false) => return run("ROLLBACK").map(|()| kept).map_err(lost),
                (false, true) => run("RELEASE job").map_err(lost)?,
                (false, false) => run("ROLLBACK TO job")
                    .and_then(|()| run("RELEASE job"))
                    .map_err(lost)?,
            }
        }
        run("COMMIT").map_err(lost)?;
        Ok(kept)
    }
}

//! The parts that journal, key-value stores and memory share: one writer, a few readers, the owners of logs, and the
//! watchers of changes.

use std::{
    fmt,
    path::Path,
    sync::{
        Arc,
        mpsc::{self, Sender},
    },
    thread,
};

use adjutant_core::Flush;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{
    changes::Changes,
    fault::Fault,
    owners::Owners,
    readers::Readers,
    schema::{self, DatabaseLocation, Reading},
    writer::{Job, Order, Request, Writer},
};

/// An open database.
pub(super) struct Store {
    /// `None` if the database is read-only.
    queue: Option<Sender<Box<dyn Job>>>,
    /// None in memory, where the writer reads too.
    readers: Option<Readers>,
    pub(super) owners: Arc<Owners>,
    pub(super) changes: Arc<Changes>,
}

impl Store {
    /// Opens a database and starts its writer, if it can be written.
    pub(super) fn open(place: DatabaseLocation) -> Result<Self, Fault> {
        let (db, reading) = schema::open(&place)?;
        let path = match &place {
            // Two names of one file must have one folder of owners.
            DatabaseLocation::File(path) => Some(std::fs::canonicalize(path)?),
            DatabaseLocation::Memory => None,
        };
        let owners = Arc::new(Owners::beside(path.as_deref()));
        // A read-only database does not change, so it is not watched.
        let watched = path.as_deref().filter(|_| reading == Reading::Shared);
        let changes = Arc::new(Changes::from_path(watched.map(Path::to_owned)));
        let start = |db| {
            let (queue, jobs) = mpsc::channel();
            let writer = Writer {
                db,
                changes: Arc::clone(&changes),
                _owners: Arc::clone(&owners),
                flush: None,
            };
            let started = thread::Builder::new()
                .name("sqlite-writer".into())
                .spawn(move || writer.run(&jobs));
            started.map(|_| queue)
        };
        let queue = db.map(start).transpose()?;
        Ok(Self {
            queue,
            readers: path.map(|path| Readers::from_path(path, reading)),
            owners,
            changes,
        })
    }

    /// True if it can only be read.
    pub(super) fn is_read_only(&self) -> bool {
        self.queue.is_none()
    }

    /// Runs some work in a transaction: completely or not at all.
    ///
    /// The work can run twice if the transaction was lost to a conflict; it runs even if its future is dropped.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        order: Order,
        work: impl FnMut(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        self.write_then(order, work, |done| done).await
    }

    /// Does something in a transaction, and makes the answer of it once it is committed.
    pub(super) async fn write_then<A: Send + 'static, T: Send + 'static>(
        &self,
        order: Order,
        work: impl FnMut(&Connection) -> Result<A, Fault> + Send + 'static,
        then: impl FnOnce(A) -> T + Send + 'static,
    ) -> Result<T, Fault> {
        let (reply, answer) = oneshot::channel();
        let request = Request {
            order,
            work,
            done: None,
            then,
            reply,
        };
        let queue = self.queue.as_ref().ok_or(Fault::ReadOnly)?;
        queue.send(Box::new(request)).map_err(|_| Fault::Gone)?;
        answer.await.unwrap_or(Err(Fault::Gone))
    }

    /// Does something some time soon; whether it succeeds is of no consequence.
    pub(super) fn send(&self, work: impl FnMut(&Connection) -> Result<(), Fault> + Send + 'static) {
        let (reply, _) = oneshot::channel();
        let request = Request {
            order: Order::lazy(),
            work,
            done: None,
            then: |done| done,
            reply,
        };
        // Without a writer the result does not matter.
        let _ = self
            .queue
            .as_ref()
            .map(|queue| queue.send(Box::new(request)));
    }

    /// Reads a consistent snapshot.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        match &self.readers {
            Some(readers) => readers.read(work).await,
            None => self.write(Order::lazy(), work).await,
        }
    }
}

impl Order {
    /// Returns the order for a write that survives a crash of the program.
    pub(super) fn lazy() -> Self {
        Self {
            flush: Flush::Lazy,
            bytes: 0,
            topic: None,
        }
    }

    /// Returns the order for a write that survives a crash of the machine.
    pub(super) fn now() -> Self {
        Self {
            flush: Flush::Now,
            ..Self::lazy()
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("readers", &self.readers)
            .field("owners", &self.owners)
            .finish_non_exhaustive()
    }
}

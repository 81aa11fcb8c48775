//! A few connections that only read, each used by one blocking task at a time.

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use rusqlite::Connection;
use tokio::{sync::Semaphore, task::spawn_blocking};

use super::{
    fault::Fault,
    schema::{self, Reading},
};

/// The largest number of concurrent reads.
const MAX_READERS: usize = 4;

/// Connections that read; clones share them.
#[derive(Clone)]
pub(super) struct Readers {
    path: Arc<PathBuf>,
    reading: Reading,
    idle: Arc<Mutex<Vec<Connection>>>,
    free: Arc<Semaphore>,
}

impl Readers {
    /// Readers of a database file; they open it when they are needed.
    pub(super) fn from_path(path: PathBuf, reading: Reading) -> Self {
        let free = Arc::new(Semaphore::new(MAX_READERS));
        Self {
            path: Arc::new(path),
            reading,
            idle: Arc::default(),
            free,
        }
    }

    /// Reads a consistent snapshot.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let permit = Arc::clone(&self.free)
            .acquire_owned()
            .await
            .map_err(|_| Fault::Gone)?;
        let readers = self.clone();
        let read = spawn_blocking(move || {
            let done = readers.read_here(work);
            drop(permit);
            done
        });
        read.await.unwrap_or(Err(Fault::Gone))
    }

    fn read_here<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, Fault> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let known = idle().pop();
        let db = match known {
            Some(db) => db,
            None => schema::reader(&self.path, self.reading)?,
        };
        db.prepare_cached("BEGIN")?.execute([])?;
        let done = work(&db);
        // A connection that cannot even end its transaction is not used again.
        if db
            .prepare_cached("ROLLBACK")
            .and_then(|mut rollback| rollback.execute([]))
            .is_ok()
        {
            idle().push(db);
        }
        done
    }
}

impl fmt::Debug for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readers")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

//! Sessions, key-value stores and memory in one SQLite file: the store of a program without a database server.

mod changes;
mod fault;
mod journal;
mod json;
mod kv;
mod memory;
mod number;
mod owners;
mod readers;
mod schema;
mod store;
#[cfg(test)]
mod tests;
mod words;
mod writer;

use std::{path::Path, sync::Arc};

use adjutant_core::JournalError;
use adjutant_llm::{SystemWorld, World};

pub use self::{journal::SqliteJournal, kv::SqliteKvStore, memory::SqliteMemory};
use self::{schema::DatabaseLocation, store::Store};
use crate::Exposed;

/// A database of sessions, key-value stores and memory; clones share its one writer and its few readers.
///
/// Everything that is written goes through one thread, which commits what waits as one transaction: many sessions share
/// the price of a flush, and none fails with another. Reads go beside it, on connections of their own. Several programs
/// may have one file open; a log belongs to one of them at a time, until it lets go of it or ends in whatever way: who
/// owns what is told by locks that the kernel keeps, on files in the folder `<file>-owners`.
///
/// `Flush::Lazy` is in the file when the call returns, as the operating system sees it: it survives a crash of the
/// program. `Flush::Now` waits until the disk has it, with all that came before: it survives a crash of the machine.
/// Key-value stores and memory always write so. The file must not be on a network's file system.
#[derive(Debug, Clone)]
pub struct Sqlite {
    store: Arc<Store>,
    world: Arc<dyn World>,
    exposed: Option<Arc<Exposed>>,
}

impl Sqlite {
    /// Opens a database file, makes it if there is none, and brings an older one up to date. What is made is its owner's
    /// alone.
    ///
    /// A database that cannot be written, because of its medium or its permissions, is opened to be read: writing fails as
    /// `ReadOnly` then. Blocks for as long as that takes: milliseconds for a file of this version.
    ///
    /// # Errors
    /// `Corrupt` if the file is damaged or no database, `Version` if a newer program wrote it, `Invalid` if it belongs to
    /// another program, `Io` if it cannot be opened or made.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, JournalError> {
        let path = path.as_ref();
        let opened = DatabaseLocation::file(path).and_then(Store::open);
        let store =
            opened.map_err(|fault| fault.journal(|| format!("cannot open database {path:?}")))?;
        let beside = ["", "-wal", "-shm", "-owners"].map(|end| schema::beside(path, end));
        // A database that cannot be written cannot be made private either.
        let exposed = if store.is_read_only() {
            None
        } else {
            Exposed::among(beside)
        };
        Ok(Self {
            exposed: exposed.map(Arc::new),
            ..Self::of(store)
        })
    }

    /// A database that lives as long as its handles.
    ///
    /// # Errors
    /// `Io` if there is no memory or no thread for it.
    pub fn in_memory() -> Result<Self, JournalError> {
        let opened = Store::open(DatabaseLocation::Memory);
        let store = opened
            .map_err(|fault| fault.journal(|| "cannot open a database in memory".to_owned()))?;
        Ok(Self::of(store))
    }

    /// Sets the clock that tells when a log was made and a value changed.
    #[must_use]
    pub fn world(self, world: impl World + 'static) -> Self {
        Self {
            world: Arc::new(world),
            ..self
        }
    }

    /// Returns its files that were there before and that others on the machine may enter, if there are any.
    pub fn exposed(&self) -> Option<&Exposed> {
        self.exposed.as_deref()
    }

    /// Its sessions.
    pub fn journal(&self) -> SqliteJournal {
        SqliteJournal {
            store: Arc::clone(&self.store),
            world: Arc::clone(&self.world),
        }
    }

    /// One of its key-value stores, by any name; it is made by the first write.
    pub fn kv(&self, name: impl Into<Arc<str>>) -> SqliteKvStore {
        SqliteKvStore {
            store: Arc::clone(&self.store),
            world: Arc::clone(&self.world),
            name: name.into(),
        }
    }

    /// Its memory.
    pub fn memory(&self) -> SqliteMemory {
        SqliteMemory {
            store: Arc::clone(&self.store),
        }
    }

    fn of(store: Store) -> Self {
        Self {
            store: Arc::new(store),
            world: Arc::new(SystemWorld),
            exposed: None,
        }
    }
}

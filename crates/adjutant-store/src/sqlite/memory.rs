//! Memory in SQLite: each method calls one of the parts below, off the caller's thread.

mod facts;
mod find;
mod limits;
mod marks;
mod vectors;

use std::sync::Arc;

use adjutant_core::memory::{
    Fact, FactChange, FactId, Memory, MemoryError, MemoryErrorKind, NewFact, OwnerId, ScoredFact,
    Vector,
};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension};

use super::{fault::Fault, store::Store, writer::Order};

/// The memory of a database; clones share it.
#[derive(Debug, Clone)]
pub struct SqliteMemory {
    pub(super) store: Arc<Store>,
}

#[async_trait]
impl Memory for SqliteMemory {
    async fn add(&self, owner: &OwnerId, facts: Vec<NewFact>) -> Result<(), MemoryError> {
        let failed = |fault: Fault| fault.memory(|| format!("cannot add facts of {:?}", owner.0));
        limits::check_owner(owner).map_err(failed)?;
        let rows: Vec<_> = facts
            .into_iter()
            .map(facts::FactRow::from_fact)
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        let name = owner.clone();
        self.store
            .write(Order::now(), move |db| facts::add(db, &name, &rows))
            .await
            .map_err(failed)
    }

    async fn get(&self, owner: &OwnerId, id: &FactId) -> Result<Option<Fact>, MemoryError> {
        let id = id.clone();
        self.read(owner, "read a fact", move |db, owner| {
            find::get(db, owner, &id)
        })
        .await
    }

    async fn update(
        &self,
        owner: &OwnerId,
        id: &FactId,
        change: FactChange,
    ) -> Result<Fact, MemoryError> {
        let failed = |fault: Fault| {
            fault.memory(|| format!("cannot change fact {:?} of {:?}", id.0, owner.0))
        };
        limits::check_owner(owner)
            .and_then(|()| limits::check_change(&change))
            .map_err(failed)?;
        let (name, fact) = (owner.clone(), id.clone());
        let done = self.store.write(Order::now(), move |db| {
            let key = key_of(db, &name)?.ok_or_else(|| missing(&name, &fact))?;
            facts::update(db, key, &fact, &change)?.ok_or_else(|| missing(&name, &fact))
        });
        done.await.map_err(failed)
    }

    async fn delete(&self, owner: &OwnerId, id: &FactId) -> Result<(), MemoryError> {
        let failed = |fault: Fault| {
            fault.memory(|| format!("cannot delete fact {:?} of {:?}", id.0, owner.0))
        };
        limits::check_owner(owner).map_err(failed)?;
        let (name, fact) = (owner.clone(), id.clone());
        let done = self.store.write(Order::now(), move |db| {
            let key = key_of(db, &name)?.ok_or_else(|| missing(&name, &fact))?;
            if facts::delete(db, key, &fact)? {
                Ok(())
            } else {
                Err(missing(&name, &fact))
            }
        });
        done.await.map_err(failed)
    }

    async fn list(
        &self,
        owner: &OwnerId,
        after: Option<&FactId>,
        limit: usize,
    ) -> Result<Vec<Fact>, MemoryError> {
        let after = after.cloned();
        self.read(owner, "list facts", move |db, owner| {
            find::list(db, owner, after.as_ref(), limit)
        })
        .await
    }

    async fn by_words(
        &self,
        owner: &OwnerId,
        query: &str,
        limit: usize,
    ) -> Result<Vec<ScoredFact>, MemoryError> {
        let query = query.to_owned();
        self.read(owner, "search facts", move |db, owner| {
            find::by_words(db, owner, &query, limit)
        })
        .await
    }

    async fn by_vector(
        &self,
        owner: &OwnerId,
        vector: &Vector,
        limit: usize,
    ) -> Result<Vec<ScoredFact>, MemoryError> {
        let failed =
            |fault: Fault| fault.memory(|| format!("cannot search facts of {:?}", owner.0));
        limits::check_vector(vector).map_err(failed)?;
        let vector = vector.clone();
        self.read(owner, "search facts", move |db, owner| {
            vectors::nearest(db, owner, &vector, limit)
        })
        .await
    }

    async fn read_mark(&self, owner: &OwnerId, source: &str) -> Result<u64, MemoryError> {
        let source = source.to_owned();
        self.read(owner, "read a mark", move |db, owner| {
            marks::read_mark(db, owner, &source)
        })
        .await
    }

    async fn mark(
        &self,
        owner: &OwnerId,
        source: &str,
        from: u64,
        to: u64,
    ) -> Result<bool, MemoryError> {
        let failed =
            |fault: Fault| fault.memory(|| format!("cannot mark {source:?} for {:?}", owner.0));
        limits::check_owner(owner)
            .and_then(|()| limits::check_source(source))
            .map_err(failed)?;
        let (name, source) = (owner.clone(), source.to_owned());
        let done = self.store.write(Order::now(), move |db| {
            let owner = facts::owner(db, &name)?;
            marks::mark(db, owner, &source, from, to)
        });
        done.await.map_err(failed)
    }
}

impl SqliteMemory {
    /// Reads what one owner has; nothing if it never had anything.
    async fn read<T: Default + Send + 'static>(
        &self,
        owner: &OwnerId,
        attempt: &str,
        mut work: impl FnMut(&Connection, i64) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, MemoryError> {
        let failed = |fault: Fault| fault.memory(|| format!("cannot {attempt} of {:?}", owner.0));
        limits::check_owner(owner).map_err(failed)?;
        let name = owner.clone();
        let read = self.store.read(move |db| match key_of(db, &name)? {
            Some(owner) => work(db, owner),
            None => Ok(T::default()),
        });
        read.await.map_err(failed)
    }
}

fn key_of(db: &Connection, owner: &OwnerId) -> Result<Option<i64>, Fault> {
    let mut select = db.prepare_cached("SELECT key FROM owners WHERE name = ?1")?;
    Ok(select.query_row([&*owner.0], |row| row.get(0)).optional()?)
}

fn missing(owner: &OwnerId, id: &FactId) -> Fault {
    let message = format!("{:?} has no fact {:?}", owner.0, id.0);
    MemoryError::new(MemoryErrorKind::Missing, message).into()
}

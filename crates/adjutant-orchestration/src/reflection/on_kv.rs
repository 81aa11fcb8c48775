//! Reflections on a key-value store. Not over `Memory`: its facts have no versions, so that two writers would lose
//! counts.

use std::sync::Arc;

use adjutant_agent::kv::{self, Item, KvStore, KvStoreErrorKind, Scan, When};
use async_trait::async_trait;

use super::{Listing, Reflection, ReflectionChange, ReflectionId, ReflectionStore, name};
use crate::{Error, ErrorKind};

/// The prefix of the keys of reflections.
const PREFIX: &str = "reflection/";
/// The largest number of times that a change is tried while others are faster.
const TRIES: usize = 100;

/// Reflections on a key-value store; processes that share the key-value store share them.
#[derive(Debug, Clone)]
pub struct OnKvStore {
    kv: Arc<dyn KvStore>,
}

impl OnKvStore {
    /// The reflections on this key-value store, which can contain other data.
    pub fn new(kv: Arc<dyn KvStore>) -> Self {
        Self { kv }
    }
}

#[async_trait]
impl ReflectionStore for OnKvStore {
    async fn all(&self) -> Result<Listing, Error> {
        let items = self.kv.scan(&Scan::prefix(PREFIX)).await?;
        let (mut reflections, mut skipped) = (Vec::new(), Vec::new());
        for item in &items {
            match read(item) {
                Ok(reflection) => reflections.push(reflection),
                Err(why) => skipped.push(why.message().into()),
            }
        }
        Ok(Listing::new(reflections, skipped))
    }

    async fn add(&self, reflection: &Reflection) -> Result<ReflectionId, Error> {
        key(&reflection.id).ok_or_else(|| no_name(&reflection.id))?;
        for id in name::candidates(&reflection.id) {
            let reflection = Reflection {
                id: id.clone(),
                ..reflection.clone()
            };
            match self.put(&reflection, When::Absent).await {
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                other => return other.map(|()| id),
            }
        }
        Err(full(&reflection.id))
    }

    async fn change(&self, id: &ReflectionId, change: ReflectionChange) -> Result<bool, Error> {
        let Some(key) = key(id) else { return Ok(false) };
        for _ in 0..TRIES {
            let Some(item) = self.kv.get(&key).await? else {
                return Ok(false);
            };
            let when = When::Is(item.version);
            let done = match change {
                ReflectionChange::Count(outcome) => {
                    let mut reflection = read(&item)?;
                    reflection.tally.count(outcome);
                    self.put(&reflection, when).await
                }
                ReflectionChange::Remove => {
                    self.write(kv::Change {
                        when,
                        ..kv::Change::remove(&*key)
                    })
                    .await
                }
            };
            match done {
                Err(error) if error.kind() == ErrorKind::Conflict => tokio::task::yield_now().await,
                other => return other.map(|()| true),
            }
        }
        Err(Error::new(
            ErrorKind::Conflict,
            format!("reflection {id} was always changed by someone else first"),
        ))
    }
}

impl OnKvStore {
    async fn put(&self, reflection: &Reflection, when: When) -> Result<(), Error> {
        let value = serde_json::to_value(reflection).map_err(|error| {
            Error::new(
                ErrorKind::Invalid,
                format!("reflection {} cannot be written", reflection.id),
            )
            .with_source(error)
        })?;
        self.write(kv::Change {
            when,
            ..kv::Change::put(format!("{PREFIX}{}", reflection.id), value)
        })
        .await
    }

    async fn write(&self, change: kv::Change) -> Result<(), Error> {
        match self.kv.write(vec![change]).await {
            Err(error) if matches!(error.kind, KvStoreErrorKind::Conflict { .. }) => {
                Err(Error::new(ErrorKind::Conflict, "another writer was faster").with_source(error))
            }
            other => other.map(drop).map_err(Error::from),
        }
    }
}

fn key(id: &ReflectionId) -> Option<String> {
    name::stamp(&id.0).map(|_| format!("{PREFIX}{id}"))
}

fn read(item: &Item) -> Result<Reflection, Error> {
    let read = serde_json::from_value::<Reflection>(item.value.clone());
    let reflection = read.map_err(|error| {
        Error::new(
            ErrorKind::Store,
            format!("key {:?} holds no reflection", item.key),
        )
        .with_source(error)
    })?;
    if item.key.strip_prefix(PREFIX) == Some(&*reflection.id.0)
        && name::stamp(&reflection.id.0).is_some()
    {
        return Ok(reflection);
    }
    Err(Error::new(
        ErrorKind::Store,
        format!("key {:?} holds a reflection of another name", item.key),
    ))
}

pub(super) fn no_name(id: &ReflectionId) -> Error {
    Error::new(
        ErrorKind::Invalid,
        format!(
            "this is no name for a reflection: {:?}",
            crate::text::cut(&id.0, 100)
        ),
    )
}

pub(super) fn full(id: &ReflectionId) -> Error {
    Error::new(
        ErrorKind::Full,
        format!("there are too many reflections of one second: {id}"),
    )
}

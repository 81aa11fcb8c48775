//! Key-value stores in SQLite: each method calls one of the parts below, off the caller's thread.

mod find;
mod watch;
mod write;

use std::{collections::HashSet, sync::Arc};

use adjutant_core::kv::{
    Change, ChangeStream, Hit, Item, KvStore, KvStoreError, MAX_KEY_BYTES, MAX_VALUE_BYTES,
    MAX_WRITE, Scan, Version,
};
use adjutant_llm::World;
use async_trait::async_trait;

use super::{changes::Topic, fault::Fault, json, store::Store, writer::Order};

/// A key-value store of a database; clones share it.
#[derive(Debug, Clone)]
pub struct SqliteKvStore {
    pub(super) store: Arc<Store>,
    pub(super) world: Arc<dyn World>,
    pub(super) name: Arc<str>,
}

#[async_trait]
impl KvStore for SqliteKvStore {
    async fn get(&self, key: &str) -> Result<Option<Item>, KvStoreError> {
        let failed = |fault: Fault| {
            fault.kv(|| format!("cannot read key {key:?} of key-value store {:?}", self.name))
        };
        check_key(key).map_err(failed)?;
        let (kv, wanted) = (Arc::clone(&self.name), key.to_owned());
        self.store
            .read(move |db| find::get(db, &kv, &wanted))
            .await
            .map_err(failed)
    }

    async fn write(&self, changes: Vec<Change>) -> Result<Version, KvStoreError> {
        let failed =
            |fault: Fault| fault.kv(|| format!("cannot write to key-value store {:?}", self.name));
        let rows = rows(changes).map_err(failed)?;
        let bytes = rows
            .iter()
            .filter_map(|row| row.put.as_ref())
            .map(|put| put.json.len() + put.text.len())
            .sum();
        let order = Order {
            bytes,
            topic: Some(Topic::KvStores),
            ..Order::now()
        };
        let (kv, now_ms) = (Arc::clone(&self.name), self.world.now_ms());
        self.store
            .write(order, move |db| write::write(db, &kv, &rows, now_ms))
            .await
            .map_err(failed)
    }

    async fn scan(&self, scan: &Scan) -> Result<Vec<Item>, KvStoreError> {
        let (kv, scan) = (Arc::clone(&self.name), scan.clone());
        let read = self.store.read(move |db| find::scan(db, &kv, &scan)).await;
        read.map_err(|fault| fault.kv(|| format!("cannot scan key-value store {:?}", self.name)))
    }

    async fn newest(&self) -> Result<Version, KvStoreError> {
        let kv = Arc::clone(&self.name);
        let read = self.store.read(move |db| find::newest(db, &kv)).await;
        read.map_err(|fault| {
            fault.kv(|| format!("cannot read the version of key-value store {:?}", self.name))
        })
    }

    fn watch(&self, prefix: &str, after: Version) -> ChangeStream {
        watch::stream(
            Arc::clone(&self.store),
            Arc::clone(&self.name),
            prefix,
            after,
        )
    }

    async fn search(
        &self,
        prefix: &str,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Hit>, KvStoreError> {
        let (kv, prefix, query) = (Arc::clone(&self.name), prefix.to_owned(), query.to_owned());
        let read = self
            .store
            .read(move |db| find::search(db, &kv, &prefix, &query, limit))
            .await;
        read.map_err(|fault| fault.kv(|| format!("cannot search key-value store {:?}", self.name)))
    }
}

/// Changes as they are kept, if they may be made together.
fn rows(changes: Vec<Change>) -> Result<Vec<write::ChangeRow>, Fault> {
    if changes.len() > MAX_WRITE {
        return Err(Fault::Invalid(format!(
            "{} changes; it may have {MAX_WRITE}",
            changes.len()
        )));
    }
    let mut keys = HashSet::with_capacity(changes.len());
    let mut rows = Vec::with_capacity(changes.len());
    for Change { key, when, put, .. } in changes {
        check_key(&key)?;
        if !keys.insert(Arc::clone(&key)) {
            return Err(Fault::Invalid(format!("key {key:?} appears twice")));
        }
        let put = put.map(|(value, text)| -> Result<_, Fault> {
            let json = json::write(&value, "the value")?;
            let bytes = json.len() + text.len();
            if bytes > MAX_VALUE_BYTES {
                return Err(Fault::Invalid(format!(
                    "the value of key {key:?} has {bytes} bytes; it may have {MAX_VALUE_BYTES}"
                )));
            }
            Ok(write::Put { json, text })
        });
        rows.push(write::ChangeRow {
            put: put.transpose()?,
            key,
            when,
        });
    }
    Ok(rows)
}

fn check_key(key: &str) -> Result<(), Fault> {
    match key.len() {
        0 => Err(Fault::Invalid("a key needs a name".into())),
        bytes if bytes > MAX_KEY_BYTES => Err(Fault::Invalid(format!(
            "a key has {bytes} bytes; it may have {MAX_KEY_BYTES}"
        ))),
        _ => Ok(()),
    }
}

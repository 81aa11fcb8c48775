//! The changes of keys, as they happen.

use std::{collections::VecDeque, sync::Arc};

use adjutant_core::kv::{ChangeStream, Changed, KvStoreError, Version};
use futures_util::stream;
use rusqlite::{Connection, params};

use super::{
    super::{
        changes::{Listener, POLL, Topic},
        fault::Fault,
        number,
        store::Store,
    },
    find,
};

/// The largest number of changes that are read at once.
const PAGE: i64 = 100;

/// A watch of a key-value store, with the position of the last reported change.
struct Watch {
    store: Arc<Store>,
    kv: Arc<str>,
    prefix: Arc<str>,
    /// The last reported version, and the last reported key of its write.
    told: (Version, Vec<u8>),
    waiting: VecDeque<Changed>,
    listener: Listener,
    /// True if the last look failed, so that the next one is not at once.
    is_failing: bool,
}

/// The changes after a version, as they come.
pub(super) fn stream(
    store: Arc<Store>,
    kv: Arc<str>,
    prefix: &str,
    after: Version,
) -> ChangeStream {
    let listener = store.changes.listen(Topic::KvStores);
    let watch = Watch {
        store,
        kv,
        prefix: prefix.into(),
        told: (after, find::LAST.to_vec()),
        waiting: VecDeque::new(),
        listener,
        is_failing: false,
    };
    Box::pin(stream::unfold(watch, |mut watch| async move {
        Some((watch.next().await, watch))
    }))
}

impl Watch {
    async fn next(&mut self) -> Result<Changed, KvStoreError> {
        loop {
            if let Some(changed) = self.waiting.pop_front() {
                self.told = (changed.version, changed.key.as_bytes().to_vec());
                return Ok(changed);
            }
            if std::mem::take(&mut self.is_failing) {
                tokio::time::sleep(POLL).await;
            }
            self.listener.looks();
            let (kv, prefix, told) = (
                Arc::clone(&self.kv),
                Arc::clone(&self.prefix),
                self.told.clone(),
            );
            match self
                .store
                .read(move |db| page(db, &kv, &prefix, &told))
                .await
            {
                Ok(changes) if changes.is_empty() => self.listener.wait_for_change().await,
                Ok(changes) => self.waiting = changes.into(),
                Err(fault) => {
                    self.is_failing = true;
                    return Err(fault.kv(|| format!("cannot watch key-value store {:?}", self.kv)));
                }
            }
        }
    }
}

fn page(
    db: &Connection,
    kv: &str,
    prefix: &str,
    told: &(Version, Vec<u8>),
) -> Result<Vec<Changed>, Fault> {
    let Some(kv) = find::key_of(db, kv)? else {
        return Ok(Vec::new());
    };
    let (from, to) = find::range(prefix);
    let sql = format!(
        "SELECT {} FROM items WHERE shelf = ?1 AND (version, key) > (?2, ?3) AND key >= ?4 AND key < ?5 \
         ORDER BY version, key LIMIT ?6",
        find::COLUMNS
    );
    let mut select = db.prepare_cached(&sql)?;
    let mut rows = select.query(params![
        kv,
        number::to_i64(told.0.0),
        told.1,
        from,
        to,
        PAGE
    ])?;
    let mut changes = Vec::new();
    while let Some(row) = rows.next()? {
        changes.push(Changed {
            key: find::key(row)?.into(),
            version: Version(number::read(row.get(3)?)),
            item: find::item(row)?,
        });
    }
    Ok(changes)
}

//! A key-value store that lives as long as the program.

use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use adjutant_llm::{SystemWorld, World};
use async_trait::async_trait;
use futures_util::stream;
use tokio::sync::watch;

use super::{
    Change, ChangeStream, Changed, Hit, Item, KvStore, KvStoreError, Scan, Version, When,
    check_key, check_write,
};
use crate::search;

/// The maximum number of removals that are remembered for watchers of an old version.
const MAX_REMOVALS: usize = 10_000;

/// A key-value store that lives as long as the program; clones share it.
#[derive(Debug, Clone)]
pub struct MemoryKvStore {
    kept: Arc<Mutex<StoreData>>,
    newest: watch::Sender<Version>,
    world: Arc<dyn World>,
}

#[derive(Debug, Default)]
struct StoreData {
    newest: Version,
    items: BTreeMap<Arc<str>, Item>,
    /// The last change of each key, removals included.
    changes: BTreeMap<(Version, Arc<str>), Kind>,
    /// The versions at which the keys that are gone were removed.
    removals: BTreeMap<Arc<str>, Version>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Put,
    Removed,
}

impl MemoryKvStore {
    /// Sets the clock for write times.
    #[must_use]
    pub fn world(self, world: impl World + 'static) -> Self {
        Self {
            world: Arc::new(world),
            ..self
        }
    }

    fn lock_data(&self) -> MutexGuard<'_, StoreData> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryKvStore {
    fn default() -> Self {
        Self {
            kept: Arc::default(),
            newest: watch::Sender::default(),
            world: Arc::new(SystemWorld),
        }
    }
}

impl StoreData {
    fn version(&self, key: &str) -> Option<Version> {
        self.items.get(key).map(|item| item.version)
    }

    /// Checks that a key meets the condition of a change.
    fn check(&self, change: &Change) -> Result<(), KvStoreError> {
        let found = self.version(&change.key);
        let is_so = match change.when {
            When::Any => true,
            When::Absent => found.is_none(),
            When::Is(version) => found == Some(version),
        };
        if is_so {
            Ok(())
        } else {
            Err(KvStoreError::conflict(Arc::clone(&change.key), found))
        }
    }

    fn change(&mut self, change: Change, version: Version, now_ms: u64) {
        let key = change.key;
        let before = self
            .version(&key)
            .or_else(|| self.removals.get(&key).copied());
        match change.put {
            Some((value, text)) => {
                self.items.insert(
                    Arc::clone(&key),
                    Item {
                        key: Arc::clone(&key),
                        value,
                        text,
                        version,
                        changed_ms: now_ms,
                    },
                );
                self.removals.remove(&key);
                self.changes.insert((version, Arc::clone(&key)), Kind::Put);
            }
            // A key that was not there did not change.
            None if self.items.remove(&key).is_none() => return,
            None => {
                self.removals.insert(Arc::clone(&key), version);
                self.changes
                    .insert((version, Arc::clone(&key)), Kind::Removed);
            }
        }
        if let Some(before) = before {
            self.changes.remove(&(before, key));
        }
    }

    fn forget_old_removals(&mut self) {
        // Twice as many, so that the work is done seldom.
        if self.removals.len() <= MAX_REMOVALS * 2 {
            return;
        }
        let mut removals: Vec<_> = self
            .removals
            .iter()
            .map(|(key, version)| (*version, Arc::clone(key)))
            .collect();
        removals.sort_unstable();
        removals.truncate(removals.len() - MAX_REMOVALS);
        for (version, key) in removals {
            self.removals.remove(&key);
            self.changes.remove(&(version, key));
        }
    }

    /// The items with this key prefix.
    fn with_prefix<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&str>,
    ) -> impl Iterator<Item = &'a Item> {
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let range = self.items.range::<str, _>((from, Bound::Unbounded));
        range
            .map(|(_, item)| item)
            .take_while(move |item| item.key.starts_with(prefix))
    }

    /// The first change behind this place that is of a key with the prefix.
    fn next_change(&self, prefix: &str, after: &Bound<(Version, Arc<str>)>) -> Option<Changed> {
        let mut range = self.changes.range((after.clone(), Bound::Unbounded));
        let ((version, key), kind) = range.find(|((_, key), _)| key.starts_with(prefix))?;
        let item = self.items.get(key).filter(|_| *kind == Kind::Put).cloned();
        Some(Changed {
            key: Arc::clone(key),
            version: *version,
            item,
        })
    }
}

/// The place behind all changes of a version.
fn behind(version: Version) -> Bound<(Version, Arc<str>)> {
    Bound::Included((Version(version.0.saturating_add(1)), "".into()))
}

#[async_trait]
impl KvStore for MemoryKvStore {
    async fn get(&self, key: &str) -> Result<Option<Item>, KvStoreError> {
        check_key(key)?;
        Ok(self.lock_data().items.get(key).cloned())
    }

    async fn write(&self, changes: Vec<Change>) -> Result<Version, KvStoreError> {
        check_write(&changes)?;
        let mut kept = self.lock_data();
        changes.iter().try_for_each(|change| kept.check(change))?;
        let (version, now_ms) = (Version(kept.newest.0 + 1), self.world.now_ms());
        for change in changes {
            kept.change(change, version, now_ms);
        }
        kept.forget_old_removals();
        kept.newest = version;
        // Under the lock: reported versions never decrease.
        self.newest.send_replace(version);
        Ok(version)
    }

    async fn scan(&self, scan: &Scan) -> Result<Vec<Item>, KvStoreError> {
        let kept = self.lock_data();
        let items = kept.with_prefix(&scan.prefix, scan.after.as_deref());
        Ok(items
            .take(scan.limit.unwrap_or(usize::MAX))
            .cloned()
            .collect())
    }

    async fn newest(&self) -> Result<Version, KvStoreError> {
        Ok(self.lock_data().newest)
    }

    fn watch(&self, prefix: &str, after: Version) -> ChangeStream {
        let state = (
            self.clone(),
            self.newest.subscribe(),
            Arc::<str>::from(prefix),
            behind(after),
            after,
        );
        Box::pin(stream::unfold(
            state,
            |(kv, mut newest, prefix, mut place, mut seen)| async move {
                loop {
                    let found = kv.lock_data().next_change(&prefix, &place);
                    if let Some(changed) = found {
                        place = Bound::Excluded((changed.version, Arc::clone(&changed.key)));
                        return Some((Ok(changed), (kv, newest, prefix, place, seen)));
                    }
                    // This stream holds the key-value store, so the sender always exists.
                    seen = *newest.wait_for(|newest| *newest > seen).await.ok()?;
                }
            },
        ))
    }

    async fn search(
        &self,
        prefix: &str,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Hit>, KvStoreError> {
        let kept = self.lock_data();
        let texts = kept
            .with_prefix(prefix, None)
            .map(|item| (item, &item.text));
        let best = search::best(query, texts, limit);
        Ok(best
            .into_iter()
            .map(|(item, score)| Hit {
                item: item.clone(),
                score,
            })
            .collect())
    }
}

//! Shared values by name: versioned keys, compare-and-set, ordered scan, watch, text search. Boards and notes stand on it.

mod check;
mod error;
mod in_memory;

use std::{fmt, pin::Pin, sync::Arc};

use async_trait::async_trait;
use futures_core::Stream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use check::check_key;
use check::check_write;
pub use error::{KvStoreError, KvStoreErrorKind};
pub use in_memory::MemoryKvStore;

/// The most bytes that a key may have.
pub const MAX_KEY_BYTES: usize = 1_024;
/// The most bytes that a value and its text may have together, as JSON.
pub const MAX_VALUE_BYTES: usize = 8 * 1024 * 1024;
/// The most changes that one write may hold.
pub const MAX_WRITE: usize = 1_000;

/// The version of a value: the number of the write that made it, over all keys of its key-value store. Never given
/// twice.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Version(pub u64);

/// A value on a key-value store.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Its key.
    pub key: Arc<str>,
    /// The value.
    pub value: Value,
    /// The text that a text search finds it by.
    pub text: Arc<str>,
    /// Its version.
    pub version: Version,
    /// The time when it was written, in milliseconds since 1970-01-01 UTC.
    pub changed_ms: u64,
}

/// A condition that a key must meet for a change of it to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum When {
    /// Anything.
    #[default]
    Any,
    /// It has no value.
    Absent,
    /// Its value has this version.
    Is(Version),
}

/// A change of one key.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The key.
    pub key: Arc<str>,
    /// The condition that the key must meet.
    pub when: When,
    /// Its new value, with its search text; `None` removes it.
    pub put: Option<(Value, Arc<str>)>,
}

/// The keys that a scan gives, in the order of their bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scan {
    /// Only keys that begin like this.
    pub prefix: Arc<str>,
    /// Only keys behind this one.
    pub after: Option<Arc<str>>,
    /// The largest number of keys; all of them without it.
    pub limit: Option<usize>,
}

/// A change of a key.
#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    /// The key.
    pub key: Arc<str>,
    /// The write.
    pub version: Version,
    /// The item that it has now; `None` if it was removed.
    pub item: Option<Item>,
}

/// A value that a text search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The value.
    pub item: Item,
    /// The quality of the match: above 0, and higher is better. Scores of two searches cannot be compared.
    pub score: f64,
}

/// The changes of a key-value store as they arrive; it never ends without an error.
pub type ChangeStream = Pin<Box<dyn Stream<Item = Result<Changed, KvStoreError>> + Send>>;

/// Shared values by name. Keys are any texts of 1 to [`MAX_KEY_BYTES`] bytes.
#[async_trait]
pub trait KvStore: Send + Sync + fmt::Debug {
    /// The value of a key.
    ///
    /// # Errors
    /// `Invalid` for a key that cannot be, `Io`.
    async fn get(&self, key: &str) -> Result<Option<Item>, KvStoreError>;

    /// Changes keys, all of them or none; no two changes may be of one key.
    ///
    /// The version applies to every written value. Cancel: the key-value store contains all changes or none; check
    /// before you retry.
    ///
    /// # Errors
    /// `Conflict` if the condition of a key is not met; `Invalid` if a key, a value or the number of changes is too
    /// large or a key appears twice; `Io`.
    async fn write(&self, changes: Vec<Change>) -> Result<Version, KvStoreError>;

    /// The values whose keys match, in byte order of the keys, as a consistent snapshot.
    ///
    /// # Errors
    /// `Io`.
    async fn scan(&self, scan: &Scan) -> Result<Vec<Item>, KvStoreError>;

    /// The newest version of the key-value store; 0 if nothing was ever written.
    ///
    /// # Errors
    /// `Io`.
    async fn newest(&self) -> Result<Version, KvStoreError>;

    /// Watches the changes of keys with a prefix after a version, in the order of versions, from any process.
    ///
    /// Of several changes of one key only the latest may be reported. A removal long before `after` may be missing:
    /// start with a scan, and watch from the version that [`newest`](KvStore::newest) returned before it.
    ///
    /// # Errors
    /// As an item, after which more may come: `Io`.
    fn watch(&self, prefix: &str, after: Version) -> ChangeStream;

    /// The values with a prefix whose text matches the words of a query best, best first.
    ///
    /// A value fits if it has one of the words; case does not matter, nothing in the query is syntax.
    ///
    /// # Errors
    /// `Io`.
    async fn search(
        &self,
        prefix: &str,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Hit>, KvStoreError>;
}

impl Change {
    /// Puts a value, whatever was there; it is found by no text.
    pub fn put(key: impl Into<Arc<str>>, value: Value) -> Self {
        Self {
            key: key.into(),
            when: When::Any,
            put: Some((value, "".into())),
        }
    }

    /// Removes a value, if there is one.
    pub fn remove(key: impl Into<Arc<str>>) -> Self {
        Self {
            key: key.into(),
            when: When::Any,
            put: None,
        }
    }

    /// Sets what the value is found by.
    #[must_use]
    pub fn text(mut self, text: impl Into<Arc<str>>) -> Self {
        if let Some((_, found_by)) = &mut self.put {
            *found_by = text.into();
        }
        self
    }
}

impl Scan {
    /// All keys that begin like this.
    pub fn prefix(prefix: impl Into<Arc<str>>) -> Self {
        Self {
            prefix: prefix.into(),
            ..Self::default()
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

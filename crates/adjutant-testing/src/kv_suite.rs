//! The promises that a key-value store must keep: a list, each with a name, played in a [`Lab`] that opens the
//! key-value store.
//!
//! In `tests/`, with the key-value store in place of the one in memory:
//!
//! ```
//! use adjutant_agent::kv::MemoryKvStore;
//! use adjutant_testing::kv_suite::lab_fn;
//!
//! adjutant_testing::kv_suite!({
//!     // Made anew for each test. Every call of the function must give a handle on the same store.
//!     let kv = MemoryKvStore::default();
//!     lab_fn(move || kv.clone())
//! });
//! # fn main() {}
//! ```

mod counting;
mod keeping;
mod scanning;
mod searching;
mod stage;
mod watching;

use std::sync::Arc;

use adjutant_agent::KvStore;
use async_trait::async_trait;

use self::stage::KvStage;
use crate::suite::checks;
pub use crate::suite::{Check, FnLab, Played, Report, Row};

/// An environment to test a key-value store: separate storage without other users.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a laboratory for key-value stores",
    note = "implement `open`, or use `kv_suite::lab_fn`"
)]
#[async_trait]
pub trait Lab: Send + Sync {
    /// A new handle on the key-value store, as another process would have it.
    async fn open(&self) -> Arc<dyn KvStore>;

    /// Returns the reason why a check cannot be played here; by default, all can.
    fn skips(&self, check: &str) -> Option<String> {
        let _ = check;
        None
    }
}

/// A laboratory made of a function that opens the key-value store.
pub fn lab_fn<S: KvStore + 'static>(
    open: impl Fn() -> S + Send + Sync + 'static,
) -> FnLab<dyn KvStore> {
    FnLab::new(move || -> Arc<dyn KvStore> { Arc::new(open()) })
}

#[async_trait]
impl Lab for FnLab<dyn KvStore> {
    async fn open(&self) -> Arc<dyn KvStore> {
        self.handle()
    }

    fn skips(&self, check: &str) -> Option<String> {
        self.why(check)
    }
}

checks! {
    $ kv_suite, "The expression makes a [`Lab`](crate::kv_suite::Lab) for each test, and may await.", KvStage;
    keeping::put_then_get: "what was put is read again, by any handle",
    keeping::values_survive: "values and texts of any kind survive, exact numbers and the order of keys included",
    keeping::keys_are_data: "keys with slashes, NUL and emoji are different keys",
    keeping::removed_is_gone: "what was removed is gone, and removing it again does nothing",
    keeping::versions_grow: "every write has a higher version than those before, removals included",
    keeping::conditions: "a change happens only if what must be true of its key is",
    keeping::writes_are_whole: "of several changes all happen, with one version, or none does",
    keeping::doubles_refused: "no two changes of a write are of one key",
    keeping::limits: "what is too large or empty is refused, what just fits is not",
    scanning::order_of_bytes: "keys are scanned in the order of their bytes",
    scanning::prefixes: "a prefix is a prefix of bytes, wildcards and the last letters of all included",
    scanning::pages: "limits and places cut a scan without loss",
    watching::sees_later_changes: "who watches hears of later changes, those by other handles and removals included",
    watching::begins_at_a_version: "who watches from a version hears what came after it, in order",
    watching::watches_a_prefix: "who watches a prefix hears of nothing else",
    searching::any_word: "a text that has one of the words is found, the one that has more of them first",
    searching::case_and_scripts: "case does not matter, and words of any script are words",
    searching::syntax_is_text: "nothing in a query is syntax",
    searching::within_prefix: "a search keeps to its prefix and to its limit",
    searching::follows_changes: "a search finds what is there now",
    counting::exact_sum: "counters that many raise at once, by comparing versions, end at the exact sum",
    counting::one_creates: "of many who create a key at once one does",
    counting::transfers: "who scans while others move amounts between keys sees one moment",
}

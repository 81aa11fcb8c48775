//! The promises that a memory must keep: a list, each with a name, played in a [`Lab`] that opens the memory.
//!
//! In `tests/`, with the memory in place of the one in memory:
//!
//! ```
//! use adjutant_agent::memory::InMemory;
//! use adjutant_testing::memory_suite::lab_fn;
//!
//! adjutant_testing::memory_suite!({
//!     // Made anew for each test. Every call of the function must give a handle on the same memory.
//!     let memory = InMemory::default();
//!     lab_fn(move || memory.clone())
//! });
//! # fn main() {}
//! ```

mod bounds;
mod isolation;
mod keeping;
mod marks;
mod searching;
mod stage;

use std::sync::Arc;

use adjutant_agent::Memory;
use async_trait::async_trait;

use self::stage::MemoryStage;
use crate::suite::checks;
pub use crate::suite::{Check, FnLab, Played, Report, Row};

/// An environment to test a memory: separate storage without other users.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a laboratory for memories",
    note = "implement `open`, or use `memory_suite::lab_fn`"
)]
#[async_trait]
pub trait Lab: Send + Sync {
    /// A new handle on the memory, as another process would have it.
    async fn open(&self) -> Arc<dyn Memory>;

    /// Returns the reason why a check cannot be played here; by default, all can.
    fn skips(&self, check: &str) -> Option<String> {
        let _ = check;
        None
    }
}

/// A laboratory made of a function that opens the memory.
pub fn lab_fn<M: Memory + 'static>(
    open: impl Fn() -> M + Send + Sync + 'static,
) -> FnLab<dyn Memory> {
    FnLab::new(move || -> Arc<dyn Memory> { Arc::new(open()) })
}

#[async_trait]
impl Lab for FnLab<dyn Memory> {
    async fn open(&self) -> Arc<dyn Memory> {
        self.handle()
    }

    fn skips(&self, check: &str) -> Option<String> {
        self.why(check)
    }
}

checks! {
    $ memory_suite, "The expression makes a [`Lab`](crate::memory_suite::Lab) for each test, and may await.", MemoryStage;
    keeping::add_then_get: "what was added is read again, by any handle",
    keeping::facts_survive: "texts, names and metadata of any kind survive",
    keeping::adds_are_whole: "of several facts all are added, or none is",
    keeping::update_changes: "an update changes what it names, and nothing else",
    keeping::metadata_merges: "metadata is merged, and what is null is removed",
    keeping::deleted_is_gone: "a fact that was deleted is gone, also for searches, and its name is free",
    keeping::pages: "facts are listed oldest first, page by page, also when many have one age",
    bounds::too_large_refused: "what is too large or empty is refused, and nothing is kept of it",
    bounds::what_fits_is_kept: "what just fits is kept",
    bounds::full: "an owner who has all the facts that may be gets no more, and others do",
    isolation::names_are_of_owners: "two owners may give one name, and each has a fact of its own",
    isolation::foreign_ids_touch_nothing: "whatever name an operation is given, it touches nothing of other owners",
    isolation::searches_keep_apart: "a search finds nothing of other owners, however well it fits",
    isolation::owners_are_data: "owners that look alike are different owners",
    searching::any_word: "a fact that has one of the words is found, the one that has more of them first",
    searching::case_and_scripts: "case does not matter, and words of any script are words",
    searching::syntax_is_text: "nothing in a query is syntax",
    searching::limits: "a search gives as many as are wanted, the best ones",
    searching::follows_changes: "a search finds what is there now",
    searching::nearest_first: "vectors are found by their cosine, whatever their length, nearest first",
    searching::other_vectors_left_out: "vectors of other embedders or lengths are left out, and facts without one",
    searching::updates_change_vectors: "a new text has a new vector, or none",
    searching::odd_vectors: "vectors without a direction do no harm",
    marks::kept_by_source: "how far a source was read is kept for each owner and source",
    marks::one_is_faster: "of many who read a source at once one keeps how far",
    marks::adding_at_once: "facts that many add at once are all there, and a name is given once",
}

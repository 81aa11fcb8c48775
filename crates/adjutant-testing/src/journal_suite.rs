//! The promises that a journal must keep: a list, each with a name, played in a [`Lab`] that opens the journal.
//!
//! In `tests/`, with the journal in place of the one in memory:
//!
//! ```
//! use adjutant_agent::MemoryJournal;
//! use adjutant_testing::journal_suite::{self, lab_fn};
//!
//! adjutant_testing::journal_suite!({
//!     // Made anew for each test. Every call of the function must give a handle on the same logs.
//!     let journal = MemoryJournal::default();
//!     lab_fn(move || journal.clone()).without("attachments_swept", "nothing is stored as bytes")
//! });
//!
//! # fn main() {
//! # let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
//! # runtime.block_on(async {
//! // Or all of them in one laboratory.
//! let journal = MemoryJournal::default();
//! let lab = lab_fn(move || journal.clone()).without("attachments_swept", "nothing is stored as bytes");
//! let report = journal_suite::check(&lab).await;
//! assert_eq!(report.broken().next(), None, "{report}");
//! # });
//! # }
//! ```

mod appending;
mod crowd;
mod interrupted;
mod large;
mod listing;
mod model;
mod naming;
mod owning;
mod posting;
mod stage;
mod taking;
mod tending;

use std::sync::Arc;

use adjutant_agent::{Journal, Log};
use async_trait::async_trait;

use self::stage::JournalStage;
pub(crate) use self::stage::own;
use crate::suite::checks;
pub use crate::suite::{Check, FnLab, Played, Report, Row};

/// An environment to test a journal: separate storage without other users.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a laboratory for journals",
    note = "implement `open`, or use `journal_suite::lab_fn`"
)]
#[async_trait]
pub trait Lab: Send + Sync {
    /// A new handle on the storage, as in another process: all state must come from the storage.
    async fn open(&self) -> Arc<dyn Journal>;

    /// The owner of a log dies without releasing it; by default, the value is dropped.
    ///
    /// When this returns, another owner must be able to have the log soon: the laboratory of a journal with leases
    /// lets time pass.
    async fn crash(&self, log: Box<dyn Log>) {
        drop(log);
    }

    /// Returns the reason why a check cannot be played here; by default, all can.
    fn skips(&self, check: &str) -> Option<String> {
        let _ = check;
        None
    }
}

/// A laboratory made of a function that opens the journal.
pub fn lab_fn<J: Journal + 'static>(
    open: impl Fn() -> J + Send + Sync + 'static,
) -> FnLab<dyn Journal> {
    FnLab::new(move || -> Arc<dyn Journal> { Arc::new(open()) })
}

#[async_trait]
impl Lab for FnLab<dyn Journal> {
    async fn open(&self) -> Arc<dyn Journal> {
        self.handle()
    }

    fn skips(&self, check: &str) -> Option<String> {
        self.why(check)
    }
}

checks! {
    $ journal_suite, "The expression makes a [`Lab`](crate::journal_suite::Lab) for each test, and may await.", JournalStage;
    appending::append_then_read: "what was appended is read again: bytes, links and order, by a new handle",
    appending::batch_of_nothing: "a batch of nothing changes nothing",
    appending::batch_is_atomic: "of a batch that cannot be stored nothing is stored",
    appending::wrong_number_refused: "a batch that does not follow the head is refused",
    appending::read_after_cursor: "reading after a place gives the rest, and nothing behind the end",
    appending::missing_log: "a log that was never made is missing, and reading does not make it",
    appending::texts_survive: "texts of any letters survive, NUL and line ends included",
    appending::chain_verifies: "the links of a log go on from record to record and from owner to owner",
    appending::bytes_are_kept: "records that were read elsewhere keep their bytes, whatever they look like",
    appending::version_1_is_kept: "a record of version 1 keeps its bytes, and is read as it means",
    appending::clock_backwards: "a clock that goes backwards changes no order, and no change is older than the one before",
    interrupted::append_dropped: "an append that is dropped happened whole or not at all, and the log goes on",
    interrupted::own_dropped: "a wish to own that is dropped leaves the log free",
    owning::second_owner_refused: "a second owner does not get the log, by no handle",
    owning::same_owner_fences: "the same owner gets the log again, and the value from before is fenced",
    owning::drop_frees: "a log that was given up is free",
    owning::death_frees: "the log of an owner that died is free, with all that it appended",
    owning::epochs_grow: "every ownership has a higher epoch than the one before",
    owning::owned_is_told: "what is known of a log says whether it is owned",
    owning::one_of_many: "of many who want a log at once one gets it",
    taking::takeover_fences: "who takes over has the log, and a late writer leaves nothing in it",
    taking::fenced_drop_frees_nothing: "an owner that was fenced frees nothing when it goes",
    taking::fenced_keeps_nothing: "an owner that was fenced keeps no fold",
    taking::fenced_after_delete: "an owner that was fenced does not write into a new log of the same name",
    taking::takeovers_at_once: "of many who take over at once the last one has the log, and nothing is lost",
    naming::names_are_data: "slashes, dots, NUL, emoji and 512 bytes are names like any other",
    naming::names_are_distinct: "names that look alike are different logs",
    naming::bad_names_refused: "a name that is empty or has more than 512 bytes is refused",
    large::large_text: "a text of 8 MiB survives",
    large::large_record: "a record of 100,000 small parts survives",
    large::attachments_are_shared: "logs with the same large text do not lose it when one of them is deleted",
    large::attachments_swept: "a large text is removed with the last log that has it, and not before",
    posting::posts_in_order: "posts are numbered and told in order, over two handles",
    posting::posts_of_all_kinds: "posts of every kind survive",
    posting::deep_post_hides_no_other: "a post that is nested too deep is refused or told, and hides no other",
    posting::heeded_posts_forgotten: "posts that were heeded are told no more, and their numbers are not given again",
    posting::heeded_in_a_copy: "the next post to a copy of a log has a number above those that were heeded in the log",
    posting::posts_told_at_once: "what any handle has posted is told without waiting, and so is that there is nothing",
    posting::waiting_is_woken: "who waits for a post is woken by one from another handle",
    posting::posts_need_a_log: "nothing can be posted to a log that is missing",
    posting::posts_at_once: "posts from many at once are all told, each with a number of its own",
    posting::posts_follow_the_log: "posts go where their log goes: along when it is renamed, away when it is deleted",
    listing::newest_first: "logs are listed by their last change, newest first, then by name",
    listing::filters: "agent, label, parent and times narrow a list",
    listing::pages: "pages hold every log once, also when many changed at one time",
    listing::pages_hold_one: "a page holds one log at least",
    tending::description_kept: "what is said of a log is kept until something else is said",
    tending::renamed_keeps_all: "a log that is renamed keeps all it has, and logs that were forked from it follow",
    tending::rename_refused: "a log is not renamed to a name that is taken or cannot be, nor while it is owned",
    tending::deleted_is_gone: "a log that was deleted is gone, and its name is free",
    tending::delete_refused: "a log is not deleted while it is owned",
    tending::children_stay_whole: "a log stays whole when the one that it was forked from is deleted",
    tending::fold_kept: "a fold is kept until another one is, and goes with its log",
    crowd::many_logs_at_once: "50 logs at once, over two handles, lose and reorder nothing",
    crowd::read_while_appending: "who reads while another appends sees the beginning of the log, without gaps",
    model::random_operations: "operations at random on two handles do what a simple model does",
}

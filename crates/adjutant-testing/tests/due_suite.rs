//! The suite of due work against the journal in memory.

use adjutant_agent::MemoryJournal;
use adjutant_testing::due_suite::{DueLab, lab_fn};

fn lab() -> impl DueLab {
    let journal = MemoryJournal::default();
    lab_fn(move || journal.clone())
}

adjutant_testing::due_suite!(lab());

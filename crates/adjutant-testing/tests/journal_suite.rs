//! The suite of journals against the journal in memory.

use adjutant_agent::MemoryJournal;
use adjutant_testing::journal_suite::{Lab, lab_fn};

fn lab() -> impl Lab {
    let journal = MemoryJournal::default();
    lab_fn(move || journal.clone()).without("attachments_swept", "nothing is stored as bytes")
}

adjutant_testing::journal_suite!(lab());

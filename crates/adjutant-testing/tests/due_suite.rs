//! The suite of due work against the journal in memory.

use std::sync::Arc;

use adjutant_agent::MemoryJournal;
use adjutant_llm::FixedWorld;
use adjutant_testing::due_suite::{DueLab, lab_fn};

fn lab() -> impl DueLab {
    let world = Arc::new(FixedWorld::at_ms(1_800_000_000_000));
    let journal = MemoryJournal::default().world(Arc::clone(&world));
    lab_fn(&world, move || journal.clone())
}

adjutant_testing::due_suite!(lab());

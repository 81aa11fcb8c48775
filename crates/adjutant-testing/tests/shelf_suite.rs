//! The suite of shelves against the shelf in memory.

use adjutant_agent::shelf::MemoryShelf;
use adjutant_testing::shelf_suite::{Lab, lab_fn};

fn lab() -> impl Lab {
    let shelf = MemoryShelf::new();
    lab_fn(move || shelf.clone())
}

adjutant_testing::shelf_suite!(lab());

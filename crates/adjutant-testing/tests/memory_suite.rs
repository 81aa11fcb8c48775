//! The suite of memories against the memory in memory.

use adjutant_agent::memory::InMemory;
use adjutant_testing::memory_suite::{Lab, lab_fn};

fn lab() -> impl Lab {
    let memory = InMemory::default();
    lab_fn(move || memory.clone())
}

adjutant_testing::memory_suite!(lab());

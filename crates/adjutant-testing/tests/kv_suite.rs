//! The suite of key-value stores against the key-value store in memory.

use adjutant_agent::kv::MemoryKvStore;
use adjutant_testing::kv_suite::{Lab, lab_fn};

fn lab() -> impl Lab {
    let kv = MemoryKvStore::default();
    lab_fn(move || kv.clone())
}

adjutant_testing::kv_suite!(lab());

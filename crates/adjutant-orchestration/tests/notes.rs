//! Notes: the same promises on every key-value store, and what agents do with them.

#[path = "notes/agents.rs"]
mod agents;
#[path = "notes/hostile.rs"]
mod hostile;
#[path = "notes/keeping.rs"]
mod keeping;
#[path = "notes/kv_stores.rs"]
pub(super) mod kv_stores;

use std::sync::Arc;

use adjutant_agent::kv::{KvStore, MemoryKvStore};
use adjutant_llm::FixedWorld;
use adjutant_orchestration::notes::Notes;
use adjutant_tool::Identity;

/// 2000-02-29, midnight.
const NOW_MS: u64 = 951_782_400_000;

fn world() -> Arc<FixedWorld> {
    Arc::new(FixedWorld::at_ms(NOW_MS))
}

fn notes() -> Notes {
    on(Arc::new(MemoryKvStore::default()))
}

fn on(kv: Arc<dyn KvStore>) -> Notes {
    Notes::new(kv).world(world())
}

fn ada() -> Identity {
    Identity::root("main".into(), "id-ada", "ada")
}

fn bob() -> Identity {
    Identity::root("other".into(), "id-bob", "bob")
}

//! A world that several own: what takes one by value gets a handle of the same.

use std::sync::Arc;

use adjutant_llm::World;

/// A handle of a world.
#[derive(Debug, Clone)]
pub(super) struct SharedWorld(pub(super) Arc<dyn World>);

impl World for SharedWorld {
    fn now_ms(&self) -> u64 {
        self.0.now_ms()
    }

    fn id(&self) -> u128 {
        self.0.id()
    }

    fn unit(&self) -> f64 {
        self.0.unit()
    }
}

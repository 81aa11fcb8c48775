//! The kinds of effects that stand in this crate.

use adjutant_agent::effects::EffectRegistry;

use crate::{compact::Compact, window::SlidingWindow};

/// Registers the effects of this crate, `compact` and `sliding_window`.
#[must_use]
pub fn register(registry: EffectRegistry) -> EffectRegistry {
    registry
        .register_type::<Compact>("compact")
        .register_type::<SlidingWindow>("sliding_window")
}

//! Context that a model looks after: conversations summarised as they grow, and memories of what was learned.

mod background;
mod compact;
mod decide;
mod extract;
mod fuse;
mod ids;
mod learning;
mod memories;
mod meter;
mod part;
mod recall;
mod tools;
mod window;
mod words;

use adjutant_agent::effects::EffectRegistry;

pub use compact::{Compact, Strategy};
pub use extract::{Learned, MAX_LEARNED, MAX_LEARNED_BYTES};
pub use fuse::Remembered;
pub use learning::{Extraction, Learning};
pub use memories::{MAX_REMEMBERED, Memories};
pub use meter::Spent;
pub use recall::Recall;
pub use window::SlidingWindow;

/// Adds the kinds of effects that stand here, `compact` and `sliding_window`, to those that a registry knows.
#[must_use]
pub fn register(registry: EffectRegistry) -> EffectRegistry {
    registry.register_type::<Compact>("compact").register_type::<SlidingWindow>("sliding_window")
}

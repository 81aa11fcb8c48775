//! Context management with models: summaries of long conversations, and memories of facts.

#![doc = include_str!("../README.md")]

mod compact;
mod kinds;
mod memory;
mod window;

pub use compact::{Compact, Strategy};
pub use kinds::register;
pub use memory::{
    Extraction, Learned, Learning, MAX_LEARNED, MAX_LEARNED_BYTES, MAX_REMEMBERED, Memories,
    Recall, Remembered, Spent,
};
pub use window::SlidingWindow;

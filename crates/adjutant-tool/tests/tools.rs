//! Tools and sets of them: admission, asks, combinators, re-entry, what the attribute makes.
//!
//! Cargo links each target by itself, which takes longer than what is in most of them: so these files are modules.
//! A new file beside this one is one too: it needs its line in one of the roots.

#[path = "admit.rs"]
mod admit;
#[path = "admit_properties.rs"]
mod admit_properties;
#[path = "ask.rs"]
mod ask;
#[path = "combine.rs"]
mod combine;
#[path = "reentry.rs"]
mod reentry;
#[path = "serde.rs"]
mod serde;
#[path = "tool_macro.rs"]
mod tool_macro;
#[path = "toolset.rs"]
mod toolset;

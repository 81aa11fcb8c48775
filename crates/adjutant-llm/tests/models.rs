//! Models and what is said to them: decorators, stored forms, views, sizes.
//!
//! Cargo links each target by itself, which takes longer than what is in most of them: so these files are modules.
//! A new file beside this one is one too: it needs its line in one of the roots.

#[path = "fallback.rs"]
mod fallback;
#[path = "json.rs"]
mod json;
#[path = "partial.rs"]
mod partial;
#[path = "rate_limit.rs"]
mod rate_limit;
#[path = "replay.rs"]
mod replay;
#[path = "retry.rs"]
mod retry;
#[path = "serde.rs"]
mod serde;
#[path = "structured.rs"]
mod structured;
#[path = "timeout.rs"]
mod timeout;
#[path = "tokens.rs"]
mod tokens;
#[path = "transcript.rs"]
mod transcript;

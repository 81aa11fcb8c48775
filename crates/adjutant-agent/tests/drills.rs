//! What holds for every script, cut and order: random plans, schedules, crashes, hostile parts.
//!
//! Cargo links each target by itself, which takes longer than what is in most of them: so these files are modules.
//! A new file beside this one is one too: it needs its line in one of the roots.

#![expect(
    clippy::duplicate_mod,
    reason = "files share stages, each has its own copy"
)]

#[path = "core_properties.rs"]
mod core_properties;
#[path = "crash.rs"]
mod crash;
#[path = "heard.rs"]
mod heard;
#[path = "hostile_parts.rs"]
mod hostile_parts;
#[path = "hostile_seams.rs"]
mod hostile_seams;
#[path = "property.rs"]
mod property;
#[path = "schedules.rs"]
mod schedules;
#[path = "schedules_scopes.rs"]
mod schedules_scopes;
#[path = "threads.rs"]
mod threads;

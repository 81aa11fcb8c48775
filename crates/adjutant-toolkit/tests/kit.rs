//! The file tools: what they show, what they refuse, and how a model uses them.
//!
//! Cargo links each target by itself, which takes longer than what is in most of them: so these files are modules.
//! A new file beside this one is one too: it needs its line in one of the roots.

#[path = "approvals.rs"]
mod approvals;
#[path = "edits.rs"]
mod edits;
#[path = "escape.rs"]
mod escape;
#[path = "files.rs"]
mod files;
#[path = "lent.rs"]
mod lent;
#[path = "log.rs"]
mod log;
#[path = "offline.rs"]
mod offline;
#[path = "rules.rs"]
mod rules;
#[path = "talk.rs"]
mod talk;

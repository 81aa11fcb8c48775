//! What is kept of runs: records and their bytes, sessions, pauses, what runs again and what does not.
//!
//! Cargo links each target by itself, which takes longer than what is in most of them: so these files are modules.
//! A new file beside this one is one too: it needs its line in one of the roots.

#![expect(
    clippy::duplicate_mod,
    reason = "files share stages, each has its own copy"
)]

#[path = "attach.rs"]
mod attach;
#[path = "explain.rs"]
mod explain;
#[path = "external.rs"]
mod external;
#[path = "fingerprint.rs"]
mod fingerprint;
#[path = "flat.rs"]
mod flat;
#[path = "pauses.rs"]
mod pauses;
#[path = "posts.rs"]
mod posts;
#[path = "replay.rs"]
mod replay;
#[path = "rewind.rs"]
mod rewind;
#[path = "run_decides.rs"]
mod run_decides;
#[path = "sessions.rs"]
mod sessions;
#[path = "snapshot.rs"]
mod snapshot;
#[path = "stamped.rs"]
mod stamped;

//! Hosts towards clients of both revisions, over streams and over HTTP.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod agents;
mod calls;
mod client;
mod hostile;
mod pauses;

//! The drill of the Model Context Protocol: a server and its client are killed at any moment and at the worst ones, and the
//! answers to what the server asks are posted by a third process.

mod check;
mod client;
mod drill;
mod field;
mod server;

pub use check::Survived;
pub use client::client;
pub use drill::Drill;
pub use server::server;

/// The file in which servers write what they do: `began SESSION STEP`, then `did SESSION STEP NUMBER CODES`.
const LEDGER: &str = "ledger";
/// The file in which the server at an address says where it is.
const ADDRESS: &str = "address";
/// What a session says at its end.
const DONE: &str = "All is paid.";
/// How long an effect takes before and after it is there.
const WORK: std::time::Duration = std::time::Duration::from_millis(30);

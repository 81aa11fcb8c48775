//! The command from outside: what its user sees on both outputs, and the exit code.

mod agents;
mod board;
mod command;
mod failures;
mod input;
mod models;
mod offline;
mod replay;
mod schema;
mod secrets;
mod sessions;
mod skills;
#[cfg(unix)]
mod stopping;
mod trying;
mod wires;

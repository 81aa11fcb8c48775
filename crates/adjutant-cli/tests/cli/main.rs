//! The command from outside: what its user sees on both outputs, and the exit code.

mod acp;
mod agent;
#[cfg(unix)]
mod agent_host;
mod agents;
mod board;
mod command;
mod failures;
mod init;
mod input;
#[cfg(unix)]
mod issuer;
mod manifest;
#[cfg(unix)]
mod mcp;
mod models;
mod offline;
mod replay;
#[cfg(target_os = "linux")]
mod sandboxed;
mod schema;
mod secrets;
mod sessions;
mod skills;
#[cfg(unix)]
mod stopping;
#[cfg(unix)]
mod talk;
mod telemetry;
#[cfg(unix)]
mod terminal;
mod trying;
#[cfg(unix)]
mod up;
#[cfg(unix)]
mod view;
mod wires;

//! The whole system: every wire, the examples as programs, the documents, the tables of promises.
//!
//! Cargo links each target by itself, which takes longer than what is in most of them: so these files are modules.
//! A new file beside this one is one too: it needs its line in one of the roots.

#[path = "bfcl.rs"]
mod bfcl;
#[path = "bound.rs"]
mod bound;
#[path = "chaos.rs"]
mod chaos;
#[path = "conformance.rs"]
mod conformance;
#[path = "contents.rs"]
mod contents;
#[path = "counts.rs"]
mod counts;
#[path = "crash.rs"]
mod crash;
#[path = "crew.rs"]
mod crew;
#[path = "decorators.rs"]
mod decorators;
#[path = "documents.rs"]
mod documents;
#[path = "events_table.rs"]
mod events_table;
#[path = "examples.rs"]
mod examples;
#[path = "faults.rs"]
mod faults;
#[path = "fleet.rs"]
mod fleet;
#[path = "hello.rs"]
mod hello;
#[path = "kill.rs"]
mod kill;
#[path = "mcp.rs"]
mod mcp;
#[path = "prefix.rs"]
mod prefix;
#[path = "secrets.rs"]
mod secrets;
#[path = "sessions.rs"]
mod sessions;
#[path = "spec_table.rs"]
mod spec_table;
#[path = "structured.rs"]
mod structured;
#[path = "switch.rs"]
mod switch;
#[path = "targets.rs"]
mod targets;
#[path = "trace.rs"]
mod trace;
#[path = "usage.rs"]
mod usage;

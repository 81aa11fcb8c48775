//! A loopback provider: a real HTTP server that serves any [`Model`](adjutant_llm::Model) over the vendors' wires.

#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod conformance;
pub mod due_suite;
pub mod journal_suite;
pub mod kv_suite;
#[cfg(all(unix, feature = "lifecycle"))]
pub mod lifecycle_suite;
pub mod memory_suite;
pub mod oracle;

mod body;
mod chat;
mod embeddings;
mod encode;
mod fault;
mod gemini;
mod history;
mod http;
mod issued;
mod latch;
mod loopback;
mod messages;
mod node;
mod openai;
mod plan;
#[cfg(unix)]
mod postgres;
mod prefix;
mod received;
mod refusal;
mod responses;
mod strict;
mod suite;
mod wire;

pub use fault::{Fault, FaultPosition, Paused};
pub use latch::Latch;
pub use loopback::{Loopback, Order, Setup};
#[cfg(unix)]
pub use postgres::{PostgresServer, Unavailable};
pub use received::Received;

//! A loopback provider: a real HTTP server that serves any [`Model`](adjutant_llm::Model) over the vendors' wires.
//!
//! It is the oracle of the adapters: its encoding and decoding are a second, independent reading of the vendors'
//! documents. It refuses what the vendors refuse, and it breaks on demand, at a chosen byte ([`Fault`]). [`conformance`]
//! holds a model to everything that may go wrong between it and a provider.
//!
//! ```
//! use adjutant_llm::{Script, ScriptedModel};
//! use adjutant_testing::{Fault, Loopback};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(async {
//! let model = ScriptedModel::new([Script::new().text("Good morning.")]);
//! let server = Loopback::setup(model).fault(0, Fault::rate_limited(2)).start().await?;
//! // The first request to this address is refused with 429, the second one is answered.
//! assert_eq!(server.openai_base_url(), format!("http://{}/v1", server.addr()));
//! assert!(server.requests().is_empty());
//! # Ok::<(), std::io::Error>(())
//! # }).expect("the server starts");
//! ```

pub mod conformance;
pub mod journal_suite;
pub mod kv_suite;
pub mod memory_suite;

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
mod received;
mod refusal;
mod responses;
mod strict;
mod suite;
mod wire;

pub use fault::{Fault, FaultPosition};
pub use latch::Latch;
pub use loopback::{Loopback, Order, Setup};
#[cfg(unix)]
pub use postgres::{PostgresServer, Unavailable};
pub use received::Received;

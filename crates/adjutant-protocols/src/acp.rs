//! The Agent Client Protocol, wire version 1: an editor drives agents over lines of JSON-RPC, as on standard input and output.
//!
//! Source: <https://agentclientprotocol.com/protocol/v1>, and its schema 1.20 (2026-11).

mod ask;
mod call;
mod content;
mod editor;
mod encode;
mod link;
mod open;
mod seat;
mod serve;
mod terminal;

pub use encode::Encoder;
pub use open::{ListWish, OpenSession, SessionPage, SessionWish};
pub use serve::serve;

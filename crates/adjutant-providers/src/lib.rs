//! Streaming adapters for language model providers over one HTTP and SSE driver, and the choice of a model.

#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod catalogue;
pub mod dialect;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "offline")]
pub mod offline;

mod address;
mod anthropic;
mod binding;
mod blocks;
mod body;
mod cache_key;
mod chat;
mod choose;
mod classify;
mod counts;
mod credentials;
mod driver;
mod embed;
mod escape;
mod gemini;
mod host;
mod limits;
mod observe;
mod openai;
mod options;
mod overflow;
mod pieces;
mod projection;
mod provider;
mod raw_usage;
mod search;
mod segments;
mod sse;
mod strict;
mod tape;
mod text;

pub use self::{anthropic::Anthropic, chat::Chat, gemini::Gemini, openai::OpenAi, tape::Tape};
pub use self::{binding::Detour, driver::Timeouts, embed::GeminiEmbedder, embed::OpenAiEmbedder};
pub use self::{credentials::Credential, credentials::Key, provider::Origin, provider::Provider, provider::WireKind};
pub use choose::{Chooser, Chosen, How, model};
pub use dialect::{Dialect, DialectPatch};
pub use observe::{Exchange, Observe, Outgoing, Rewrite};
pub use search::web_search;

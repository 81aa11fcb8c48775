//! Streaming adapters for language model providers over one HTTP driver, and the choice of a model.

#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod catalogue;
pub mod dialect;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "offline")]
pub mod offline;
pub mod wire;

mod address;
mod anthropic;
mod args;
mod binding;
mod blocks;
mod body;
mod cache_key;
mod call_ids;
mod chat;
mod choose;
mod classify;
mod counts;
mod credentials;
mod driver;
mod embed;
mod escape;
mod fnv;
mod foreign;
mod gemini;
mod google;
mod host;
mod limits;
mod media;
mod observe;
mod openai;
mod options;
mod overflow;
mod pieces;
mod place;
mod projection;
mod provider;
mod raw_usage;
mod refused;
mod search;
mod segments;
#[cfg(feature = "sigv4")]
mod sigv4;
mod sse;
mod strict;
mod tape;
mod text;
mod tokens;
mod tool_names;

pub use self::{anthropic::Anthropic, chat::Chat, gemini::Gemini, openai::OpenAi, tape::Tape};
pub use self::{
    binding::Detour, driver::Timeouts, driver::TimeoutsPatch, embed::GeminiEmbedder,
    embed::OpenAiEmbedder, host::Site,
};
pub use self::{
    credentials::Credential, credentials::Key, provider::Origin, provider::Provider,
    provider::WireKind,
};
pub use self::{dialect::Dialect, dialect::DialectPatch, search::web_search};
pub use choose::{Chooser, Chosen, How, model};
pub use observe::{Exchange, Observe, Outgoing, Rewrite};
#[cfg(feature = "sigv4")]
pub use sigv4::AwsKeys;
pub use tokens::{KeyCommand, Token, TokenSource};

//! Streaming adapters for language model providers over one HTTP and SSE driver, and the choice of a model.
//!
//! [`Anthropic`], [`OpenAi`], [`Gemini`] and [`Chat`], in its dialects, speak one wire each. [`model`] makes any of them of a
//! name and the environment, [`Chooser`] of injected variables and your own [`Provider`]s. Nothing here retries.
//! ```no_run
//! use adjutant_llm::{Request, complete};
//!
//! # async fn example() -> Result<(), adjutant_llm::Error> {
//! // Reads ANTHROPIC_API_KEY.
//! let model = adjutant_providers::model("anthropic/claude-sonnet-5")?;
//! let request = Request::new().system("Be brief.").user("What is the capital of Mali?");
//! let reply = complete(&model, request).await?;
//! println!("{} for {:?}", reply.text(), model.info().cost(&reply.usage));
//! # Ok(())
//! # }
//! ```

pub mod catalogue;
pub mod dialect;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
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

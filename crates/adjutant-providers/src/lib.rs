//! Streaming adapters for language model providers over one HTTP and SSE driver, and the choice of a model.
//!
//! [`Anthropic`] and [`Chat`] speak one wire each. [`model`] makes either of a name and the environment; [`Chooser`] does
//! it with injected variables, and finds something to talk to when nothing is configured. Nothing here retries.
//!
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

mod anthropic;
mod blocks;
mod body;
mod cache_key;
mod chat;
mod choose;
mod classify;
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
mod segments;
mod sse;
mod strict;
mod tape;
mod text;

pub use anthropic::Anthropic;
pub use chat::Chat;
pub use choose::{Chooser, Chosen, How, model};
pub use credentials::{Credential, Key};
pub use dialect::{Dialect, DialectPatch};
pub use driver::Timeouts;
pub use embed::{GeminiEmbedder, OpenAiEmbedder};
pub use gemini::Gemini;
pub use observe::{Exchange, Observe, Outgoing, Rewrite};
pub use openai::OpenAi;
pub use provider::{Provider, WireKind};
pub use tape::Tape;

//! Provider-neutral language model types: messages, transcript, streams, usage, errors. No HTTP.
//!
//! A [`Model`] turns a [`Request`] into a stream of [`Chunk`]s that ends in one finished [`Reply`]. The transcript
//! cannot be wrong: a [`Turn`] pairs every call with exactly one result, also through serde.
//!
//! ```
//! use adjutant_llm::{complete, Request, Script, ScriptedModel};
//!
//! # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
//! let model = ScriptedModel::new([Script::new().text("Good morning.")]);
//! let request = Request::new().system("Be brief.").user("Hello!");
//! let reply = complete(&model, request).await?;
//! assert_eq!(reply.text(), "Good morning.");
//! model.assert_done();
//! # Ok::<(), adjutant_llm::Error>(())
//! # }).expect("the scripted model answers");
//! ```

mod chunk;
mod collect;
mod content;
mod effort;
mod encodings;
mod error;
mod extra;
mod id;
mod info;
mod model;
mod options;
mod reply;
mod request;
mod result;
mod schema;
mod scripted;
mod tokens;
mod transcript;
mod turn;
mod usage;
mod user;
mod view;
mod world;

pub use chunk::{BlockKind, Chunk, ChunkStream, RateLimits, Warning, WarningKind};
pub use collect::Collector;
pub use content::{Content, Document, Image, Source};
pub use effort::{Effort, EffortError};
pub use encodings::Encodings;
pub use error::{Error, ErrorKind, Overflow};
pub use extra::Extra;
pub use id::{CallId, CallIdError, EntryId, ModelId, ThreadId, ToolName};
pub use info::{Inputs, ModelInfo, RequestOption, Structured, ThinkingControl};
pub use model::{FnModel, Model, complete, model_fn};
pub use options::{Cache, Format, Options, ToolChoice};
pub use reply::{Block, Call, Reply, Stop, Text, Thinking};
pub use request::{Request, ToolDecl};
pub use result::{CallResult, Status, Terminate};
pub use schema::{Schema, Violation};
pub use scripted::{Gate, Script, ScriptedModel};
pub use tokens::{Estimate, TokenCounter};
pub use transcript::{Custom, Entry, Stored, Summary, Transcript};
pub use turn::{OpenTurn, Turn, Unpaired};
pub use usage::{LongPrice, NanoUsd, Price, Usage};
pub use user::{Origin, UserMessage};
pub use view::{Edit, EditError, View};
pub use world::{FixedWorld, SystemWorld, World};

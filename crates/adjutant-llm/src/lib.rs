//! Provider-neutral language models: messages, transcript, streams, decorators, structured output, usage. No HTTP.

#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod cause;
mod chunk;
mod collect;
mod decorate;
mod effort;
mod embed;
mod entry;
mod error;
pub mod hidden;
mod info;
pub mod json;
pub mod media;
mod message;
mod model;
mod options;
pub mod private;
mod reading;
mod request;
mod schema;
mod scripted;
pub mod secret;
mod structured;
pub mod surrogates;
pub mod telemetry;
mod tokens;
mod transcript;
mod usage;
mod world;

pub use cause::Cause;
pub use chunk::{BlockKind, Chunk, ChunkStream, RateLimits, Warning, WarningKind};
pub use collect::{BlockSoFar, Collector};
pub use decorate::{Cassette, Ending, Exchange, Fallback, Fingerprint, Limiter, PerMinute};
pub use decorate::{RateLimit, Recorder, Replay, Retry, RetryPolicy, Timeout, TimeoutLimits};
pub use effort::{Effort, EffortError};
pub use embed::{
    Embedder, EmbedderInfo, Embeddings, FnEmbedder, HashEmbedder, Purpose, embed_all, embedder_fn,
};
pub use entry::{Custom, Entry, OpenTurn, Summary, Turn, Unpaired};
pub use error::{Error, ErrorDetails, ErrorKind, MediaPlace, Overflow, RefusedMedia};
pub use info::{
    Inputs, LimitSource, MediaLimits, ModelInfo, PromptCache, RequestOption, Structured,
    ThinkingControl,
};
pub use message::{
    Audio, Block, Call, CallId, CallIdError, CallResult, Content, Document, EntryId, Extra, Image,
    ModelId,
};
pub use message::{
    FinishReason, Origin, Reply, Source, Status, Terminate, Text, Thinking, ThreadId, ToolChange,
    ToolDecl, ToolName, UserMessage,
};
pub use model::{FnModel, Model, complete, model_fn};
pub use options::{Cache, Format, Options, ToolChoice};
pub use request::Request;
pub use schema::{Schema, Violation};
pub use scripted::{Gate, Script, ScriptedModel};
pub use structured::{PartialAnswer, Shape, Shaped, complete_as, complete_json};
pub use tokens::Estimate;
#[cfg(feature = "tiktoken")]
pub use tokens::Tiktoken;
pub use transcript::{Edit, EditError, Encodings, Meter, Stored, Transcript, View};
pub use usage::{LongPrice, NanoUsd, Price, Usage};
pub use world::{FixedWorld, SystemWorld, Utc, World};

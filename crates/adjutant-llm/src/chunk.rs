//! The pieces of a model's stream, and their grammar.

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use futures_core::Stream;
use serde::{Deserialize, Serialize};

use crate::{Block, CallId, Error, Extra, ModelId, Reply, ToolName, Usage};

/// A piece of a model's stream.
///
/// ```text
/// stream  := (attempt Retracted)* attempt (Done | Err)
/// attempt := Start (Open Delta* Close)* Usage* Warned*
/// ```
///
/// `Usage` and `Warned` may stand anywhere after `Start`; usage is cumulative for its attempt. `Pending` may stand anywhere.
/// Blocks may interleave, each by its number. Nothing follows `Done` or an error, and a stream that ends without either is itself an error.
///
/// Format: a JSON object whose `chunk` is the name of the variant, for example
/// `{"chunk":"delta","block":0,"text":"Hi"}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "chunk", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Chunk {
    /// An attempt begins.
    Start {
        /// The attempt, counted from the request's.
        attempt: u32,
        /// The model that answers.
        model: ModelId,
        /// The limits that the provider reported.
        limits: Box<RateLimits>,
        /// The changes that were made to the request before it was sent.
        warnings: Vec<Warning>,
    },
    /// A block begins.
    Open {
        /// The block's place in the reply, counted from 0.
        block: u32,
        /// The kind of the block.
        kind: BlockKind,
    },
    /// A block grows.
    Delta {
        /// The block's place in the reply.
        block: u32,
        /// The added part: text, thinking, or the raw arguments of a call.
        text: String,
    },
    /// A block is finished.
    Close {
        /// The block's place in the reply.
        block: u32,
        /// The finished block, so that deltas may be ignored.
        content: Arc<Block>,
    },
    /// The usage of the attempt so far.
    Usage {
        /// Normalised.
        usage: Usage,
        /// In the provider's form.
        raw: Extra,
    },
    /// Something about the answer was tolerated.
    Warned {
        /// The warning.
        warning: Warning,
    },
    /// The server keeps the connection alive, but has sent no content for a while.
    Pending {
        /// The time since the request, or since the last content.
        silent: Duration,
    },
    /// The attempt is void; another one follows. It was billed all the same.
    Retracted {
        /// The attempt that is void.
        attempt: u32,
        /// The error that ended the attempt.
        cause: Error,
        /// The known usage of the attempt.
        usage: Usage,
    },
    /// The reply is finished.
    Done(Arc<Reply>),
}

/// The kind of a block that begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum BlockKind {
    /// Text for the user.
    Text,
    /// Reasoning.
    Thinking,
    /// A call; its deltas are raw arguments.
    Call {
        /// Our id of the call.
        id: CallId,
        /// The tool of the call.
        name: ToolName,
    },
    /// Something only its issuer understands.
    Opaque,
}

/// The limits that a provider reported; `None` for limits that it did not mention.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RateLimits {
    /// Requests that are left until the reset.
    pub requests_left: Option<u64>,
    /// Tokens that are left until the reset.
    pub tokens_left: Option<u64>,
    /// The time until the limits are whole again.
    pub reset_after: Option<Duration>,
}

/// Something that was changed about a request, or tolerated in an answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Warning {
    /// The kind of the warning.
    pub kind: WarningKind,
    /// A description of the event, for a person.
    pub message: Arc<str>,
}

/// The kind of a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WarningKind {
    /// An option of the request was dropped, because the model refuses it.
    OptionDropped,
    /// Content of the request was omitted or changed, because the model does not support it.
    ContentChanged,
    /// Two tools have one name; the first one is offered.
    ToolShadowed,
    /// The model is offline, or provides less than the request needs.
    Degraded,
    /// Another model answers, because one before it failed.
    FellBack,
    /// A hook, an observer or a listener of the application failed and was passed over.
    HookFailed,
    /// A request is made with something else than was recorded of it.
    Diverged,
    /// The model stopped for a reason that is not known.
    UnknownStop,
    /// A run ended in a reply without text and calls.
    NothingSaid,
    /// Thinking of earlier replies did not reach the model, because something before it has changed.
    ThinkingDropped,
}

/// The stream of a model.
pub type ChunkStream = Pin<Box<dyn Stream<Item = Result<Chunk, Error>> + Send>>;

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

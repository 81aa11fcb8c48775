//! The reply of a model: blocks in order, the reason of its end, and its cost.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{
    CallId, Extra, ModelId, ToolName, Usage,
    reading::{self, Tagged},
};

/// A finished or interrupted message of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The model that answered, as `provider/model`.
    pub model: ModelId,
    /// The blocks, in the order of the reply.
    pub blocks: Vec<Arc<Block>>,
    /// The reason of its end.
    pub stop: FinishReason,
    /// The provider's own stop reason, if it sent one.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "reading::some_text"
    )]
    pub raw_stop: Option<Arc<str>>,
    /// The usage, normalised.
    #[serde(default)]
    pub usage: Usage,
    /// The usage as the provider reported it; `null` if it reported none.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub raw_usage: Extra,
    /// The provider's id of the reply, if it sent one.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "reading::some_text"
    )]
    pub wire_id: Option<Arc<str>>,
    /// The digest of the request that the signatures of its thinking are bound to, if the provider binds them.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "reading::some_text"
    )]
    pub prefix_digest: Option<Arc<str>>,
}

/// A piece of a reply.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Block {
    /// Text for the user.
    Text(Text),
    /// Reasoning before the answer.
    Thinking(Thinking),
    /// A request to run a tool.
    Call(Call),
    /// Something only its issuer understands; kept exactly, sent back to the same provider alone.
    Opaque {
        /// The provider that made it.
        issuer: Arc<str>,
        /// The block as it was received.
        value: Value,
    },
}

/// Text for the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Text {
    /// The text.
    #[serde(deserialize_with = "reading::text")]
    pub text: Arc<str>,
    /// The data that its provider keeps with it, for example citations.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub extra: Extra,
}

/// Reasoning before the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Thinking {
    /// The readable text; may be empty while the signature is not.
    #[serde(deserialize_with = "reading::text")]
    pub text: Arc<str>,
    /// The provider's opaque proof, replayed unchanged to the same model.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "reading::some_text"
    )]
    pub signature: Option<Arc<str>>,
    /// True if the text was withheld and `signature` holds the encrypted whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// The data that its provider keeps with it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub extra: Extra,
}

/// A request of the model to run a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Our id, unique in the thread.
    pub id: CallId,
    /// The provider's id, if it sent one.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "reading::some_text"
    )]
    pub wire_id: Option<Arc<str>>,
    /// The tool of the call.
    pub name: ToolName,
    /// The raw arguments exactly as the model wrote them; they need not be JSON.
    #[serde(deserialize_with = "reading::text")]
    pub args: Arc<str>,
    /// The data that its provider keeps with it, for example a signature.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub extra: Extra,
}

/// The reason of a reply's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The model finished its reply.
    End,
    /// A stop sequence was met.
    Sequence,
    /// The model waits for the results of its calls.
    Calls,
    /// The output limit or the context window was reached; calls of such a reply never run.
    Length,
    /// The provider paused a long turn; sending the reply back continues it.
    Paused,
    /// The model refused.
    Refused,
    /// A content filter stopped the reply.
    Filtered,
    /// The stream was cut by a cancel or an error; calls of such a reply never run.
    Interrupted,
}

impl Reply {
    /// An empty reply of a model.
    pub fn new(model: ModelId, stop: FinishReason) -> Self {
        Self {
            model,
            blocks: Vec::new(),
            stop,
            raw_stop: None,
            usage: Usage::default(),
            raw_usage: Extra::default(),
            wire_id: None,
            prefix_digest: None,
        }
    }

    /// The calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.blocks.iter().filter_map(|block| match &**block {
            Block::Call(call) => Some(call),
            Block::Text(_) | Block::Thinking(_) | Block::Opaque { .. } => None,
        })
    }

    /// The text blocks, joined.
    pub fn text(&self) -> String {
        let texts = self.blocks.iter().filter_map(|block| match &**block {
            Block::Text(said) => Some(&*said.text),
            Block::Thinking(_) | Block::Call(_) | Block::Opaque { .. } => None,
        });
        texts.collect()
    }

    /// True if it holds neither a call nor text that is more than white space.
    pub fn is_silent(&self) -> bool {
        !self.blocks.iter().any(|block| match &**block {
            Block::Text(said) => !said.text.trim().is_empty(),
            Block::Call(_) => true,
            Block::Thinking(_) | Block::Opaque { .. } => false,
        })
    }

    /// True if the calls of this reply may run: it was neither cut off nor refused.
    pub fn may_run_calls(&self) -> bool {
        match self.stop {
            FinishReason::End
            | FinishReason::Sequence
            | FinishReason::Calls
            | FinishReason::Paused => true,
            FinishReason::Length
            | FinishReason::Refused
            | FinishReason::Filtered
            | FinishReason::Interrupted => false,
        }
    }
}

impl<'de> Tagged<'de> for Block {
    const TAG: &'static str = "type";
    const VARIANTS: &'static [&'static str] = &["text", "thinking", "call", "opaque"];

    fn read<D: Deserializer<'de>>(variant: &'static str, fields: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Opaque {
            issuer: Arc<str>,
            value: Value,
        }
        match variant {
            "text" => Text::deserialize(fields).map(Block::Text),
            "thinking" => Thinking::deserialize(fields).map(Block::Thinking),
            "call" => Call::deserialize(fields).map(Block::Call),
            _ => Opaque::deserialize(fields)
                .map(|Opaque { issuer, value }| Block::Opaque { issuer, value }),
        }
    }
}

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        reading::read_tagged(deserializer)
    }
}

impl Block {
    /// A text block.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Block::Text(Text {
            text: text.into(),
            extra: Extra::default(),
        })
    }
}

impl Thinking {
    /// Readable reasoning without a signature.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self {
            text: text.into(),
            signature: None,
            redacted: false,
            extra: Extra::default(),
        }
    }
}

impl Call {
    /// A call of a tool with these raw arguments, without a provider's id.
    pub fn new(id: CallId, name: impl Into<ToolName>, args: impl Into<Arc<str>>) -> Self {
        Self {
            id,
            wire_id: None,
            name: name.into(),
            args: args.into(),
            extra: Extra::default(),
        }
    }
}

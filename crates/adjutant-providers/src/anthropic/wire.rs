//! The JSON of the Anthropic Messages API. Source: anthropic-sdk-python, 2026-08, and the Messages API reference.

use std::{borrow::Cow, fmt};

use adjutant_llm::ToolDecl;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::{
    call_ids::WireId,
    escape,
    host::Site,
    pieces::Args,
    text::{Index, Loose, Text},
    tool_names::wire_name,
};

/// A block of a message.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'a> {
    Text {
        #[serde(serialize_with = "escape::text")]
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        citations: Option<&'a Value>,
    },
    Image {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
    },
    Thinking {
        #[serde(serialize_with = "escape::text")]
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: WireId<'a>,
        name: Cow<'a, str>,
        input: Args<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        caller: Option<&'a Value>,
    },
    ToolResult {
        tool_use_id: WireId<'a>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Part<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    #[serde(untagged)]
    Opaque(&'a Value),
}

/// The source of the bytes of a picture or a document.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Source<'a> {
    Base64 {
        media_type: &'a str,
        #[serde(serialize_with = "escape::text")]
        data: &'a str,
    },
    Url {
        url: &'a str,
    },
    Text {
        media_type: &'a str,
        #[serde(serialize_with = "escape::text")]
        data: String,
    },
}

/// A tool of a request.
#[derive(Debug, Serialize)]
pub(super) struct Tool<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) description: &'a str,
    pub(super) input_schema: &'a Value,
    /// True if a message makes it available.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) defer_loading: bool,
}

impl<'a> Tool<'a> {
    pub(super) fn new(tool: &'a ToolDecl, input_schema: &'a Value) -> Self {
        Self {
            name: wire_name(tool.name.as_str()),
            description: &tool.description,
            input_schema,
            defer_loading: false,
        }
    }
}

/// The thinking setting. Source: anthropic-sdk-python `BetaThinkingConfigParam`, 2026-11.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Thinking {
    Disabled,
    Adaptive {
        #[serde(skip_serializing_if = "Option::is_none")]
        display: Option<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        block_binding: Option<BlockBinding>,
    },
    Enabled {
        budget_tokens: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        block_binding: Option<BlockBinding>,
    },
}

/// The setting for thinking blocks that no longer match the conversation before them; it needs [`betas`].
///
/// Source: "Preserved thinking" and "Fix a thinking block bound to a different conversation", platform.claude.com, 2026-11.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct BlockBinding {
    prefix_mismatch_behavior: &'static str,
}

/// The API drops such blocks and reports them, where it would refuse the request.
pub(super) const DROP_BLOCK: BlockBinding = BlockBinding {
    prefix_mismatch_behavior: "drop_block",
};

/// The headers that allow [`BlockBinding`], make answers report dropped blocks, and allow messages that change tools: with
/// definitions at the vendor's own site, with references elsewhere.
///
/// Source: "Mid-conversation system messages and tool changes", platform.claude.com, 2026-11.
pub(super) fn betas(site: Site) -> &'static [(&'static str, &'static str)] {
    match site {
        Site::Own => &[
            ("anthropic-beta", "thinking-binding-controls-2026-08-01"),
            ("anthropic-beta", "inline-tools-2026-09-15"),
        ],
        Site::Bedrock | Site::Vertex => &[
            ("anthropic-beta", "thinking-binding-controls-2026-08-01"),
            ("anthropic-beta", "mid-conversation-tool-changes-2026-07-01"),
        ],
    }
}

/// The setting for the tools that may or must be called. Source: anthropic-sdk-python `ToolChoiceParam`, 2026-09.
#[derive(Debug, Serialize)]
pub(super) struct Choice<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) disable_parallel_tool_use: bool,
}

/// An event of an answer; which fields are there depends on `kind`.
#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Loose<'a>,
    #[serde(default)]
    pub(super) index: Index,
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub(super) content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) message: Option<Begun<'a>>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    /// The changes to the context before the model saw it (beta).
    #[serde(borrow, default)]
    pub(super) context_management: Option<&'a RawValue>,
    /// The thinking that did not reach the answering model: it is sent again if another model takes over.
    #[serde(borrow, default)]
    pub(super) input_transformations: Option<&'a RawValue>,
}

/// A `content_block_delta` of the common kinds, which most events are: small, so that little is moved. An event with
/// anything else in it is read as an [`Event`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Growth<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'a str,
    pub(super) index: u64,
    #[serde(borrow)]
    pub(super) delta: Grown<'a>,
}

/// The delta of a [`Growth`]; the type of the block decides which field counts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Grown<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) _kind: &'a str,
    #[serde(borrow, default)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) thinking: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) partial_json: Option<Text<'a>>,
}

/// The type of an event, and nothing else of it.
#[derive(Debug, Deserialize)]
pub(super) struct Kind<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Loose<'a>,
}

/// The message of `message_start`.
#[derive(Debug, Deserialize)]
pub(super) struct Begun<'a> {
    #[serde(borrow, default)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    /// The thinking that did not reach the model.
    #[serde(borrow, default)]
    pub(super) input_transformations: Option<&'a RawValue>,
}

/// A whole answer, from servers that do not stream.
#[derive(Debug, Deserialize)]
pub(super) struct WholeMessage<'a> {
    #[serde(borrow, default)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) content: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) stop_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) container: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) context_management: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) input_transformations: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

/// The delta of `content_block_delta` or `message_delta`; the type of the block decides which field counts.
#[derive(Debug, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) thinking: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) signature: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) partial_json: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) citation: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<Text<'a>>,
    /// The reason why the model refused.
    #[serde(borrow, default)]
    pub(super) stop_details: Option<&'a RawValue>,
    /// The container of code execution: its id is part of the next request.
    #[serde(borrow, default)]
    pub(super) container: Option<&'a RawValue>,
}

/// The block of `content_block_start`.
#[derive(Debug, Deserialize)]
pub(super) struct Opened<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) thinking: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) signature: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) data: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) citations: Option<&'a RawValue>,
    /// The caller of a call; absent or `direct` for the model itself.
    #[serde(borrow, default)]
    pub(super) caller: Option<&'a RawValue>,
}

impl fmt::Display for Kind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.0.as_deref().unwrap_or_default())
    }
}

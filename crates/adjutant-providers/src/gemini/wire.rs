//! The JSON of the Gemini API. Source: python-genai and java-genai, 2026-11, and the API reference of v1beta.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use crate::{
    call_ids::WireId,
    escape,
    pieces::Args,
    text::{Few, Index, Loose, Text},
};

/// A message of a request.
#[derive(Debug, Serialize)]
pub(super) struct Content<'a> {
    pub(super) role: &'static str,
    pub(super) parts: &'a [Part<'a>],
}

/// The system prompt.
#[derive(Debug, Serialize)]
pub(super) struct Instruction<'a> {
    pub(super) parts: [Part<'a>; 1],
}

/// A part of a message. A signature belongs to exactly the part that it came with, and does not make it a thought.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part<'a> {
    #[serde(flatten)]
    pub(super) data: Payload<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thought_signature: Option<&'a str>,
}

/// The content of a part.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Payload<'a> {
    Text(#[serde(serialize_with = "escape::text")] Cow<'a, str>),
    InlineData(Blob<'a>),
    FileData(FileData<'a>),
    FunctionCall(FunctionCall<'a>),
    FunctionResponse(FunctionResponse<'a>),
    /// A part as it was received, including its signature.
    #[serde(untagged)]
    Opaque(Cow<'a, Map<String, Value>>),
}

/// Bytes in the message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Blob<'a> {
    pub(super) mime_type: &'a str,
    #[serde(serialize_with = "escape::text")]
    pub(super) data: &'a str,
}

/// Bytes at an address.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileData<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) mime_type: &'a str,
    pub(super) file_uri: &'a str,
}

#[derive(Debug, Serialize)]
pub(super) struct FunctionCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<WireId<'a>>,
    pub(super) name: Cow<'a, str>,
    pub(super) args: Args<'a>,
}

#[derive(Debug, Serialize)]
pub(super) struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<WireId<'a>>,
    pub(super) name: Cow<'a, str>,
    pub(super) response: Outcome<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) parts: Vec<Media<'a>>,
}

/// The outcome of a call.
///
/// Source: `FunctionResponse.response` in js-genai: `output` for the result, `error` for the error, 2026-11.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Outcome<'a> {
    Output(#[serde(serialize_with = "escape::text")] Cow<'a, str>),
    Error(#[serde(serialize_with = "escape::text")] Cow<'a, str>),
}

/// A picture or a document of a result.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Media<'a> {
    pub(super) inline_data: Blob<'a>,
}

/// A member of `tools`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Tool<'a> {
    #[serde(rename_all = "camelCase")]
    Functions {
        function_declarations: Vec<Declaration<'a>>,
    },
    Server(&'a Value),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Declaration<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parameters_json_schema: Option<Cow<'a, Value>>,
}

/// An event of an answer: a complete response that contains only new content.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Response<'a> {
    #[serde(borrow, default)]
    pub(super) candidates: Few<Candidate<'a>>,
    #[serde(borrow, default)]
    pub(super) usage_metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) prompt_feedback: Option<PromptFeedback<'a>>,
    #[serde(borrow, default)]
    pub(super) response_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptFeedback<'a> {
    #[serde(borrow, default)]
    pub(super) block_reason: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) block_reason_message: Loose<'a>,
}

/// One of several candidates; we request only one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    #[serde(default)]
    pub(super) index: Index,
    #[serde(borrow, default)]
    pub(super) content: Option<Said<'a>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) finish_message: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) grounding_metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) citation_metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) url_context_metadata: Option<&'a RawValue>,
}

/// The content of an answer.
#[derive(Debug, Deserialize)]
pub(super) struct Said<'a> {
    #[serde(borrow, default)]
    pub(super) parts: Few<Piece<'a>>,
}

/// The raw parts of the candidates of an event, for parts that are stored unchanged.
#[derive(Debug, Deserialize)]
pub(super) struct Whole<'a> {
    #[serde(borrow, default)]
    pub(super) candidates: Few<WholeCandidate<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct WholeCandidate<'a> {
    #[serde(borrow, default)]
    pub(super) content: Option<WholeContent<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct WholeContent<'a> {
    #[serde(borrow, default)]
    pub(super) parts: Few<&'a RawValue>,
}

/// The known fields of a part of an answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Piece<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<Text<'a>>,
    #[serde(default)]
    pub(super) thought: Option<bool>,
    #[serde(borrow, default)]
    pub(super) thought_signature: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) function_call: Option<Called<'a>>,
}

/// A call in an answer.
///
/// `partialArgs` and `willContinue` arrive only on request, and not from this API. Source: `FunctionCall` in
/// java-genai, 2026-11.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Called<'a> {
    #[serde(borrow, default)]
    pub(super) id: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) name: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) args: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) partial_args: Few<serde::de::IgnoredAny>,
    #[serde(default)]
    pub(super) will_continue: Option<bool>,
}

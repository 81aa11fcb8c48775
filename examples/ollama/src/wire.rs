//! The JSON of `/api/chat`. Source: "Chat", "Thinking", "Tool calling" and "Streaming", docs.ollama.com, 2026.

use std::borrow::Cow;

use adjutant_providers::wire::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

/// A message of a request.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Message<'a> {
    pub(crate) role: &'static str,
    pub(crate) content: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) thinking: Cow<'a, str>,
    /// Base64.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_call_id: Option<Cow<'a, str>>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Call<'a> {
    pub(crate) id: Cow<'a, str>,
    pub(crate) function: Function<'a>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Function<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) arguments: Args<'a>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Tool<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) function: Declaration<'a>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Declaration<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) description: &'a str,
    pub(crate) parameters: &'a Value,
}

/// A line of an answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Line<'a> {
    #[serde(borrow)]
    pub(crate) message: Spoken<'a>,
    pub(crate) done: bool,
    #[serde(borrow)]
    pub(crate) done_reason: Option<Cow<'a, str>>,
    pub(crate) prompt_eval_count: Option<u64>,
    pub(crate) eval_count: Option<u64>,
    #[serde(borrow)]
    pub(crate) error: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Spoken<'a> {
    pub(crate) content: String,
    pub(crate) thinking: Option<String>,
    #[serde(borrow)]
    pub(crate) tool_calls: Option<Vec<SpokenCall<'a>>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct SpokenCall<'a> {
    #[serde(default)]
    pub(crate) id: String,
    #[serde(borrow)]
    pub(crate) function: SpokenFunction<'a>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct SpokenFunction<'a> {
    pub(crate) name: String,
    #[serde(borrow, default)]
    pub(crate) arguments: Option<&'a RawValue>,
}

//! The JSON of the OpenAI Chat Completions API. Source: openai-python, 2026-08, and what compatible servers send.

use std::borrow::Cow;

use adjutant_llm::CallId;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, value::RawValue};

use crate::text::{Few, Loose, Text};

/// A message of a request.
#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub(super) enum Message<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: CallId,
        content: Cow<'a, str>,
    },
}

/// The content of a user message.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(&'a str),
    Parts(Vec<Part<'a>>),
}

/// A part of a user message.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl<'a> },
    File { file: File<'a> },
}

/// A picture.
#[derive(Debug, Serialize)]
pub(super) struct ImageUrl<'a> {
    pub(super) url: Address<'a>,
}

/// A document.
#[derive(Debug, Serialize)]
pub(super) struct File<'a> {
    pub(super) filename: &'a str,
    pub(super) file_data: Address<'a>,
}

/// An address, or bytes as a `data:` address.
#[derive(Debug)]
pub(super) enum Address<'a> {
    Url(&'a str),
    Data { media_type: &'a str, data: &'a str },
}

/// A call of a reply that is sent back.
#[derive(Debug, Serialize)]
pub(super) struct Call<'a> {
    pub(super) id: CallId,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) function: Function<'a>,
}

#[derive(Debug, Serialize)]
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: Cow<'a, str>,
}

/// A tool of a request.
#[derive(Debug, Serialize)]
pub(super) struct Tool<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) function: Declaration<'a>,
}

#[derive(Debug, Serialize)]
pub(super) struct Declaration<'a> {
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    pub(super) parameters: &'a Value,
}

/// A chunk of an answer.
#[derive(Debug, Deserialize)]
pub(super) struct Completion<'a> {
    #[serde(borrow, default)]
    pub(super) id: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) choices: Few<Choice<'a>>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Loose<'a>,
    /// Some servers put it here.
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(super) content: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) refusal: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning: Loose<'a>,
    /// On the heap when there is one: a text delta is moved several times while it is read, and should be small.
    #[serde(borrow, default)]
    pub(super) tool_calls: Option<Vec<CallDelta<'a>>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CallDelta<'a> {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(borrow, default)]
    pub(super) id: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) function: Option<FunctionDelta<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct FunctionDelta<'a> {
    #[serde(borrow, default)]
    pub(super) name: Loose<'a>,
    /// A text; a few servers send the object itself.
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
}

/// Tokens so far. `prompt_tokens` includes what the cache served.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Usage {
    #[serde(default)]
    pub(super) prompt_tokens: Option<u64>,
    #[serde(default)]
    pub(super) completion_tokens: Option<u64>,
    #[serde(default)]
    pub(super) total_tokens: Option<u64>,
    #[serde(default)]
    pub(super) prompt_tokens_details: Option<InputDetails>,
    #[serde(default)]
    pub(super) completion_tokens_details: Option<OutputDetails>,
    /// DeepSeek's name for what the cache served.
    #[serde(default)]
    pub(super) prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct InputDetails {
    #[serde(default)]
    pub(super) cached_tokens: Option<u64>,
    #[serde(default)]
    pub(super) cache_write_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct OutputDetails {
    #[serde(default)]
    pub(super) reasoning_tokens: Option<u64>,
}

impl Serialize for Address<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Address::Url(url) => serializer.serialize_str(url),
            Address::Data { media_type, data } => {
                serializer.collect_str(&format_args!("data:{media_type};base64,{data}"))
            }
        }
    }
}

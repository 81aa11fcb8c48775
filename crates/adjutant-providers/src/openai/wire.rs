//! The JSON of the OpenAI Responses API. Source: openai-python, 2026-08, and the Responses API reference.

use std::borrow::Cow;

use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::{Value, value::RawValue};

pub(super) use crate::address::Address;
use crate::{
    call_ids::WireId,
    counts::{InputDetails, OutputDetails, count, loose},
    escape,
    text::{Index, Loose, Text},
};

/// An item of a request's input.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item<'a> {
    Message(Message<'a>),
    Reasoning {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        summary: &'a Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<&'a Value>,
        #[serde(
            skip_serializing_if = "Option::is_none",
            serialize_with = "escape::some"
        )]
        encrypted_content: Option<&'a str>,
    },
    FunctionCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        call_id: WireId<'a>,
        name: Cow<'a, str>,
        #[serde(serialize_with = "escape::text")]
        arguments: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<&'a Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        caller: Option<&'a Value>,
    },
    FunctionCallOutput {
        call_id: WireId<'a>,
        output: Output<'a>,
    },
    #[serde(untagged)]
    Opaque(&'a Value),
}

/// A message; `id` and `status` are present if the model wrote it.
#[derive(Debug, Serialize)]
pub(super) struct Message<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a str>,
    pub(super) role: &'static str,
    pub(super) content: Vec<Part<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) phase: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<&'static str>,
}

/// A part of a message.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'a> {
    InputText {
        #[serde(serialize_with = "escape::text")]
        text: &'a str,
    },
    InputImage {
        detail: &'static str,
        image_url: Address<'a>,
    },
    InputFile {
        #[serde(flatten)]
        file: File<'a>,
    },
    OutputText {
        #[serde(serialize_with = "escape::text")]
        text: Cow<'a, str>,
        annotations: &'a [Value],
    },
}

/// The source of the bytes of a document.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum File<'a> {
    Data {
        filename: &'a str,
        file_data: Address<'a>,
    },
    Url {
        file_url: &'a str,
    },
}

/// The result of a call: text, or parts if it holds media.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Output<'a> {
    Text(#[serde(serialize_with = "escape::text")] Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

/// A tool of a request.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Tool<'a> {
    Function {
        name: Cow<'a, str>,
        description: &'a str,
        parameters: Cow<'a, Value>,
        strict: bool,
    },
    #[serde(untagged)]
    Given(&'a Value),
}

/// An event of an answer; which fields are there depends on `kind`.
#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Loose<'a>,
    #[serde(default)]
    pub(super) output_index: Index,
    #[serde(default)]
    pub(super) content_index: Index,
    #[serde(default)]
    pub(super) summary_index: Index,
    #[serde(borrow, default)]
    pub(super) item_id: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) delta: Loose<'a>,
    /// The whole of a text part.
    #[serde(borrow, default)]
    pub(super) text: Loose<'a>,
    /// The whole of a refusal.
    #[serde(borrow, default)]
    pub(super) refusal: Loose<'a>,
    /// The whole of a call's arguments.
    #[serde(borrow, default)]
    pub(super) arguments: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) response: Option<&'a RawValue>,
}

/// An event of the common kinds, which most events are: small, so that little is moved. An event with anything else in
/// it is read as an [`Event`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Growth<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'a str,
    #[serde(default)]
    pub(super) output_index: Option<u64>,
    #[serde(default)]
    pub(super) content_index: Option<u64>,
    #[serde(default)]
    pub(super) summary_index: Option<u64>,
    #[serde(default)]
    pub(super) item_id: Option<&'a str>,
    #[serde(borrow)]
    pub(super) delta: Text<'a>,
    #[serde(default, rename = "sequence_number")]
    pub(super) _sequence_number: IgnoredAny,
    #[serde(default, rename = "logprobs")]
    pub(super) _logprobs: IgnoredAny,
    #[serde(default, rename = "obfuscation")]
    pub(super) _obfuscation: IgnoredAny,
}

/// The type of an event, and nothing else of it.
#[derive(Debug, Deserialize)]
pub(super) struct Kind<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Loose<'a>,
}

/// An item of an answer; which fields are there depends on `kind`.
#[derive(Debug, Deserialize)]
pub(super) struct Done<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) id: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) status: Loose<'a>,
    /// Parts of a message or of reasoning; other items hold something else.
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) summary: Option<Value>,
    #[serde(borrow, default)]
    pub(super) encrypted_content: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) phase: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) call_id: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) name: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: Loose<'a>,
    #[serde(default)]
    pub(super) namespace: Value,
    #[serde(default)]
    pub(super) caller: Value,
}

/// A part of an item's content.
#[derive(Debug, Deserialize)]
pub(super) struct Said {
    #[serde(default)]
    pub(super) text: Option<String>,
    #[serde(default)]
    pub(super) refusal: Option<String>,
    #[serde(default)]
    pub(super) annotations: Option<Vec<Value>>,
}

/// The complete answer, in the first and the last event.
#[derive(Debug, Deserialize)]
pub(super) struct Response<'a> {
    #[serde(borrow, default)]
    pub(super) id: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) status: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) output: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    pub(super) incomplete_details: Option<Incomplete<'a>>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

/// The reason why an answer is not complete.
#[derive(Debug, Deserialize)]
pub(super) struct Incomplete<'a> {
    #[serde(borrow, default)]
    pub(super) reason: Loose<'a>,
}

/// Tokens. `input_tokens` includes tokens that the cache served or stored, and `output_tokens` includes reasoning.
/// Invalid counts are omitted.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    #[serde(deserialize_with = "count")]
    pub(super) input_tokens: Option<u64>,
    #[serde(deserialize_with = "loose")]
    pub(super) input_tokens_details: Option<InputDetails>,
    #[serde(deserialize_with = "count")]
    pub(super) output_tokens: Option<u64>,
    #[serde(deserialize_with = "loose")]
    pub(super) output_tokens_details: Option<OutputDetails>,
}

//! The JSON of the OpenAI Chat Completions API. Source: openai-python, 2026-08, and what compatible servers send.

use std::{borrow::Cow, fmt};

use adjutant_llm::CallId;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

pub(super) use crate::address::Address;
use crate::{
    counts::{InputDetails, OutputDetails, count, loose},
    escape,
    text::{Few, Fill, Index, Loose, Place, Text},
    tool_names::wire_name,
};

/// A message of a request.
///
/// Invariant: `content` is the last member of user and tool messages, so that a mark can stand in its last part.
#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub(super) enum Message<'a> {
    System { content: Content<'a> },
    Developer { content: Content<'a> },
    User { content: Content<'a> },
    Assistant(Assistant<'a>),
    Tool(Answer<'a>),
}

/// A reply that is sent back.
#[derive(Debug, Default, Serialize)]
pub(super) struct Assistant<'a> {
    pub(super) content: Option<Content<'a>>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "escape::some"
    )]
    pub(super) reasoning_content: Option<Cow<'a, str>>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "escape::some"
    )]
    pub(super) reasoning: Option<Cow<'a, str>>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "escape::some"
    )]
    pub(super) reasoning_text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) reasoning_details: Vec<Value>,
    #[serde(skip_serializing_if = "Few::is_empty")]
    pub(super) tool_calls: Few<Call<'a>>,
}

/// The result of a call.
#[derive(Debug, Serialize)]
pub(super) struct Answer<'a> {
    pub(super) tool_call_id: Id<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<Cow<'a, str>>,
    pub(super) content: Content<'a>,
}

/// The content of a message.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(#[serde(serialize_with = "escape::text")] Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

/// A part of a message.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'a> {
    Text {
        #[serde(serialize_with = "escape::text")]
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ImageUrl {
        image_url: ImageUrl<'a>,
    },
    File {
        file: File<'a>,
    },
    InputAudio {
        input_audio: InputAudio<'a>,
    },
    /// Mistral's form. Source: the reference of its chat completions, 2026.
    Thinking {
        thinking: [TextPart<'a>; 1],
        closed: bool,
    },
}

/// A text inside of thinking.
#[derive(Debug, Serialize)]
pub(super) struct TextPart<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    #[serde(serialize_with = "escape::text")]
    pub(super) text: &'a str,
}

/// Up to where a prompt is cached. Source: "Prompt caching", openrouter.ai/docs, 2026.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct CacheControl {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ttl: Option<&'static str>,
}

/// A picture.
#[derive(Debug, Serialize)]
pub(super) struct ImageUrl<'a> {
    pub(super) url: Address<'a>,
}

/// A recording, in base64.
#[derive(Debug, Serialize)]
pub(super) struct InputAudio<'a> {
    pub(super) data: &'a str,
    pub(super) format: &'static str,
}

/// A document.
#[derive(Debug, Serialize)]
pub(super) struct File<'a> {
    pub(super) filename: &'a str,
    pub(super) file_data: Address<'a>,
}

/// The id of a call in the form for a server.
#[derive(Debug, Clone, Copy)]
pub(super) enum Id<'a> {
    /// The vendor's own.
    Theirs(&'a str),
    Ours(CallId),
    Nine(CallId),
    Named(&'a adjutant_llm::Call),
}

/// A call of a reply that is sent back.
#[derive(Debug, Serialize)]
pub(super) struct Call<'a> {
    pub(super) id: Id<'a>,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) function: Function<'a>,
    /// The content that Gemini signs. Source: its OpenAI compatibility, "thought signatures", 2026.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(super) extra_content: &'a Value,
}

#[derive(Debug, Serialize)]
pub(super) struct Function<'a> {
    pub(super) name: Cow<'a, str>,
    #[serde(serialize_with = "escape::text")]
    pub(super) arguments: Cow<'a, str>,
}

/// A tool of a request.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Tool<'a> {
    Ours {
        #[serde(rename = "type")]
        kind: &'static str,
        function: Declaration<'a>,
    },
    Server(&'a Value),
}

#[derive(Debug, Serialize)]
pub(super) struct Declaration<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) description: &'a str,
    pub(super) parameters: Cow<'a, Value>,
}

/// A chunk of an answer.
#[derive(Debug, Default)]
pub(super) struct Completion<'a> {
    /// True if the id is passed over: every chunk repeats it.
    pub(super) knows_id: bool,
    pub(super) id: Loose<'a>,
    pub(super) choices: Few<Choice<'a>>,
    pub(super) usage: Option<&'a RawValue>,
    pub(super) error: Option<&'a RawValue>,
    /// Groq's own.
    pub(super) x_groq: Option<&'a RawValue>,
    /// Perplexity's sources: all so far, again and again.
    pub(super) citations: Option<&'a RawValue>,
    pub(super) search_results: Option<&'a RawValue>,
}

impl Completion<'_> {
    /// True if it contains anything besides its choices and its id.
    pub(super) fn says_more(&self) -> bool {
        let others = [
            self.usage,
            self.error,
            self.x_groq,
            self.citations,
            self.search_results,
        ];
        others.into_iter().flatten().any(|raw| raw.get() != "null")
    }
}

/// Source: groq-python, `XGroq`, 2026.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Groq<'a> {
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Loose<'a>,
}

#[derive(Debug, Default)]
pub(super) struct Choice<'a> {
    pub(super) index: Index,
    pub(super) has_delta: bool,
    pub(super) delta: Delta<'a>,
    /// A [`Delta`] too, from servers that do not really stream.
    pub(super) message: Option<&'a RawValue>,
    pub(super) finish_reason: Loose<'a>,
    /// The reason of the provider behind a router. Source: "API reference", openrouter.ai/docs, 2026-11.
    pub(super) native_finish_reason: Option<&'a RawValue>,
    /// Some servers put it here.
    pub(super) usage: Option<&'a RawValue>,
}

#[derive(Debug, Default)]
pub(super) struct Delta<'a> {
    pub(super) content: Option<Spoken<'a>>,
    pub(super) refusal: Loose<'a>,
    pub(super) reasoning_content: Loose<'a>,
    pub(super) reasoning: Loose<'a>,
    pub(super) reasoning_text: Loose<'a>,
    /// OpenRouter's pieces of thinking; a list.
    pub(super) reasoning_details: Option<&'a RawValue>,
    /// The sources of the text; a list.
    pub(super) annotations: Option<&'a RawValue>,
    pub(super) tool_calls: Few<CallDelta<'a>>,
    /// The one call of the form before `tool_calls`; a [`FunctionDelta`].
    ///
    /// Source: `ChoiceDelta.function_call` in openai-python, 2026-08, deprecated.
    pub(super) function_call: Option<&'a RawValue>,
}

/// A piece of the content: a text, or parts of it.
#[derive(Debug)]
pub(super) enum Spoken<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<SpokenPart<'a>>),
}

/// A part of the content. Source: the reference of Mistral's chat completions, 2026.
#[derive(Debug, Deserialize)]
pub(super) struct SpokenPart<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) text: Loose<'a>,
    /// A list of texts.
    #[serde(borrow, default)]
    pub(super) thinking: Option<&'a RawValue>,
    /// The results that a text rests on.
    #[serde(borrow, default)]
    pub(super) reference_ids: Option<&'a RawValue>,
}

#[derive(Debug, Default)]
pub(super) struct CallDelta<'a> {
    pub(super) index: Index,
    pub(super) id: Loose<'a>,
    pub(super) function: Option<FunctionDelta<'a>>,
    pub(super) extra_content: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct FunctionDelta<'a> {
    #[serde(borrow, default)]
    pub(super) name: Loose<'a>,
    /// A text; a few servers send the object itself, which is then the text.
    #[serde(borrow, default, deserialize_with = "arguments")]
    pub(super) arguments: Option<Cow<'a, str>>,
}

/// Reads a piece of arguments.
fn arguments<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Cow<'a, str>>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    if raw.starts_with('"') {
        let Text(text) = serde_json::from_str(raw).map_err(de::Error::custom)?;
        return Ok(Some(text));
    }
    Ok((raw != "null").then_some(Cow::Borrowed(raw)))
}

/// Tokens so far. `prompt_tokens` includes cached tokens. Invalid counts are omitted.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    #[serde(deserialize_with = "count")]
    pub(super) prompt_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    pub(super) completion_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    pub(super) total_tokens: Option<u64>,
    #[serde(deserialize_with = "loose")]
    pub(super) prompt_tokens_details: Option<InputDetails>,
    #[serde(deserialize_with = "loose")]
    pub(super) completion_tokens_details: Option<OutputDetails>,
    /// DeepSeek's name for what the cache served.
    #[serde(deserialize_with = "count")]
    pub(super) prompt_cache_hit_tokens: Option<u64>,
    /// Moonshot's place for what the cache served.
    #[serde(deserialize_with = "count")]
    pub(super) cached_tokens: Option<u64>,
    /// Perplexity's field for reasoning tokens.
    #[serde(deserialize_with = "count")]
    pub(super) reasoning_tokens: Option<u64>,
}

impl Id<'_> {
    pub(super) fn text(self) -> String {
        match self {
            Id::Theirs(id) => id.to_owned(),
            Id::Ours(id) => id.to_string(),
            Id::Nine(id) => nine(id),
            Id::Named(call) => format!(
                "functions.{}:{}",
                wire_name(call.name.as_str()),
                number(call.id)
            ),
        }
    }
}

impl Serialize for Id<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Id::Theirs(id) => serializer.serialize_str(id),
            Id::Ours(id) => id.serialize(serializer),
            Id::Nine(_) | Id::Named(_) => serializer.serialize_str(&self.text()),
        }
    }
}

/// A number of at least 2^20 for a call, as unique as its [`nine`].
fn number(id: CallId) -> u64 {
    let turn = id.turn % (1 << 33);
    (turn << 20) | (u64::from(id.attempt % 256) << 12) | u64::from(id.block % 4_096)
}

/// An id as nine letters and digits.
///
/// Invariant: no two ids have the same, as long as there are fewer than 2^33 entries, 256 attempts and 4,096 blocks:
/// together 53 bits, of which nine digits of base 62 hold a little more.
pub(super) fn nine(id: CallId) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut number = number(id);
    let mut text = ['0'; 9];
    for digit in text.iter_mut().rev() {
        *digit = char::from(DIGITS[(number % 62) as usize]);
        number /= 62;
    }
    text.iter().collect()
}

impl<'de: 'a, 'a> Fill<'de> for Completion<'a> {
    fn fill<A: MapAccess<'de>>(&mut self, member: &str, map: &mut A) -> Result<(), A::Error> {
        match member {
            "choices" => return map.next_value_seed(Place(&mut self.choices)),
            "id" if !self.knows_id => self.id = map.next_value()?,
            "usage" => self.usage = map.next_value()?,
            "error" => self.error = map.next_value()?,
            "x_groq" => self.x_groq = map.next_value()?,
            "citations" => self.citations = map.next_value()?,
            "search_results" => self.search_results = map.next_value()?,
            _ => map.next_value::<IgnoredAny>().map(drop)?,
        }
        Ok(())
    }
}

impl<'de: 'a, 'a> Fill<'de> for Choice<'a> {
    fn fill<A: MapAccess<'de>>(&mut self, member: &str, map: &mut A) -> Result<(), A::Error> {
        match member {
            "delta" => self.has_delta = map.next_value_seed(Place(&mut self.delta))?,
            "index" => self.index = map.next_value()?,
            "message" => self.message = map.next_value()?,
            "finish_reason" => self.finish_reason = map.next_value()?,
            "native_finish_reason" => self.native_finish_reason = map.next_value()?,
            "usage" => self.usage = map.next_value()?,
            _ => map.next_value::<IgnoredAny>().map(drop)?,
        }
        Ok(())
    }
}

impl<'de: 'a, 'a> Fill<'de> for Delta<'a> {
    fn fill<A: MapAccess<'de>>(&mut self, member: &str, map: &mut A) -> Result<(), A::Error> {
        match member {
            "content" => self.content = map.next_value()?,
            "tool_calls" => return map.next_value_seed(Place(&mut self.tool_calls)),
            "refusal" => self.refusal = map.next_value()?,
            "reasoning_content" => self.reasoning_content = map.next_value()?,
            "reasoning" => self.reasoning = map.next_value()?,
            "reasoning_text" => self.reasoning_text = map.next_value()?,
            "reasoning_details" => self.reasoning_details = map.next_value()?,
            "annotations" => self.annotations = map.next_value()?,
            "function_call" => self.function_call = map.next_value()?,
            _ => map.next_value::<IgnoredAny>().map(drop)?,
        }
        Ok(())
    }
}

impl<'de: 'a, 'a> Fill<'de> for CallDelta<'a> {
    fn fill<A: MapAccess<'de>>(&mut self, member: &str, map: &mut A) -> Result<(), A::Error> {
        match member {
            "index" => self.index = map.next_value()?,
            "id" => self.id = map.next_value()?,
            "function" => self.function = map.next_value()?,
            "extra_content" => self.extra_content = map.next_value()?,
            _ => map.next_value::<IgnoredAny>().map(drop)?,
        }
        Ok(())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Spoken<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpokenVisitor)
    }
}

struct SpokenVisitor;

impl<'de> Visitor<'de> for SpokenVisitor {
    type Value = Spoken<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of parts")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Spoken<'de>, E> {
        Ok(Spoken::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Spoken<'de>, E> {
        Ok(Spoken::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Spoken<'de>, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = seq.next_element()? {
            parts.push(part);
        }
        Ok(Spoken::Parts(parts))
    }
}

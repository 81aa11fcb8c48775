//! The options of an answer. An option that a model does not support is dropped with a warning.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Effort, ToolName};

/// The options of an answer. An unset one is the model's own default.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// The largest number of tokens of the reply; without it, the model's limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// Randomness, 0.0 to 2.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The probability mass that tokens are sampled from, 0.0 to 1.0; set this or the temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// A seed for reproducible answers, if the provider supports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Texts that end the reply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<Arc<str>>,
    /// The effort of thinking; the nearest supported value is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Effort>,
    /// The tools that the reply may or must call.
    #[serde(skip_serializing_if = "ToolChoice::is_auto")]
    pub tool_choice: ToolChoice,
    /// True if a reply may contain at most one call; otherwise any number.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sequential_calls: bool,
    /// The schema that the text of the reply must fit, where the wire has such a mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// The use of the provider's prompt cache.
    #[serde(skip_serializing_if = "Cache::is_short")]
    pub cache: Cache,
    /// Names the conversation to caches that go by a key; without it, one is made of the system prompt and the tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_key: Option<Arc<str>>,
    /// Tools that the provider runs itself, declared as its wire wants them; added after the other tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub server_tools: Vec<Value>,
    /// HTTP headers, by name. They may hold secrets: never stored, never printed.
    #[serde(skip)]
    pub headers: BTreeMap<String, String>,
    /// Fields that are added to the body of the request as they are.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// The tools that a reply may or must call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No calls, although the tools are declared.
    None,
    /// At least one, of the model's choice.
    Required,
    /// This one.
    Named(ToolName),
}

/// A JSON schema that the text of a reply must fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Format {
    /// The name of the answer's format, for example `invoice`: letters, digits, `_` and `-`, at most 64.
    pub name: Arc<str>,
    /// The schema.
    pub schema: Arc<Value>,
}

/// The use of a provider's prompt cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cache {
    /// Not requested; a provider may cache anyway.
    Off,
    /// For minutes: each use keeps it alive.
    #[default]
    Short,
    /// For an hour or longer, which costs more to write.
    Long,
}

impl Options {
    /// Adds an HTTP header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Adds a field to the body of the request.
    #[must_use]
    pub fn extra(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(name.into(), value.into());
        self
    }
}

impl Format {
    /// A schema by this name.
    pub fn new(name: impl Into<Arc<str>>, schema: impl Into<Arc<Value>>) -> Self {
        Self {
            name: name.into(),
            schema: schema.into(),
        }
    }
}

impl ToolChoice {
    fn is_auto(&self) -> bool {
        *self == ToolChoice::Auto
    }
}

impl Cache {
    fn is_short(&self) -> bool {
        *self == Cache::Short
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("max_output_tokens", &self.max_output_tokens)
            .field("temperature", &self.temperature)
            .field("top_p", &self.top_p)
            .field("seed", &self.seed)
            .field("stop", &self.stop)
            .field("thinking", &self.thinking)
            .field("tool_choice", &self.tool_choice)
            .field("sequential_calls", &self.sequential_calls)
            .field("format", &self.format)
            .field("cache", &self.cache)
            .field("cache_key", &self.cache_key)
            .field("server_tools", &self.server_tools)
            .field("headers", &self.headers.keys())
            .field("extra", &self.extra)
            .finish()
    }
}

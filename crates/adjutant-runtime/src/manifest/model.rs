//! Models of a manifest, their options, and budgets.

use std::{collections::BTreeMap, sync::Arc};

use adjutant_llm::Effort;
use adjutant_providers::TimeoutsPatch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Span;

/// The model of an agent: its name, or its name with fallbacks.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ModelChoice {
    /// Its name, as `anthropic/claude-sonnet-5` or `offline/planner`.
    Name(Arc<str>),
    /// A model with its fallbacks.
    Spec(ModelSpec),
}

/// A model with its fallbacks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelSpec {
    /// The first model.
    pub name: Arc<str>,
    /// The models that are used in order after a failure of the previous one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<Arc<str>>,
    /// The number of retries of a retryable failure, for each model; 2 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// The maximum number of requests per minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u32>,
    /// The maximum number of input tokens per minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens_per_minute: Option<u64>,
    /// The maximum time of a reply, including all retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// The deadlines of each model, if they differ from its provider's.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub timeouts: TimeoutsSpec,
}

/// The timeouts for a model's server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct TimeoutsSpec {
    /// The time until a connection is established.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect: Option<Span>,
    /// The time from the request to the first byte of the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<Span>,
    /// The time between two chunks of the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Span>,
    /// The time without content, in which only keep-alives arrive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silence: Option<Span>,
    /// The time of one attempt from the request to the end of the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Span>,
}

impl From<TimeoutsSpec> for TimeoutsPatch {
    fn from(spec: TimeoutsSpec) -> Self {
        let length = |span: Option<Span>| span.map(|it| it.0);
        let mut patch = Self::default();
        patch.connect = length(spec.connect);
        patch.first_byte = length(spec.first_byte);
        patch.idle = length(spec.idle);
        patch.silence = length(spec.silence);
        patch.total = length(spec.total);
        patch
    }
}

impl ModelSpec {
    /// Creates a model with this name, without fallbacks.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            fallbacks: Vec::new(),
            retries: None,
            requests_per_minute: None,
            input_tokens_per_minute: None,
            timeout: None,
            timeouts: TimeoutsSpec::default(),
        }
    }
}

/// The options of model requests.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct OptionsSpec {
    /// The maximum number of tokens of a reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// The sampling temperature, from 0 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The probability mass of nucleus sampling, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The seed for reproducible replies, if the provider supports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Texts that end a reply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<Arc<str>>,
    /// The thinking effort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Effort>,
    /// True if a reply may contain at most one call.
    #[serde(skip_serializing_if = "super::is_default")]
    pub sequential_calls: bool,
    /// True to enable web search by its provider.
    #[serde(skip_serializing_if = "super::is_default")]
    pub web_search: bool,
    /// Headers of every request. Not for credentials.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Additional fields of the request body.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// The maximum usage of a run and all its sub-agents; an omitted field has no limit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct BudgetSpec {
    /// Input and output tokens together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Cost in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Model requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
    /// Running time, without the time that a run waits for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Span>,
    /// Levels of agents below the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u16>,
    /// The number of concurrent agents, including the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<u32>,
}

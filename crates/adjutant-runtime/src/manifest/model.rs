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
    /// The number of times that a call that failed and may succeed is tried again, for each model. Without it, 2 times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// The maximum number of requests a minute that it may get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u32>,
    /// The maximum number of tokens of input a minute that it may get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens_per_minute: Option<u64>,
    /// The time that a reply may take from the request to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// The deadlines of each model, if they differ from its provider's.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub timeouts: TimeoutsSpec,
}

/// The times that the server of a model is waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct TimeoutsSpec {
    /// The time until a connection is established.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect: Option<Span>,
    /// The time from the request to the first byte of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<Span>,
    /// The time between two pieces of the answer, whatever they hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Span>,
    /// The time without content, whatever keeps the connection alive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silence: Option<Span>,
    /// The time of one attempt from the request to the end of the answer.
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
    /// The model of this name, with nothing behind it.
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

/// The options of requests.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct OptionsSpec {
    /// The maximum number of tokens that a reply may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// The variety of replies, from 0 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The probability mass to sample from, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// A number for reproducible answers, if the provider supports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Texts that end a reply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<Arc<str>>,
    /// The effort that it is to spend on thinking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Effort>,
    /// True if a reply may hold one call at most.
    #[serde(skip_serializing_if = "super::is_default")]
    pub sequential_calls: bool,
    /// True if it searches the web, by a search that its provider runs itself.
    #[serde(skip_serializing_if = "super::is_default")]
    pub web_search: bool,
    /// Headers of every request. Not for credentials.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Fields of the request's body that the provider knows and Adjutant does not.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// The amounts that a run and everything under it may use; an amount that is omitted has no limit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct BudgetSpec {
    /// Tokens of input and output together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Requests to models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Calls of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
    /// Time from the prompt to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Span>,
    /// Levels of agents below the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u16>,
    /// The number of concurrent agents, including the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<u32>,
}

//! The abilities of a model, as data.

use serde::{Deserialize, Serialize};

use crate::{Effort, ModelId, NanoUsd, Price, Usage};

/// The abilities, limits and price of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// The model, as `provider/model`.
    pub id: ModelId,
    /// The number of tokens that a request and its reply may hold together; 0 if it is unknown.
    pub context_window: u64,
    /// The maximum number of tokens of a reply, the default of `Options::max_output_tokens`; 0 if it is unknown.
    pub max_output_tokens: u64,
    /// The origin of these limits.
    #[serde(default, skip_serializing_if = "LimitSource::is_known")]
    pub limits: LimitSource,
    /// True if the provider silently cuts off input that does not fit the window.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cuts_silently: bool,
    /// The kinds of content in messages that the model accepts in addition to text.
    pub inputs: Inputs,
    /// The request options that this model refuses; they are dropped with a warning.
    #[serde(default)]
    pub refuses: Vec<RequestOption>,
    /// The efforts that it accepts, ascending; empty if the effort cannot be set.
    #[serde(default)]
    pub efforts: Vec<Effort>,
    /// The way in which the effort is sent.
    #[serde(default)]
    pub thinking: ThinkingControl,
    /// The way in which it is made to answer by a schema.
    #[serde(default)]
    pub structured: Structured,
    /// True if the provider checks that nothing before a signed thinking block has changed since the model signed it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub thinking_binding: bool,
    /// The largest number of tools that a request may declare; `None` if no limit is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tools: Option<usize>,
    /// The price, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The known model that a deployment serves under another name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_model: Option<ModelId>,
    /// True if the model takes function tools only on the Responses API. Models on that wire do not have it set.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tools_need_responses: bool,
    /// The parameters that control the prompt cache of a model of OpenAI.
    #[serde(default)]
    pub prompt_cache: PromptCache,
    /// The limits on the media of a request; `None` for the provider's limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<MediaLimits>,
}

/// The parameters that control the prompt cache of a model of OpenAI.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PromptCache {
    /// `prompt_cache_key` at most: nothing else is known of the model.
    #[default]
    Key,
    /// `prompt_cache_retention`, for models before GPT-5.6.
    Retention,
    /// `prompt_cache_options`, for GPT-5.6 and later models.
    Options,
}

/// The origin of a model's limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LimitSource {
    /// The application, its configuration or the catalogue.
    #[default]
    Known,
    /// The server that runs the model.
    Server,
    /// Neither the application nor the server: unknown limits, or the defaults of the server's vendor.
    Assumed,
}

/// The limits on the media of one request; zero is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MediaLimits {
    /// The maximum number of images.
    pub images: usize,
    /// The maximum number of bytes of one image, in base64.
    pub image_bytes: usize,
    /// The maximum number of pixels of a side of an image.
    pub edge: u32,
    /// The number of images above which a side has at most 2,000 pixels.
    pub crowd: usize,
    /// The maximum number of bytes of all media, in base64.
    pub bytes: usize,
}

/// The kinds of content in messages that a model accepts in addition to text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Inputs {
    /// Pictures.
    pub images: bool,
    /// Documents.
    pub documents: bool,
    /// Recordings of sound.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub audio: bool,
}

/// The way in which the effort is sent to a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ThinkingControl {
    /// By the name of a level.
    #[default]
    Level,
    /// By a number of tokens.
    Budget,
}

/// The way in which a model is made to answer by a schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Structured {
    /// The wire takes a schema for the text of the reply.
    Native,
    /// By a call that it is forced to make.
    #[default]
    Tool,
    /// By asking for it.
    Prompt,
}

/// An option of a request that a model may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RequestOption {
    /// `Options::max_output_tokens`.
    MaxOutputTokens,
    /// `Options::temperature`.
    Temperature,
    /// `Options::top_p`.
    TopP,
    /// `Options::seed`.
    Seed,
    /// `Options::stop`.
    Stop,
    /// Any `Options::tool_choice` but `Auto` and `None`.
    ForcedCalls,
    /// `Options::sequential_calls`.
    SequentialCalls,
}

impl ModelInfo {
    /// A model with a 128,000 token window, 8,192 output tokens, text only, at an unknown price.
    pub fn new(id: impl Into<ModelId>) -> Self {
        Self {
            id: id.into(),
            context_window: 128_000,
            max_output_tokens: 8_192,
            limits: LimitSource::Known,
            cuts_silently: false,
            inputs: Inputs::default(),
            refuses: Vec::new(),
            efforts: Vec::new(),
            thinking: ThinkingControl::default(),
            structured: Structured::default(),
            thinking_binding: false,
            max_tools: None,
            price: None,
            base_model: None,
            tools_need_responses: false,
            prompt_cache: PromptCache::default(),
            media: None,
        }
    }

    /// A text-only model with unknown limits, at an unknown price.
    pub fn unknown(id: impl Into<ModelId>) -> Self {
        Self {
            context_window: 0,
            max_output_tokens: 0,
            limits: LimitSource::Assumed,
            ..Self::new(id)
        }
    }

    /// Returns the context window, or `None` if it is unknown.
    pub fn window(&self) -> Option<u64> {
        Some(self.context_window).filter(|tokens| *tokens > 0)
    }

    /// Returns the maximum number of tokens of a reply, or `None` if it is unknown.
    pub fn output_limit(&self) -> Option<u64> {
        Some(self.max_output_tokens).filter(|tokens| *tokens > 0)
    }

    /// The part of the id before the first slash.
    pub fn provider(&self) -> &str {
        self.id
            .as_str()
            .split_once('/')
            .map_or("", |(provider, _)| provider)
    }

    /// The part of the id after the first slash: the name that the provider knows.
    pub fn name(&self) -> &str {
        self.id
            .as_str()
            .split_once('/')
            .map_or(self.id.as_str(), |(_, name)| name)
    }

    /// Returns the name of the known model behind this one, from `base_model` if it is set.
    pub fn base_name(&self) -> &str {
        let base = self.base_model.as_ref().map(ModelId::as_str);
        base.and_then(|id| id.split_once('/'))
            .map_or(self.name(), |(_, name)| name)
    }

    /// Returns the nearest effort that this model has: the same, else the next higher, else the next lower. `Off` is
    /// used only for `Off`. `None` if the effort cannot be set.
    pub fn effort(&self, wanted: Effort) -> Option<Effort> {
        let above = self
            .efforts
            .iter()
            .copied()
            .filter(|it| *it >= wanted)
            .min();
        let thinks = |it: &Effort| wanted == Effort::Off || *it != Effort::Off;
        above.or_else(|| self.efforts.iter().copied().filter(thinks).max())
    }

    /// Returns the cost of one call's usage, if the price is known.
    pub fn cost(&self, usage: &Usage) -> Option<NanoUsd> {
        self.price.map(|price| price.cost(usage))
    }
}

impl LimitSource {
    /// True if the data does not come from a server or an assumption.
    pub fn is_known(&self) -> bool {
        *self == Self::Known
    }
}

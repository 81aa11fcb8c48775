//! The deviations of servers from each other on the Chat Completions wire: plain data, one constant for each vendor.

mod hosted;
mod local;

use std::borrow::Cow;

use adjutant_llm::Effort;
use serde::{Deserialize, Serialize};

use crate::driver::Auth;

/// A text that a constant or a configuration holds.
type ConstText = Cow<'static, str>;

/// Declares the dialect, and the same with everything optional.
macro_rules! dialect {
    ($($(#[doc = $doc:literal])* $name:ident: $kind:ty,)*) => {
        /// The dialect of one vendor or server: the things it does in its own way on the Chat Completions wire.
        ///
        /// [`Dialect::for_provider`] returns the dialects of many providers. [`Dialect::patched`] changes single fields, for
        /// example from a configuration file.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[non_exhaustive]
        pub struct Dialect {
            $($(#[doc = $doc])* pub $name: $kind,)*
        }

        /// Fields of a [`Dialect`] that are set to something else; unknown ones are refused.
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        #[non_exhaustive]
        pub struct DialectPatch {
            $(
                $(#[doc = $doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $name: Option<$kind>,
            )*
        }

        impl Dialect {
            /// Returns the dialect with the fields that a patch sets.
            #[must_use]
            pub fn patched(mut self, patch: DialectPatch) -> Self {
                $(if let Some(value) = patch.$name {
                    self.$name = value;
                })*
                self
            }
        }
    };
}

dialect! {
    /// The provider: the part of a model's name before the slash.
    name: ConstText,
    /// The base URL, including the version, to which `path` is added; empty if there is no common one.
    base_url: ConstText,
    /// The environment variable that holds another address.
    base_url_variable: ConstText,
    /// The environment variables that may hold the key, in order of preference; empty for servers without keys.
    key_variables: Cow<'static, [ConstText]>,
    /// The path that is added to the base URL, with a query if one is needed.
    path: ConstText,
    /// The way in which the key is sent.
    key_header: KeyHeader,
    /// The field for the limit of the reply.
    limit: LimitField,
    /// The role of the system prompt.
    system: SystemRole,
    /// True if `store: false` is sent.
    store: bool,
    /// True if `stream_options` is sent, which requests the usage.
    stream_options: bool,
    /// True if `stop` is known.
    stop: bool,
    /// The fields that set the effort.
    thinking: ThinkingFormat,
    /// True if models with optional thinking can think in requests with tools; otherwise it is turned off.
    thinks_beside_tools: bool,
    /// The names of the efforts.
    efforts: EffortNames,
    /// The way in which thinking goes back to the model that thought it.
    replay: ThinkingReplay,
    /// The form of the ids of calls that the vendor did not give itself.
    call_ids: CallIds,
    /// The largest number of characters of the vendor's own ids that it accepts back.
    longest_call_id: usize,
    /// True if tools can be declared; otherwise they are omitted, and calls in the history are sent as text.
    tools: bool,
    /// The `tool_choice` that forces a call; empty if the server has no such value.
    choice_required: ConstText,
    /// True if `tool_choice` can demand one tool.
    choice_named: bool,
    /// True if `tool_choice` can forbid calls; otherwise the tools are omitted.
    choice_none: bool,
    /// True if a call can be forced while the model thinks; otherwise only if thinking is off.
    forced_thinking: bool,
    /// True if `parallel_tool_calls` is known.
    parallel_calls: bool,
    /// True if `tool_stream: true` is sent together with tools; without it arguments come in one piece.
    tool_stream: bool,
    /// The way in which a reply is held to a schema.
    structured: StructuredField,
    /// True if a schema that a strict mode takes is declared strict.
    strict_schemas: bool,
    /// True if `prompt_cache_key` is known.
    cache_key: bool,
    /// True if `prompt_cache_retention` and `prompt_cache_options` are supported, for models that accept them.
    cache_options: bool,
    /// True if `cache_control` marks the prefix to cache, for models whose name begins with `anthropic/`.
    cache_marks: bool,
    /// The order in which roles may follow each other.
    order: RoleOrder,
    /// True if results of calls carry the name of the tool.
    result_names: bool,
    /// True if results of calls can contain images; otherwise these follow in a user message.
    result_images: bool,
    /// True if user messages can contain images, if the model accepts them.
    images: bool,
    /// True if user messages can contain documents, if the model accepts them.
    files: bool,
    /// True if the content of a message with only calls can be `null`; otherwise it is empty.
    null_content: bool,
    /// True if an input that is too long is answered as if nothing were wrong.
    silent_overflow: bool,
    /// True if models may write their thinking in `<think>` tags at the start of the text.
    think_tags: bool,
}

/// The way in which the key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeyHeader {
    /// `Authorization: Bearer <key>`.
    Bearer,
    /// `api-key: <key>`.
    ApiKey,
}

impl From<KeyHeader> for Auth {
    fn from(header: KeyHeader) -> Self {
        match header {
            KeyHeader::Bearer => Auth::Bearer,
            KeyHeader::ApiKey => Auth::Header("api-key"),
        }
    }
}

/// The field for the limit of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LimitField {
    /// `max_completion_tokens`.
    MaxCompletionTokens,
    /// `max_tokens`.
    MaxTokens,
}

/// The role of the system prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SystemRole {
    /// `system`.
    System,
    /// `developer` for models that think, `system` for others.
    Developer,
}

/// The fields that set the effort. Without an effort, no format sends anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ThinkingFormat {
    /// The effort cannot be set.
    None,
    /// `reasoning_effort`.
    Effort,
    /// `thinking: {type}` together with `reasoning_effort`.
    Toggle,
    /// As `Toggle`, with `clear_thinking: false`, so that earlier thinking stays in view.
    ToggleKept,
    /// `thinking: {type}` for models with optional thinking, `reasoning_effort` for models with several efforts.
    Either,
    /// `enable_thinking`, and `thinking_budget` for models with a token budget.
    Enable,
    /// `chat_template_kwargs: {enable_thinking, reasoning_effort}`: what the template of the model makes of it.
    Template,
    /// `reasoning: {enabled}` for models with optional thinking, `reasoning_effort` for models with several efforts.
    Enabled,
    /// `reasoning: {effort}`, or `{max_tokens}` for models with a token budget.
    Reasoning,
    /// `thinking`, the name of the effort.
    Name,
}

/// The vendor's names of the efforts; an empty name is an unsupported effort.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EffortNames {
    /// [`Effort::Off`].
    pub off: ConstText,
    /// [`Effort::Minimal`].
    pub minimal: ConstText,
    /// [`Effort::Low`].
    pub low: ConstText,
    /// [`Effort::Medium`].
    pub medium: ConstText,
    /// [`Effort::High`].
    pub high: ConstText,
    /// [`Effort::Xhigh`].
    pub xhigh: ConstText,
    /// [`Effort::Max`].
    pub max: ConstText,
}

/// The way in which thinking goes back to the model that thought it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ThinkingReplay {
    /// Not at all.
    Never,
    /// In the field in which it came.
    Same,
    /// In `reasoning_content`, which must be present together with calls even if it is empty.
    Demanded,
    /// As the `reasoning_details` that came, exactly; as `Same` if none came.
    Details,
}

/// The form of the ids of calls that the vendor did not give itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallIds {
    /// As ours are: at most 40 letters, digits and `_`.
    Ours,
    /// Nine letters and digits.
    Nine,
    /// `functions.<name>:<number>`, the form of Kimi's models; vendor ids of other forms are replaced too.
    Named,
}

/// The way in which a reply is held to a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StructuredField {
    /// `response_format: {type: json_schema}`.
    Schema,
    /// `response_format: {type: json_object}`, with the schema in the system prompt.
    Object,
    /// Only the schema in the system prompt.
    None,
}

/// The order in which roles may follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RoleOrder {
    /// Any.
    Free,
    /// A user message may not follow the result of a call: an assistant message is inserted in between.
    BridgeResults,
    /// Users, or results of calls, and the model take turns, and a user begins.
    Alternate,
}

/// OpenAI's names. Source: its reference of `reasoning_effort`, 2026-11; `max` is new in GPT-5.6, `xhigh` is
/// supported by all models after GPT-5.1.
const EFFORTS: EffortNames = EffortNames {
    off: Cow::Borrowed("none"),
    minimal: Cow::Borrowed("minimal"),
    low: Cow::Borrowed("low"),
    medium: Cow::Borrowed("medium"),
    high: Cow::Borrowed("high"),
    xhigh: Cow::Borrowed("xhigh"),
    max: Cow::Borrowed("max"),
};

/// The names that most servers of open models know.
const THREE: EffortNames = EffortNames {
    minimal: Cow::Borrowed("low"),
    xhigh: Cow::Borrowed("high"),
    max: Cow::Borrowed("high"),
    ..EFFORTS
};

/// The dialect of a server of which nothing is known: the fields that have always been there.
const GENERIC: Dialect = Dialect {
    name: Cow::Borrowed("generic"),
    base_url: Cow::Borrowed(""),
    base_url_variable: Cow::Borrowed(""),
    key_variables: Cow::Borrowed(&[]),
    path: Cow::Borrowed("/chat/completions"),
    key_header: KeyHeader::Bearer,
    limit: LimitField::MaxTokens,
    system: SystemRole::System,
    store: false,
    stream_options: true,
    stop: true,
    thinking: ThinkingFormat::Effort,
    thinks_beside_tools: true,
    efforts: THREE,
    replay: ThinkingReplay::Same,
    call_ids: CallIds::Ours,
    longest_call_id: 256,
    tools: true,
    choice_required: Cow::Borrowed("required"),
    choice_named: true,
    choice_none: true,
    forced_thinking: true,
    parallel_calls: false,
    tool_stream: false,
    structured: StructuredField::Schema,
    strict_schemas: true,
    cache_key: false,
    cache_options: false,
    cache_marks: false,
    order: RoleOrder::Free,
    result_names: false,
    result_images: false,
    images: true,
    files: false,
    null_content: true,
    silent_overflow: false,
    think_tags: true,
};

/// All that are known, in alphabetical order of their names but for the first. The vendors of [`ON_RESPONSES`] speak them
/// under another name.
static DIALECTS: [&Dialect; 22] = [
    &hosted::OPENAI,
    &hosted::AZURE,
    &hosted::BEDROCK_MANTLE,
    &hosted::CEREBRAS,
    &hosted::DEEPSEEK,
    &hosted::FIREWORKS,
    &hosted::GITHUB,
    &hosted::GROQ,
    &hosted::HUGGINGFACE,
    &local::LLAMA_SERVER,
    &local::LMSTUDIO,
    &hosted::MISTRAL,
    &hosted::MOONSHOT,
    &hosted::NVIDIA,
    &local::OLLAMA,
    &hosted::OPENROUTER,
    &hosted::PERPLEXITY,
    &hosted::QWEN,
    &hosted::TOGETHER,
    &local::VLLM,
    &hosted::XAI,
    &hosted::ZAI,
];

/// Vendors that use the Responses API under their own name, and Chat Completions as `NAME-chat`.
pub(crate) const ON_RESPONSES: [&str; 3] = ["openai", "azure", "xai"];
/// The dialect of other vendors' models on Azure.
pub(crate) static AZURE_OTHERS: &Dialect = &hosted::AZURE_OTHERS;

impl Dialect {
    /// Returns the dialect of a provider, the part of a model's name before the slash; `generic` for unknown
    /// providers.
    ///
    /// `openai` and `openai-chat` are the same, and so are `azure` and `azure-chat`, `xai` and `xai-chat`.
    pub fn for_provider(provider: &str) -> &'static Dialect {
        let name = provider
            .strip_suffix("-chat")
            .filter(|name| ON_RESPONSES.contains(name))
            .unwrap_or(provider);
        Self::all().find(|it| it.name == name).unwrap_or(&GENERIC)
    }

    /// The dialects of all known providers.
    pub fn all() -> impl Iterator<Item = &'static Dialect> {
        DIALECTS.iter().copied()
    }
}

impl EffortNames {
    /// The name of an effort, if there is one.
    pub fn name(&self, effort: Effort) -> Option<&str> {
        let name = match effort {
            Effort::Off => &self.off,
            Effort::Minimal => &self.minimal,
            Effort::Low => &self.low,
            Effort::Medium => &self.medium,
            Effort::High => &self.high,
            Effort::Xhigh => &self.xhigh,
            _ => &self.max,
        };
        Some(&**name).filter(|name| !name.is_empty())
    }
}

impl Default for EffortNames {
    fn default() -> Self {
        EFFORTS
    }
}

#[cfg(test)]
mod tests;

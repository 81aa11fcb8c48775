//! The dialects of vendors that are reached over the network.

use super::*;

/// Source: openai-python and the reference of Chat Completions, 2026-08.
/// "Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use function tools, use
/// /v1/responses or set reasoning_effort to 'none'": openai/openai-openapi 541, BerriAI/litellm 34569, 2026-05 to 2026-09.
pub(super) const OPENAI: Dialect = Dialect {
    name: Cow::Borrowed("openai"),
    base_url: Cow::Borrowed("https://api.openai.com/v1"),
    base_url_variable: Cow::Borrowed("OPENAI_BASE_URL"),
    key_variables: Cow::Borrowed(&[Cow::Borrowed("OPENAI_API_KEY")]),
    limit: LimitField::MaxCompletionTokens,
    system: SystemRole::Developer,
    store: true,
    thinks_beside_tools: false,
    efforts: EFFORTS,
    replay: ThinkingReplay::Never,
    longest_call_id: 40,
    parallel_calls: true,
    cache_key: true,
    cache_options: true,
    files: true,
    think_tags: false,
    ..GENERIC
};

/// The v1 API, which needs no `api-version`. There is no common address: it is
/// `https://<resource>.openai.azure.com/openai/v1`.
///
/// Source: "Azure OpenAI API version lifecycle", learn.microsoft.com, 2026-11; no documents: pydantic/pydantic-ai 6423,
/// 2026-07.
pub(super) const AZURE: Dialect = Dialect {
    name: Cow::Borrowed("azure"),
    base_url: Cow::Borrowed(""),
    base_url_variable: Cow::Borrowed("AZURE_OPENAI_BASE_URL"),
    key_variables: Cow::Borrowed(&[Cow::Borrowed("AZURE_OPENAI_API_KEY")]),
    key_header: KeyHeader::ApiKey,
    files: false,
    think_tags: true,
    ..OPENAI
};

/// Models of other vendors on Azure accept only the common fields: "Unrecognized request argument supplied:
/// prompt_cache_key".
///
/// Source: vectorize-io/hindsight 3518, 2026-08.
pub(super) const AZURE_OTHERS: Dialect = Dialect {
    name: Cow::Borrowed("azure"),
    key_header: KeyHeader::ApiKey,
    ..GENERIC
};

/// Open models and OpenAI models; Anthropic models use Messages there. A few are served below `/openai/v1` only: set
/// another `path` for them.
///
/// Source: "APIs supported by Amazon Bedrock" and "Endpoints supported by Amazon Bedrock", docs.aws.amazon.com, 2026-09.
pub(super) const BEDROCK_MANTLE: Dialect = Dialect {
    name: Cow::Borrowed("bedrock-mantle"),
    base_url: Cow::Borrowed("https://bedrock-mantle.{AWS_REGION}.api.aws"),
    base_url_variable: Cow::Borrowed("BEDROCK_MANTLE_BASE_URL"),
    key_variables: Cow::Borrowed(&[Cow::Borrowed("AWS_BEARER_TOKEN_BEDROCK")]),
    path: Cow::Borrowed("/v1/chat/completions"),
    strict_schemas: false,
    ..GENERIC
};

/// The router accepts OpenAI's fields except `developer` and translates them. `cache_control` on text parts is for
/// Anthropic's models; `reasoning_details` must be sent back unchanged.
///
/// Source: "Reasoning tokens" (preserving reasoning) and "Prompt caching", openrouter.ai/docs, 2026.
pub(super) const OPENROUTER: Dialect = Dialect {
    name: Cow::Borrowed("openrouter"),
    base_url: Cow::Borrowed("https://openrouter.ai/api/v1"),
    base_url_variable: Cow::Borrowed("OPENROUTER_BASE_URL"),
    key_variables: Cow::Borrowed(&[Cow::Borrowed("OPENROUTER_API_KEY")]),
    thinking: ThinkingFormat::Reasoning,
    efforts: EFFORTS,
    replay: ThinkingReplay::Details,
    parallel_calls: true,
    cache_marks: true,
    files: true,
    ..GENERIC
};

/// Models that think in `<think>` tags by default do not with tools; without tools `reasoning_format` is an extra field.
///
/// Source: "Reasoning" and the API reference, console.groq.com/docs, 2026.
pub(super) const GROQ: Dialect = Dialect {
    name: Cow::Borrowed("groq"),
    base_url: Cow::Borrowed("https://api.groq.com/openai/v1"),
    base_url_variable: Cow::Borrowed("GROQ_BASE_URL"),
    key_variables: Cow::Borrowed(&[Cow::Borrowed("GROQ_API_KEY")]),
    limit: LimitField::MaxCompletionTokens,
    parallel_calls: true,
    ..GENERIC
};

/// Thinking of turns with calls must come back, or the request is refused; so is a demand to call while it thinks.
///
/// Source: "Thinking mode", api-docs.deepseek.com, 2026: efforts `low`, `high` and `max`; `json_object` only: the API
/// reference, 2026; deepseek-ai/DeepSeek-V3 1376, 2026-05: "Thinking mode does not support this tool_choice". Images in
/// messages of the user: "Vision", api-docs.deepseek.com, 2026-11.
pub(super) const DEEPSEEK: Dialect = Dialect {
    name: Cow::Borrowed("deepseek"),
    base_url: Cow::Borrowed("https://api.deepseek.com"),
    base_url_variable: Cow::Borrowed("DEEPSEEK_BASE_URL"),
    key_variables: Cow::Borrowed(&[Cow::Borrowed("DEEPSEEK_API_KEY")]),
    thinking: ThinkingFormat::Toggle,
    efforts: LOW_HIGH_MAX,
    replay: ThinkingReplay::Demanded,
    forced_thinking: false,
    structured: StructuredField::Object,
    think_tags: false,
    ..GENERIC
};

/// The model lists its efforts, up to `xhigh`. Thinking does not come back on this wire, which is deprecated.
///
/// Source: "Best practices" and "Grok 4.7", docs.x.ai, 2026-11.
pub(super) const XAI: Dialect = Dialect {
    name: Cow::Borrowed("xai"),
    base_url: Cow::Borrowed("https://api.x.ai/v1"),
    base_url_variable: Cow::Borrowed("XAI_BASE_URL"),
    key_variables: Cow::Borrowed(&[Cow::Borrowed("XAI_API_KEY")]),
    limit: LimitField::MaxCompletionTokens,
    efforts: EFFORTS,
    replay: ThinkingReplay::Never,
    parallel_calls: true,
    think_tags: false,
    ..GENERIC
};

/// Ids of nine letters and digits ("Tool call id was … but must be a-z, A-Z, 0-9, with a length of 9"); no user after a
/// result ("Unexpected role 'user' after role 'tool'").
///
/// Source: anomalyco/opencode 1680, datapizza-labs/datapizza-ai 98, "Reasoning" of docs.mistral.ai, and
/// @ai-sdk/mistral 3.0.52 for thinking that comes back, 2025-12 to 2026.
pub(super) const MISTRAL: Dialect = Dialect {
    name: Cow::Borrowed("mistral"),
    base_url: Cow::Borrowed("https://api.mistral.ai/v1"),
    base_url_variable: Cow::Borrowed("MISTRAL_BASE_URL"),
    key_variables: Cow::Borrowed(&[Cow::Borrowed("MISTRAL_API_KEY")]),
    stream_options: false,
    call_ids: CallIds::Nine,
    choice_required: Cow::Borrowed("any"),
    parallel_calls: true,
    cache_key: true,
    order: RoleOrder::BridgeResults,
    result_names: true,
    null_content: false,
    think_tags: false,
    ..GENERIC
};

/// Source: "Reasoning", docs.together.ai, 2026: models that always think, models with optional thinking, and models
/// with efforts.
pub(super) const TOGETHER: Dialect = Dialect {
    name: Cow::Borrowed("together"),
    base_url: Cow::Borrowed("https://api.together.xyz/v1"),
    base_url_variable: Cow::Borrowed("TOGETHER_BASE_URL"),
    key_variables: Cow::Borrowed(&[Cow::Borrowed("TOGETHER_API_KEY")]),
    thinking: ThinkingFormat::Enabled,
    strict_schemas: false,
    ..GENERIC
};

/// Source: "Reasoning", docs.fireworks.ai, 2026.
pub(super) const FIREWORKS: Dialect = Dialect {
    name: Cow::Borrowed("fireworks"),
    base_url: Cow::Borrowed("https://api.fireworks.ai/inference/v1"),
    base_url_variable: Cow::Borrowed("FIREWORKS_BASE_URL"),
    key_variables: Cow::Borrowed(&[Cow::Borrowed("FIREWORKS_API_KEY")]),
    ..GENERIC
};

/// Thinking comes in `reasoning`, and goes back in it.
///
/// Source: "Chat completions", "Reasoning" and "Image inputs", inference-docs.cerebras.ai, 2026-11.
pub(super) const CEREBRAS: Dialect = Dialect {
    name: Cow::Borrowed("cerebras"),
    base_url: Cow::Borrowed("https://api.cerebras.ai/v1"),
    base_url_variable: Cow::Borrowed("CEREBRAS_BASE_URL"),
    key_variables: Cow::Borrowed(&[Cow::Borrowed("CEREBRAS_API_KEY")]),
    limit: LimitField::MaxCompletionTokens,
    parallel_calls: true,
    ..GENERIC
};

/// K3 always thinks, with efforts `low`, `high` and `max`; for K2 thinking can be turned off. A forced call is
/// refused while a model thinks.
///
/// Source: moonshotai in sst/models.dev (2026-07), "Kimi" of java.agentscope.io, harn-vm 0.10.34 (a probe, 2026-07).
pub(super) const MOONSHOT: Dialect = Dialect {
    name: Cow::Borrowed("moonshot"),
    base_url: Cow::Borrowed("https://api.moonshot.ai/v1"),
    base_url_variable: Cow::Borrowed("MOONSHOT_BASE_URL"),
    key_variables: Cow::Borrowed(&[
        Cow::Borrowed("MOONSHOT_API_KEY"),
        Cow::Borrowed("KIMI_API_KEY"),
    ]),
    limit: LimitField::MaxCompletionTokens,
    thinking: ThinkingFormat::Either,
    efforts: LOW_HIGH_MAX,
    replay: ThinkingReplay::Demanded,
    forced_thinking: false,
    strict_schemas: false,
    think_tags: false,
    ..GENERIC
};

/// Only `tool_choice: auto`; an input that is too long is cut off in silence; without `tool_stream` arguments come late.
///
/// Source: "Thinking mode", docs.z.ai; "GLM" of java.agentscope.io; opencrabs 0.5.1 (`glm_reasoning.rs`), 2026.
pub(super) const ZAI: Dialect = Dialect {
    name: Cow::Borrowed("zai"),
    base_url: Cow::Borrowed("https://api.z.ai/api/paas/v4"),
    base_url_variable: Cow::Borrowed("ZAI_BASE_URL"),
    key_variables: Cow::Borrowed(&[
        Cow::Borrowed("ZAI_API_KEY"),
        Cow::Borrowed("ZHIPUAI_API_KEY"),
    ]),
    stream_options: false,
    thinking: ThinkingFormat::ToggleKept,
    efforts: LOW_HIGH_MAX,
    choice_required: Cow::Borrowed(""),
    choice_named: false,
    choice_none: false,
    tool_stream: true,
    structured: StructuredField::Object,
    silent_overflow: true,
    think_tags: false,
    ..GENERIC
};

/// DashScope's compatible mode, outside China. Schemas are for its newest models only, so `json_object` it is.
///
/// Source: "Deep thinking", alibabacloud.com/help, 2026-06; docs.instructorphp.com on schemas, 2026; cloudwego/eino 994,
/// 2026-04: "The tool_choice parameter does not support being set to required or object in thinking mode".
pub(super) const QWEN: Dialect = Dialect {
    name: Cow::Borrowed("qwen"),
    base_url: Cow::Borrowed("https://dashscope-intl.aliyuncs.com/compatible-mode/v1"),
    base_url_variable: Cow::Borrowed("DASHSCOPE_BASE_URL"),
    key_variables: Cow::Borrowed(&[
        Cow::Borrowed("DASHSCOPE_API_KEY"),
        Cow::Borrowed("QWEN_API_KEY"),
    ]),
    thinking: ThinkingFormat::Enable,
    forced_thinking: false,
    parallel_calls: true,
    structured: StructuredField::Object,
    think_tags: false,
    ..GENERIC
};

/// The thinking field depends on the model; most use their template, some use only `reasoning_effort`.
///
/// Source: the card of z-ai/glm5 in anomalyco/opencode 13584 (2026-02), NousResearch/hermes-agent 19888 (2026-05).
pub(super) const NVIDIA: Dialect = Dialect {
    name: Cow::Borrowed("nvidia"),
    base_url: Cow::Borrowed("https://integrate.api.nvidia.com/v1"),
    base_url_variable: Cow::Borrowed("NVIDIA_BASE_URL"),
    key_variables: Cow::Borrowed(&[Cow::Borrowed("NVIDIA_API_KEY")]),
    thinking: ThinkingFormat::Template,
    strict_schemas: false,
    ..GENERIC
};

/// No tools, no texts that end the reply, and strict turns: "After the (optional) system message(s), user or tool
/// message(s) should alternate with assistant message(s)".
///
/// Source: docs.perplexity.ai (Sonar), perplexityai/api-discussion 265, docs.getbifrost.ai, 2025 to 2026.
pub(super) const PERPLEXITY: Dialect = Dialect {
    name: Cow::Borrowed("perplexity"),
    base_url: Cow::Borrowed("https://api.perplexity.ai"),
    base_url_variable: Cow::Borrowed("PERPLEXITY_BASE_URL"),
    key_variables: Cow::Borrowed(&[Cow::Borrowed("PERPLEXITY_API_KEY")]),
    stream_options: false,
    stop: false,
    efforts: EffortNames {
        off: Cow::Borrowed(""),
        minimal: Cow::Borrowed("minimal"),
        ..THREE
    },
    replay: ThinkingReplay::Never,
    tools: false,
    strict_schemas: false,
    order: RoleOrder::Alternate,
    null_content: false,
    ..GENERIC
};

/// The router sends a request to one of many providers, so only what all of them know is used.
///
/// Source: "Inference Providers", huggingface.co/docs, 2026.
pub(super) const HUGGINGFACE: Dialect = Dialect {
    name: Cow::Borrowed("huggingface"),
    base_url: Cow::Borrowed("https://router.huggingface.co/v1"),
    base_url_variable: Cow::Borrowed("HUGGINGFACE_BASE_URL"),
    key_variables: Cow::Borrowed(&[Cow::Borrowed("HF_TOKEN")]),
    ..GENERIC
};

/// Source: "REST API endpoints for models inference", docs.github.com, 2026.
pub(super) const GITHUB: Dialect = Dialect {
    name: Cow::Borrowed("github"),
    base_url: Cow::Borrowed("https://models.github.ai/inference"),
    base_url_variable: Cow::Borrowed("GITHUB_MODELS_BASE_URL"),
    key_variables: Cow::Borrowed(&[
        Cow::Borrowed("GITHUB_MODELS_TOKEN"),
        Cow::Borrowed("GITHUB_TOKEN"),
    ]),
    replay: ThinkingReplay::Never,
    ..GENERIC
};

/// The efforts of DeepSeek, Moonshot and Z.ai; an effort between them is raised to the next one.
const LOW_HIGH_MAX: EffortNames = EffortNames {
    minimal: Cow::Borrowed("low"),
    medium: Cow::Borrowed("high"),
    xhigh: Cow::Borrowed("max"),
    ..EFFORTS
};

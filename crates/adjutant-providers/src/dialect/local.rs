//! The dialects of servers that people run themselves.

use super::*;

/// Thinking arrives in `reasoning`; `tool_choice` is not among the supported fields. A request that does not fit the
/// window is cut to half of the window, and the usage counts the rest.
///
/// Source: ollama/ollama 17427 and 3839, itayinbarr/little-coder 128, 2026-07 to 2026-09, on the cut; "OpenAI
/// compatibility", docs.ollama.com, 2026; ollama/ollama 14821, 2026-03: efforts `none`, `low` to `high`.
pub(super) const OLLAMA: Dialect = Dialect {
    name: Cow::Borrowed("ollama"),
    base_url: Cow::Borrowed("http://127.0.0.1:11434/v1"),
    base_url_variable: Cow::Borrowed("OLLAMA_BASE_URL"),
    choice_required: Cow::Borrowed(""),
    choice_named: false,
    choice_none: false,
    silent_overflow: true,
    ..GENERIC
};

/// A `tool_choice` that names a tool is silently taken for `auto`.
///
/// Source: tools/server/README.md of ggml-org/llama.cpp, and langchain-llama-cpp on build b11429, 2026.
pub(super) const LLAMA_SERVER: Dialect = Dialect {
    name: Cow::Borrowed("llama-server"),
    base_url: Cow::Borrowed("http://127.0.0.1:8080/v1"),
    base_url_variable: Cow::Borrowed("LLAMA_SERVER_BASE_URL"),
    thinking: ThinkingFormat::Template,
    choice_named: false,
    parallel_calls: true,
    ..GENERIC
};

/// Thinking is called `reasoning` since 0.11, `reasoning_content` before.
///
/// Source: "Reasoning outputs", docs.vllm.ai v0.26, 2026.
pub(super) const VLLM: Dialect = Dialect {
    name: Cow::Borrowed("vllm"),
    base_url: Cow::Borrowed("http://127.0.0.1:8000/v1"),
    base_url_variable: Cow::Borrowed("VLLM_BASE_URL"),
    key_variables: Cow::Borrowed(&[Cow::Borrowed("VLLM_API_KEY")]),
    limit: LimitField::MaxCompletionTokens,
    thinking: ThinkingFormat::Template,
    parallel_calls: true,
    ..GENERIC
};

/// "Invalid tool_choice type: 'object'. Supported string values: none, auto, required".
///
/// Source: lmstudio-ai/lmstudio-bug-tracker 670, and can1357/oh-my-pi 6925, 2025-05 to 2026-07. It cuts off the middle of a
/// request that does not fit: lmstudio-ai/lmstudio-js 47, odysseus-dev/odysseus 3535, 2026-06.
pub(super) const LMSTUDIO: Dialect = Dialect {
    name: Cow::Borrowed("lmstudio"),
    base_url: Cow::Borrowed("http://127.0.0.1:1234/v1"),
    base_url_variable: Cow::Borrowed("LMSTUDIO_BASE_URL"),
    choice_named: false,
    silent_overflow: true,
    ..GENERIC
};

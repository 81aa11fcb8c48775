//! The names of OpenTelemetry's conventions for generative AI that Adjutant uses, all of one version.
//!
//! Source: open-telemetry/semantic-conventions-genai, `docs/gen-ai` (2026, status: Development).

use crate::{ErrorKind, FinishReason};

/// The version of the conventions: the general ones that those for generative AI are written against.
pub const VERSION: &str = "1.44.0";

/// The operation: [`CHAT`], [`INVOKE_AGENT`] or [`EXECUTE_TOOL`].
pub const OPERATION_NAME: &str = "gen_ai.operation.name";
/// A call of a model.
pub const CHAT: &str = "chat";
/// A run of an agent.
pub const INVOKE_AGENT: &str = "invoke_agent";
/// A call of a tool.
pub const EXECUTE_TOOL: &str = "execute_tool";
/// The provider that serves the model, as the conventions name it.
pub const PROVIDER_NAME: &str = "gen_ai.provider.name";
/// The conversation.
pub const CONVERSATION_ID: &str = "gen_ai.conversation.id";
/// The type of the reply: `text` or `json`.
pub const OUTPUT_TYPE: &str = "gen_ai.output.type";
/// The kind of the failure: the name of the [`ErrorKind`].
pub const ERROR_TYPE: &str = "error.type";

/// The model of the request.
pub const REQUEST_MODEL: &str = "gen_ai.request.model";
/// The largest number of tokens of the reply.
pub const REQUEST_MAX_TOKENS: &str = "gen_ai.request.max_tokens";
/// Randomness.
pub const REQUEST_TEMPERATURE: &str = "gen_ai.request.temperature";
/// Texts that end the reply; a list.
pub const REQUEST_STOP_SEQUENCES: &str = "gen_ai.request.stop_sequences";
/// The effort of thinking.
pub const REQUEST_REASONING_LEVEL: &str = "gen_ai.request.reasoning.level";
/// True if the reply is streamed.
pub const REQUEST_STREAM: &str = "gen_ai.request.stream";

/// The provider's id of the reply.
pub const RESPONSE_ID: &str = "gen_ai.response.id";
/// The model that answered.
pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
/// The reason of the reply's end, as the conventions name it; a list of one.
pub const RESPONSE_FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
/// Seconds from the request to the first piece of the reply.
pub const RESPONSE_TIME_TO_FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";

/// All input tokens, cached ones included.
pub const USAGE_INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
/// All output tokens, reasoning included.
pub const USAGE_OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
/// Of the input tokens, those read from a cache.
pub const USAGE_CACHE_READ: &str = "gen_ai.usage.cache_read.input_tokens";
/// Of the input tokens, those written to a cache.
pub const USAGE_CACHE_WRITE: &str = "gen_ai.usage.cache_write.input_tokens";
/// Of the output tokens, those spent on reasoning.
pub const USAGE_REASONING: &str = "gen_ai.usage.reasoning.output_tokens";

/// The conversation that the model receives; JSON text.
pub const INPUT_MESSAGES: &str = "gen_ai.input.messages";
/// The reply of the model; JSON text.
pub const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
/// The system prompt; JSON text.
pub const SYSTEM_INSTRUCTIONS: &str = "gen_ai.system_instructions";

/// The id of an agent.
pub const AGENT_ID: &str = "gen_ai.agent.id";
/// The name of an agent.
pub const AGENT_NAME: &str = "gen_ai.agent.name";
/// The name of a tool.
pub const TOOL_NAME: &str = "gen_ai.tool.name";
/// The type of a tool; always `function`.
pub const TOOL_TYPE: &str = "gen_ai.tool.type";
/// The id of a call.
pub const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
/// The arguments of a call; JSON text.
pub const TOOL_CALL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
/// The result of a call.
pub const TOOL_CALL_RESULT: &str = "gen_ai.tool.call.result";

/// Returns the provider's name in the conventions, by the first part of a model's id; unknown names stay unchanged.
pub(crate) fn provider(of: &str) -> &str {
    match of {
        "gemini" | "google" => "gcp.gemini",
        "vertex" | "vertex_ai" | "google-vertex" => "gcp.vertex_ai",
        "bedrock" | "amazon-bedrock" => "aws.bedrock",
        "azure" | "azure-chat" | "azure-openai" => "azure.ai.openai",
        "mistral" => "mistral_ai",
        "moonshot" | "moonshotai" | "kimi" => "moonshot_ai",
        "watsonx" => "ibm.watsonx.ai",
        "xai" | "xai-chat" | "grok" => "x_ai",
        other => other,
    }
}

/// Returns the reason of a reply's end, as the conventions name it.
pub(crate) fn finish_reason(stop: FinishReason) -> &'static str {
    match stop {
        FinishReason::End | FinishReason::Sequence => "stop",
        FinishReason::Calls => "tool_call",
        FinishReason::Length => "length",
        FinishReason::Refused | FinishReason::Filtered => "content_filter",
        FinishReason::Paused => "paused",
        FinishReason::Interrupted => "error",
    }
}

/// Returns the failure for `error.type`: the name of the kind.
pub(crate) fn error_type(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Config => "config",
        ErrorKind::Auth => "auth",
        ErrorKind::Invalid => "invalid",
        ErrorKind::Overflow => "overflow",
        ErrorKind::RateLimited => "rate_limited",
        ErrorKind::Overloaded => "overloaded",
        ErrorKind::Network => "network",
        ErrorKind::Timeout => "timeout",
        ErrorKind::Refused => "refused",
        ErrorKind::Generation => "generation",
        ErrorKind::Protocol => "protocol",
        ErrorKind::Cancelled => "cancelled",
    }
}

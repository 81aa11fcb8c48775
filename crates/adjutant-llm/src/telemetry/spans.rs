//! The spans: of a model call, of an agent's run, of a tool's call.

use tracing::{Span, field::Empty};

use super::{Contents, messages, semconv};
use crate::{Call, CallResult, ModelInfo, Reply, Request, Status, Usage};

/// The span of one call of a model.
pub(super) fn chat_span(info: &ModelInfo, request: &Request, contents: Contents) -> Span {
    let options = &request.options;
    let span = tracing::info_span!(
        "chat",
        otel.name = format_args!("{} {}", semconv::CHAT, info.name()),
        otel.kind = "client",
        otel.status_code = Empty,
        otel.status_description = Empty,
        { semconv::OPERATION_NAME } = semconv::CHAT,
        { semconv::PROVIDER_NAME } = semconv::provider(info.provider()),
        { semconv::REQUEST_MODEL } = info.name(),
        { semconv::REQUEST_MAX_TOKENS } = options.max_output_tokens.map(int),
        { semconv::REQUEST_TEMPERATURE } = options.temperature,
        { semconv::REQUEST_STOP_SEQUENCES } = Empty,
        { semconv::REQUEST_REASONING_LEVEL } = options
            .thinking
            .and_then(|wanted| info.effort(wanted))
            .map(|it| it.name()),
        { semconv::REQUEST_STREAM } = true,
        { semconv::OUTPUT_TYPE } = options.format.as_ref().map(|_| "json"),
        { semconv::RESPONSE_ID } = Empty,
        { semconv::RESPONSE_MODEL } = Empty,
        { semconv::RESPONSE_FINISH_REASONS } = Empty,
        { semconv::RESPONSE_TIME_TO_FIRST_CHUNK } = Empty,
        { semconv::USAGE_INPUT_TOKENS } = Empty,
        { semconv::USAGE_OUTPUT_TOKENS } = Empty,
        { semconv::USAGE_CACHE_READ } = Empty,
        { semconv::USAGE_CACHE_WRITE } = Empty,
        { semconv::USAGE_REASONING } = Empty,
        { semconv::ERROR_TYPE } = Empty,
        { semconv::SYSTEM_INSTRUCTIONS } = Empty,
        { semconv::INPUT_MESSAGES } = Empty,
        { semconv::OUTPUT_MESSAGES } = Empty,
    );
    if !span.is_disabled() {
        if !options.stop.is_empty() {
            span.record(
                semconv::REQUEST_STOP_SEQUENCES,
                messages::json(&options.stop),
            );
        }
        if contents == Contents::Recorded {
            if !request.system.is_empty() {
                span.record(
                    semconv::SYSTEM_INSTRUCTIONS,
                    messages::system(&request.system),
                );
            }
            span.record(semconv::INPUT_MESSAGES, messages::input(&request.entries));
        }
    }
    span
}

/// Records a finished reply, without its usage.
pub(super) fn record_reply(span: &Span, reply: &Reply, contents: Contents) {
    if span.is_disabled() {
        return;
    }
    if let Some(id) = &reply.wire_id {
        span.record(semconv::RESPONSE_ID, &**id);
    }
    let model = reply.model.as_str();
    span.record(
        semconv::RESPONSE_MODEL,
        model.split_once('/').map_or(model, |(_, name)| name),
    );
    span.record(
        semconv::RESPONSE_FINISH_REASONS,
        messages::json(&[semconv::finish_reason(reply.stop)]),
    );
    if contents == Contents::Recorded {
        span.record(semconv::OUTPUT_MESSAGES, messages::output(reply));
    }
}

/// Opens the span of one run of an agent, under the current span.
///
/// Its usage and its errors are recorded later, by [`record_usage`] and [`record_error`].
pub fn agent_span(name: &str, id: &str, conversation: &str, model: &ModelInfo) -> Span {
    tracing::info_span!(
        "invoke_agent",
        otel.name = format_args!("{} {name}", semconv::INVOKE_AGENT),
        otel.kind = "internal",
        otel.status_code = Empty,
        otel.status_description = Empty,
        { semconv::OPERATION_NAME } = semconv::INVOKE_AGENT,
        { semconv::PROVIDER_NAME } = semconv::provider(model.provider()),
        { semconv::REQUEST_MODEL } = model.name(),
        { semconv::AGENT_NAME } = name,
        { semconv::AGENT_ID } = id,
        { semconv::CONVERSATION_ID } = conversation,
        { semconv::USAGE_INPUT_TOKENS } = Empty,
        { semconv::USAGE_OUTPUT_TOKENS } = Empty,
        { semconv::USAGE_CACHE_READ } = Empty,
        { semconv::USAGE_CACHE_WRITE } = Empty,
        { semconv::USAGE_REASONING } = Empty,
        { semconv::ERROR_TYPE } = Empty,
    )
}

/// Opens the span of one call of a tool, under the current span. Its result is recorded by [`record_result`].
pub fn tool_span(call: &Call, contents: Contents) -> Span {
    tracing::info_span!(
        "execute_tool",
        otel.name = format_args!("{} {}", semconv::EXECUTE_TOOL, call.name),
        otel.kind = "internal",
        otel.status_code = Empty,
        otel.status_description = Empty,
        { semconv::OPERATION_NAME } = semconv::EXECUTE_TOOL,
        { semconv::TOOL_NAME } = call.name.as_str(),
        { semconv::TOOL_TYPE } = "function",
        { semconv::TOOL_CALL_ID } = %call.id,
        { semconv::TOOL_CALL_ARGUMENTS } = (contents == Contents::Recorded).then_some(&*call.args),
        { semconv::TOOL_CALL_RESULT } = Empty,
        { semconv::ERROR_TYPE } = Empty,
    )
}

/// Records the result of a tool call on its span.
pub fn record_result(span: &Span, result: &CallResult, contents: Contents) {
    if span.is_disabled() {
        return;
    }
    if contents == Contents::Recorded {
        span.record(
            semconv::TOOL_CALL_RESULT,
            messages::truncate_text(&result.text()),
        );
    }
    if result.is_error() {
        record_error(span, status(result.status), "");
    }
}

/// Records the usage on the span of a model call or of a run; classes that are zero are omitted.
pub fn record_usage(span: &Span, usage: &Usage) {
    if span.is_disabled() {
        return;
    }
    span.record(semconv::USAGE_INPUT_TOKENS, int(usage.input()));
    span.record(semconv::USAGE_OUTPUT_TOKENS, int(usage.output));
    let details = [
        (semconv::USAGE_CACHE_READ, usage.cache_read),
        (semconv::USAGE_CACHE_WRITE, usage.cache_write),
        (semconv::USAGE_REASONING, usage.reasoning),
    ];
    for (name, tokens) in details.into_iter().filter(|(_, tokens)| *tokens > 0) {
        span.record(name, int(tokens));
    }
}

/// Marks a span as failed: by a kind of few values, and a message for people, which may be empty.
pub fn record_error(span: &Span, kind: &str, message: &str) {
    span.record(semconv::ERROR_TYPE, kind);
    span.record("otel.status_code", "ERROR");
    if !message.is_empty() {
        span.record("otel.status_description", messages::truncate_text(message));
    }
}

/// Converts to the number type of exporters, which would write unsigned numbers as text.
pub(super) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn status(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Failed => "failed",
        Status::UnknownTool => "unknown_tool",
        Status::InvalidArguments => "invalid_arguments",
        Status::Denied => "denied",
        Status::Panicked => "panicked",
        Status::TimedOut => "timed_out",
        Status::Cancelled => "cancelled",
        Status::OverLimit => "over_limit",
        Status::OutcomeUnknown => "outcome_unknown",
        Status::Truncated => "truncated",
    }
}

//! OpenAI Chat Completions: keys and errors. Requests are read in `request.rs`, streams written in `reply.rs`.
//!
//! Source: OpenAI API reference "Create chat completion" and "Streaming", August 2026.

mod options;
mod parts;
mod reply;
mod request;

use serde_json::{Value, json};

use crate::{received::Received, refusal::Refusal};

pub(crate) use reply::Encoder;
pub(crate) use request::decode;

/// The error message for an input that is too long.
const OVERFLOW: &str = "This model's maximum context length is 128000 tokens. However, your messages resulted in 128012 \
                        tokens. Please reduce the length of the messages.";

/// Checks the key.
pub(crate) fn admit(received: &Received) -> Result<(), Refusal> {
    let key = received
        .header("authorization")
        .and_then(|value| value.strip_prefix("Bearer "));
    if key.is_some_and(|key| !key.trim().is_empty()) {
        return Ok(());
    }
    let missing = "You didn't provide an API key. You need to provide your API key in an Authorization header using \
                   Bearer auth (i.e. Authorization: Bearer YOUR_KEY).";
    Err(Refusal::new(401, missing))
}

/// The body of an error, also within a stream.
pub(crate) fn error(refusal: &Refusal) -> Value {
    let (kind, code) = match refusal.status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        404 => ("invalid_request_error", Some("model_not_found")),
        429 => ("requests", Some("rate_limit_exceeded")),
        500.. => ("server_error", None),
        _ => ("invalid_request_error", None),
    };
    let code = refusal
        .code
        .as_deref()
        .or(refusal.overflow.then_some("context_length_exceeded"))
        .or(code);
    let message = refusal.message_or(OVERFLOW);
    json!({"error": {"message": message, "type": kind, "param": refusal.param, "code": code}})
}

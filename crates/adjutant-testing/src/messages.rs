//! Anthropic Messages: keys and errors. Requests are read in `request.rs`, streams written in `reply.rs`.
//!
//! Source: Anthropic API reference "Messages", "Streaming Messages" and "Errors", August 2026.

mod binding;
mod blocks;
mod reply;
mod request;
mod rules;

use serde_json::{Value, json};

use crate::{received::Received, refusal::Refusal};

pub(crate) use reply::Encoder;
pub(crate) use request::decode;

/// The error message for an input that is too long.
const OVERFLOW: &str = "prompt is too long: 200012 tokens > 200000 maximum";

/// Checks the key and the version.
pub(crate) fn admit(received: &Received) -> Result<(), Refusal> {
    match received.header("x-api-key") {
        None => return Err(Refusal::new(401, "x-api-key header is required")),
        Some("") => return Err(Refusal::new(401, "invalid x-api-key")),
        Some(_) => {}
    }
    match received.header("anthropic-version") {
        Some("2023-06-01") => Ok(()),
        Some(_) => Err(Refusal::invalid("anthropic-version: unknown version")),
        None => Err(Refusal::invalid("anthropic-version: header is required")),
    }
}

/// The body of an error; within a stream the request id is left out.
pub(crate) fn error(refusal: &Refusal, request_id: Option<&str>) -> Value {
    let kind = refusal.code.as_deref().unwrap_or(match refusal.status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 | 405 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        503 | 529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    });
    let mut error =
        json!({"type": "error", "error": {"type": kind, "message": refusal.message_or(OVERFLOW)}});
    if let Some(id) = request_id {
        error["request_id"] = id.into();
    }
    error
}

//! OpenAI Responses: errors. Requests are read in `request.rs`, `items.rs` and `options.rs`, streams written in
//! `reply.rs`. Keys work as in Chat Completions.
//!
//! Source: OpenAI API reference "Create a model response" and "Streaming events", August 2026.

mod items;
mod options;
mod reply;
mod request;
mod snapshot;

use serde_json::{Value, json};

use crate::refusal::Refusal;

pub(crate) use reply::Encoder;
pub(crate) use request::decode;

/// The error message for an input that is too long.
const OVERFLOW: &str =
    "Your input exceeds the context window of this model. Please adjust your input and try again.";

/// The body of an error with a status.
pub(crate) fn error(refusal: &Refusal) -> Value {
    let kind = match refusal.status {
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    };
    let (message, param) = (
        refusal.message_or(OVERFLOW),
        refusal.param.as_deref().map(place),
    );
    json!({"error": {"message": message, "type": kind, "param": param, "code": code(refusal)}})
}

/// The vendor's code for what went wrong.
fn code(refusal: &Refusal) -> Option<&str> {
    if refusal.code.is_some() {
        return refusal.code.as_deref();
    }
    match refusal.status {
        _ if refusal.overflow => Some("context_length_exceeded"),
        401 => Some("invalid_api_key"),
        429 => Some("rate_limit_exceeded"),
        500.. => Some("server_error"),
        _ => None,
    }
}

/// A place in the body as the vendor writes it: `input[2].id`.
fn place(path: &str) -> String {
    let step = |step: &str| match step.parse::<usize>() {
        Ok(at) => format!("[{at}]"),
        Err(_) => format!(".{step}"),
    };
    path.split('.')
        .map(step)
        .collect::<String>()
        .trim_start_matches('.')
        .to_owned()
}

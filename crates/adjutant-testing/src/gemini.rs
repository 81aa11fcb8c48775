//! Google Gemini: addresses, keys and errors. Requests are read in `request.rs`, `contents.rs` and `options.rs`,
//! streams written in `reply.rs`.
//!
//! Source: Gemini API reference "Generating content", guides "Function calling", "Thought signatures" and
//! "Troubleshooting", August 2026.

mod contents;
mod options;
mod reply;
mod request;

use std::time::Duration;

use serde_json::{Value, json};

use crate::{received::Received, refusal::Refusal};

pub(crate) use reply::Encoder;
pub(crate) use request::decode;

/// The error message for an input that is too long.
const OVERFLOW: &str =
    "The input token count (1048588) exceeds the maximum number of tokens allowed (1048576).";

/// The model and the method that a path names: `/v1beta/models/{model}:{method}`.
pub(crate) fn method(route: &str) -> Option<(&str, &str)> {
    let (model, method) = route.strip_prefix("/v1beta/models/")?.split_once(':')?;
    (!model.is_empty() && !model.contains('/')).then_some((model, method))
}

/// Checks the key.
pub(crate) fn admit(received: &Received) -> Result<(), Refusal> {
    match received.header("x-goog-api-key") {
        None => Err(Refusal::new(
            403,
            "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or \
             other form of API consumer identity to call this API.",
        )),
        Some("") => Err(
            Refusal::invalid("API key not valid. Please pass a valid API key.")
                .code("API_KEY_INVALID"),
        ),
        Some(_) => Ok(()),
    }
}

/// The body of an error, also within a stream.
pub(crate) fn error(refusal: &Refusal) -> Value {
    let code = if refusal.status == 529 {
        503
    } else {
        refusal.status
    };
    let status = match code {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 | 405 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500.. => "INTERNAL",
        _ => "FAILED_PRECONDITION",
    };
    let mut error =
        json!({"code": code, "message": refusal.message_or(OVERFLOW), "status": status});
    let mut details = Vec::new();
    if let Some(wait) = wait_of(refusal) {
        let seconds = match wait.subsec_millis() {
            0 => format!("{}s", wait.as_secs()),
            millis => format!("{}.{millis:03}s", wait.as_secs()),
        };
        details.push(
            json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": seconds}),
        );
    }
    if let Some(reason) = &refusal.code {
        let kind = "type.googleapis.com/google.rpc.ErrorInfo";
        details.push(json!({"@type": kind, "reason": reason, "domain": "googleapis.com"}));
    }
    if !details.is_empty() {
        error["details"] = details.into();
    }
    json!({"error": error})
}

/// Reads the requested delay from the headers of a refusal.
fn wait_of(refusal: &Refusal) -> Option<Duration> {
    refusal
        .headers
        .iter()
        .find_map(|(name, value)| match name.as_str() {
            "retry-after-ms" => value.parse().ok().map(Duration::from_millis),
            "retry-after" => value.parse().ok().map(Duration::from_secs),
            _ => None,
        })
}

/// True if a model of this name must be given back the signatures of its calls.
fn signs_calls(model: &str) -> bool {
    model.starts_with("gemini-3")
}

//! The four wires and a custom one, and their differences outside of requests and streams. `loopback/dispatch.rs`
//! determines the wire of a request.

use adjutant_llm::Request;
use serde_json::{Value, json};

use crate::{prefix::Prefix, received::Received, refusal::Refusal};

/// A vendor's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Wire {
    /// Anthropic Messages.
    Messages,
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Google Gemini.
    Gemini,
    /// The wire of an [`Oracle`](crate::oracle::Oracle).
    Foreign,
}

/// The decoded content of a request.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) request: Request,
    /// The requested model's name; the answer repeats it.
    pub(crate) model: String,
    /// True if the stream ends with a chunk with the usage (Chat Completions).
    pub(crate) include_usage: bool,
    /// The part of the conversation that the thinking of the answer is bound to.
    pub(crate) prefix: Prefix,
}

impl Wire {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Wire::Messages => "messages",
            Wire::Chat => "chat",
            Wire::Responses => "responses",
            Wire::Gemini => "gemini",
            Wire::Foreign => "foreign",
        }
    }

    /// The name and the value of the header that identifies the answer.
    pub(crate) fn request_id(self, number: usize) -> (&'static str, String) {
        match self {
            Wire::Messages => ("request-id", format!("req_01{number:022}")),
            Wire::Chat | Wire::Responses | Wire::Foreign => {
                ("x-request-id", format!("req_{number:032x}"))
            }
            Wire::Gemini => ("x-cloud-trace-context", format!("{number:032x}")),
        }
    }

    /// The status that the vendor has for this one.
    pub(crate) fn status(self, status: u16) -> u16 {
        if status == 529 && self != Wire::Messages {
            503
        } else {
            status
        }
    }

    /// The list of models: only the served one.
    pub(crate) fn models(self, name: &str) -> Value {
        match self {
            Wire::Messages => json!({
                "data": [{"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"}],
                "has_more": false, "first_id": name, "last_id": name,
            }),
            Wire::Chat | Wire::Responses | Wire::Foreign => json!({
                "object": "list",
                "data": [{"id": name, "object": "model", "created": 1_767_225_600, "owned_by": "system"}],
            }),
            Wire::Gemini => json!({"models": [{
                "name": format!("models/{name}"),
                "displayName": name,
                "inputTokenLimit": 1_048_576,
                "outputTokenLimit": 65_536,
                "supportedGenerationMethods": ["generateContent", "countTokens"],
            }]}),
        }
    }
}

/// The object that the body of a request must be.
pub(crate) fn json_body(received: &Received) -> Result<Value, Refusal> {
    let json_type = received
        .header("content-type")
        .is_some_and(|it| it.starts_with("application/json"));
    if !json_type {
        return Err(Refusal::invalid(
            "content-type: application/json is required",
        ));
    }
    let body: Value = serde_json::from_slice(&received.body).map_err(|error| {
        Refusal::invalid(format!("The request body is not valid JSON: {error}"))
    })?;
    if !body.is_object() {
        return Err(Refusal::invalid("The request body is not a JSON object"));
    }
    Ok(body)
}

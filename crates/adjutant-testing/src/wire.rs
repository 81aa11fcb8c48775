//! The two wires: which one a request speaks, and what differs between them outside of the stream.

use adjutant_llm::Request;
use serde_json::{Value, json};

use crate::{Received, chat, encode::Encoder, messages, refusal::Refusal};

/// A vendor's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// Anthropic Messages.
    Messages,
    /// OpenAI Chat Completions.
    Chat,
}

/// What a request asks, decoded.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) request: Request,
    /// The model's name as it was asked for; the answer repeats it.
    pub(crate) model: String,
    /// Whether the stream ends with a chunk that tells the usage (Chat Completions).
    pub(crate) include_usage: bool,
}

/// What is unique about an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp {
    /// The number of the request at this server, from 0.
    pub(crate) number: usize,
    /// Milliseconds since 1970-01-01 UTC.
    pub(crate) now_ms: u64,
}

impl Wire {
    /// The wire that a request speaks, by its path and, where both have it, by its key.
    pub(crate) fn of(received: &Received) -> Option<Self> {
        match received.route() {
            "/v1/messages" => Some(Wire::Messages),
            "/v1/chat/completions" => Some(Wire::Chat),
            "/v1/models" if received.header("x-api-key").is_some() => Some(Wire::Messages),
            "/v1/models" => Some(Wire::Chat),
            _ => None,
        }
    }

    /// Checks what stands in the headers.
    pub(crate) fn admit(self, received: &Received) -> Result<(), Refusal> {
        match self {
            Wire::Messages => messages::admit(received),
            Wire::Chat => chat::admit(received),
        }
    }

    /// Decodes the body of a request for a reply.
    pub(crate) fn decode(self, received: &Received) -> Result<Asked, Refusal> {
        let json_type = received.header("content-type").is_some_and(|it| it.starts_with("application/json"));
        if !json_type {
            return Err(Refusal::invalid("content-type: application/json is required"));
        }
        let body: Value = serde_json::from_slice(&received.body)
            .map_err(|error| Refusal::invalid(format!("The request body is not valid JSON: {error}")))?;
        if !body.is_object() {
            return Err(Refusal::invalid("The request body is not a JSON object"));
        }
        let asked = match self {
            Wire::Messages => messages::decode(&body),
            Wire::Chat => chat::decode(&body),
        }?;
        if body.get("stream") != Some(&Value::Bool(true)) {
            return Err(Refusal::invalid("stream: only streams are served here").param("stream"));
        }
        Ok(asked)
    }

    pub(crate) fn encoder(self, asked: Asked, stamp: Stamp) -> Box<dyn Encoder> {
        match self {
            Wire::Messages => Box::new(messages::Encoder::new(asked, stamp)),
            Wire::Chat => Box::new(chat::Encoder::new(asked, stamp)),
        }
    }

    /// The name and the value of the header that identifies the answer.
    pub(crate) fn request_id(self, number: usize) -> (&'static str, String) {
        match self {
            Wire::Messages => ("request-id", format!("req_01{number:022}")),
            Wire::Chat => ("x-request-id", format!("req_{number:032x}")),
        }
    }

    /// The vendor's error: its status and its body.
    pub(crate) fn error(self, refusal: &Refusal, request_id: &str) -> (u16, Value) {
        match self {
            Wire::Messages => (refusal.status, messages::error(refusal, Some(request_id))),
            Wire::Chat => (if refusal.status == 529 { 503 } else { refusal.status }, chat::error(refusal)),
        }
    }

    /// The list of models: the one that is served.
    pub(crate) fn models(self, name: &str) -> Value {
        match self {
            Wire::Messages => json!({
                "data": [{"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"}],
                "has_more": false, "first_id": name, "last_id": name,
            }),
            Wire::Chat => json!({
                "object": "list",
                "data": [{"id": name, "object": "model", "created": 1_767_225_600, "owned_by": "system"}],
            }),
        }
    }
}

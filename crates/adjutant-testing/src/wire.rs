//! The four wires: which one a request speaks, and what differs between them outside of the stream.

use std::{sync::Arc, time::Duration};

use adjutant_llm::Request;
use serde_json::{Value, json};

use crate::{Received, chat, encode::Encoder, gemini, issued::Issued, messages, refusal::Refusal, responses};

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
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Reply,
    Models,
    Embeddings,
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
#[derive(Debug, Clone)]
pub(crate) struct Stamp {
    /// The number of the request at this server, from 0.
    pub(crate) number: usize,
    /// Milliseconds since 1970-01-01 UTC.
    pub(crate) now_ms: u64,
    pub(crate) issued: Arc<Issued>,
}

impl Wire {
    /// The wire that a request speaks and what it wants, by its path and, where two have it, by its key.
    pub(crate) fn of(received: &Received) -> Option<(Self, Target)> {
        Some(match received.route() {
            "/v1/messages" => (Wire::Messages, Target::Reply),
            "/v1/chat/completions" => (Wire::Chat, Target::Reply),
            "/v1/responses" => (Wire::Responses, Target::Reply),
            "/v1/embeddings" => (Wire::Chat, Target::Embeddings),
            "/v1/models" if received.header("x-api-key").is_some() => (Wire::Messages, Target::Models),
            "/v1/models" => (Wire::Chat, Target::Models),
            "/v1beta/models" => (Wire::Gemini, Target::Models),
            route => match gemini::method(route)? {
                (_, "streamGenerateContent") => (Wire::Gemini, Target::Reply),
                (_, "batchEmbedContents") => (Wire::Gemini, Target::Embeddings),
                _ => return None,
            },
        })
    }

    /// The wire whose errors a request understands, wherever it leads.
    pub(crate) fn nearest(received: &Received) -> Self {
        match Self::of(received) {
            Some((wire, _)) => wire,
            None if received.path.starts_with("/v1beta/") => Wire::Gemini,
            None => Wire::Chat,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Wire::Messages => "messages",
            Wire::Chat => "chat",
            Wire::Responses => "responses",
            Wire::Gemini => "gemini",
        }
    }

    /// Checks what stands in the headers.
    pub(crate) fn admit(self, received: &Received) -> Result<(), Refusal> {
        match self {
            Wire::Messages => messages::admit(received),
            Wire::Chat | Wire::Responses => chat::admit(received),
            Wire::Gemini => gemini::admit(received),
        }
    }

    /// Decodes the body of a request for a reply.
    pub(crate) fn decode(self, received: &Received, issued: &Issued) -> Result<Asked, Refusal> {
        let body = json_body(received)?;
        let asked = match self {
            Wire::Messages => messages::decode(&body, issued),
            Wire::Chat => chat::decode(&body),
            Wire::Responses => responses::decode(&body, issued),
            Wire::Gemini => return gemini::decode(received, &body, issued),
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
            Wire::Responses => Box::new(responses::Encoder::new(asked, stamp)),
            Wire::Gemini => Box::new(gemini::Encoder::new(asked, stamp)),
        }
    }

    /// The name and the value of the header that identifies the answer.
    pub(crate) fn request_id(self, number: usize) -> (&'static str, String) {
        match self {
            Wire::Messages => ("request-id", format!("req_01{number:022}")),
            Wire::Chat | Wire::Responses => ("x-request-id", format!("req_{number:032x}")),
            Wire::Gemini => ("x-cloud-trace-context", format!("{number:032x}")),
        }
    }

    /// The status that the vendor has for this one.
    pub(crate) fn status(self, status: u16) -> u16 {
        if status == 529 && self != Wire::Messages { 503 } else { status }
    }

    /// The vendor's error: its status, its headers and its body.
    pub(crate) fn error(self, refusal: &Refusal, request_id: &str) -> (u16, Vec<(String, String)>, Value) {
        let status = self.status(refusal.status);
        let headers = refusal.headers.clone();
        match self {
            Wire::Messages => (status, headers, messages::error(refusal, Some(request_id))),
            Wire::Chat => (status, headers, chat::error(refusal)),
            Wire::Responses => (status, headers, responses::error(refusal)),
            // How long to wait stands in the body.
            Wire::Gemini => (status, Vec::new(), gemini::error(refusal)),
        }
    }

    /// The list of models: the one that is served.
    pub(crate) fn models(self, name: &str) -> Value {
        match self {
            Wire::Messages => json!({
                "data": [{"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"}],
                "has_more": false, "first_id": name, "last_id": name,
            }),
            Wire::Chat | Wire::Responses => json!({
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
    let json_type = received.header("content-type").is_some_and(|it| it.starts_with("application/json"));
    if !json_type {
        return Err(Refusal::invalid("content-type: application/json is required"));
    }
    let body: Value = serde_json::from_slice(&received.body)
        .map_err(|error| Refusal::invalid(format!("The request body is not valid JSON: {error}")))?;
    if !body.is_object() {
        return Err(Refusal::invalid("The request body is not a JSON object"));
    }
    Ok(body)
}

/// How long a refusal asks to wait, as its headers say it.
pub(crate) fn wait_of(refusal: &Refusal) -> Option<Duration> {
    refusal.headers.iter().find_map(|(name, value)| match name.as_str() {
        "retry-after-ms" => value.parse().ok().map(Duration::from_millis),
        "retry-after" => value.parse().ok().map(Duration::from_secs),
        _ => None,
    })
}

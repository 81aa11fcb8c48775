//! The choice of the wire that a request speaks, and of the code that reads and answers it there.

use std::sync::Arc;

use adjutant_llm::Request;
use serde_json::Value;

use crate::{
    chat,
    encode::{Encoder, Stamp},
    gemini,
    issued::Issued,
    messages,
    oracle::{Foreign, Oracle},
    received::Received,
    refusal::Refusal,
    responses,
    wire::{Asked, Wire, json_body},
};

/// The purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Reply,
    Models,
    Embeddings,
}

/// The wire that a server speaks beside the four, if there is one.
pub(crate) type Own = Option<Arc<dyn Oracle>>;

/// The wire and the target of a request, by its path and, if two wires share it, by its key.
pub(super) fn target(own: &Own, received: &Received) -> Option<(Wire, Target)> {
    Some(match received.route() {
        route if own.as_ref().is_some_and(|it| it.path() == route) => {
            (Wire::Foreign, Target::Reply)
        }
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
pub(super) fn nearest(own: &Own, received: &Received) -> Wire {
    match target(own, received) {
        Some((wire, _)) => wire,
        None if received.path.starts_with("/v1beta/") => Wire::Gemini,
        None => Wire::Chat,
    }
}

/// Checks the headers.
pub(super) fn admit(wire: Wire, received: &Received) -> Result<(), Refusal> {
    match wire {
        Wire::Messages => messages::admit(received),
        Wire::Chat | Wire::Responses => chat::admit(received),
        Wire::Gemini => gemini::admit(received),
        Wire::Foreign => Ok(()),
    }
}

/// Decodes a request for a reply, and gives what encodes the answer.
pub(super) fn read(
    wire: Wire,
    own: &Own,
    received: &Received,
    stamp: Stamp,
) -> Result<(Request, Box<dyn Encoder>), Refusal> {
    let Some(oracle) = own.clone().filter(|_| wire == Wire::Foreign) else {
        let asked = decode(wire, received, &stamp.issued)?;
        return Ok((asked.request.clone(), encoder(wire, asked, stamp)));
    };
    let (request, answer) = oracle.read(received)?;
    Ok((request, Box::new(Foreign { answer, oracle })))
}

fn decode(wire: Wire, received: &Received, issued: &Issued) -> Result<Asked, Refusal> {
    let body = json_body(received)?;
    let asked = match wire {
        Wire::Messages => messages::decode(&body, issued),
        Wire::Chat | Wire::Foreign => chat::decode(&body),
        Wire::Responses => responses::decode(&body, issued),
        Wire::Gemini => return gemini::decode(received, &body, issued),
    }?;
    if body.get("stream") != Some(&Value::Bool(true)) {
        return Err(Refusal::invalid("stream: only streams are served here").param("stream"));
    }
    Ok(asked)
}

fn encoder(wire: Wire, asked: Asked, stamp: Stamp) -> Box<dyn Encoder> {
    match wire {
        Wire::Messages => Box::new(messages::Encoder::new(asked, stamp)),
        Wire::Chat | Wire::Foreign => Box::new(chat::Encoder::new(asked, stamp)),
        Wire::Responses => Box::new(responses::Encoder::new(asked, stamp)),
        Wire::Gemini => Box::new(gemini::Encoder::new(asked, stamp)),
    }
}

/// The vendor's error: its status, its headers and its body.
pub(super) fn error(
    wire: Wire,
    own: &Own,
    refusal: &Refusal,
    request_id: &str,
) -> (u16, Vec<(String, String)>, Value) {
    let status = wire.status(refusal.status);
    let headers = refusal.headers.clone();
    if let Some(oracle) = own.as_ref().filter(|_| wire == Wire::Foreign) {
        return (status, headers, oracle.error(refusal));
    }
    match wire {
        Wire::Messages => (status, headers, messages::error(refusal, Some(request_id))),
        Wire::Chat | Wire::Foreign => (status, headers, chat::error(refusal)),
        Wire::Responses => (status, headers, responses::error(refusal)),
        // The body contains the delay.
        Wire::Gemini => (status, Vec::new(), gemini::error(refusal)),
    }
}

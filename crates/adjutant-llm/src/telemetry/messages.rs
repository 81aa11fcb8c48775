//! The messages as JSON text in the shape of the conventions. Bounded: the newest messages are kept.
//!
//! Source: open-telemetry/semantic-conventions-genai, `docs/gen-ai/non-normative/models.py` (2026).

use serde::Serialize;
use serde_json::{Value, json};

use super::semconv;
use crate::{Block, Call, CallResult, Content, Entry, Reply, Source, Transcript};

/// The largest number of bytes of messages in one attribute.
const MAX_BYTES: usize = 256 * 1_024;

/// The value as JSON text.
pub(super) fn json(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// The system prompt.
pub(super) fn system(text: &str) -> String {
    json(&json!([{"type": "text", "content": truncate_text(text)}]))
}

/// The conversation that a model receives.
pub(super) fn input(entries: &Transcript) -> String {
    let mut kept: Vec<String> = Vec::new();
    let mut bytes = 0;
    'entries: for stored in entries.iter().rev() {
        for message in messages(&stored.entry).into_iter().rev() {
            let message = json(&message);
            bytes += message.len();
            if bytes > MAX_BYTES {
                kept.push(json(
                    &json!({"role": "system", "parts": [{"type": "omitted"}]}),
                ));
                break 'entries;
            }
            kept.push(message);
        }
    }
    kept.reverse();
    format!("[{}]", kept.join(","))
}

/// Returns the reply of a model as JSON text.
pub(super) fn output(reply: &Reply) -> String {
    let message = json(&json!([{
        "role": "assistant",
        "parts": parts(reply),
        "finish_reason": semconv::finish_reason(reply.stop),
    }]));
    if message.len() > MAX_BYTES {
        return json(&json!([{"role": "assistant", "parts": [{"type": "omitted"}]}]));
    }
    message
}

/// The beginning of a text.
pub(super) fn truncate_text(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_BYTES)]
}

fn messages(entry: &Entry) -> Vec<Value> {
    match entry {
        Entry::User(message) => {
            let parts: Vec<Value> = message.content.iter().map(content).collect();
            vec![json!({"role": "user", "parts": parts})]
        }
        Entry::Summary(summary) => vec![json!({"role": "user", "parts": [text(&summary.text)]})],
        Entry::Turn(turn) => {
            let mut messages = vec![json!({"role": "assistant", "parts": parts(turn.reply())})];
            if !turn.results().is_empty() {
                let parts: Vec<Value> = turn.pairs().map(|(call, it)| response(call, it)).collect();
                messages.push(json!({"role": "tool", "parts": parts}));
            }
            messages
        }
        Entry::Custom(_) => Vec::new(),
    }
}

fn parts(reply: &Reply) -> Vec<Value> {
    let part = |block: &Block| match block {
        Block::Text(said) => text(&said.text),
        Block::Thinking(thinking) => json!({"type": "reasoning", "content": thinking.text}),
        Block::Call(call) => {
            let arguments: Value =
                serde_json::from_str(&call.args).unwrap_or_else(|_| (*call.args).into());
            json!({"type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments})
        }
        Block::Opaque { issuer, .. } => json!({"type": "opaque", "issuer": issuer}),
    };
    reply.blocks.iter().map(|block| part(block)).collect()
}

fn response(call: &Call, result: &CallResult) -> Value {
    json!({"type": "tool_call_response", "id": call.id, "response": result.text()})
}

fn content(content: &Content) -> Value {
    match content {
        Content::Text { text: said } => text(said),
        Content::Image(image) => attachment_json("image", &image.media_type, &image.source),
        Content::Document(document) => {
            attachment_json("document", &document.media_type, &document.source)
        }
        Content::Audio(audio) => attachment_json("audio", &audio.media_type, &audio.source),
    }
}

fn text(said: &str) -> Value {
    json!({"type": "text", "content": said})
}

/// An attachment, without its bytes.
fn attachment_json(modality: &str, media_type: &str, source: &Source) -> Value {
    match source {
        Source::Base64 { .. } => {
            json!({"type": "blob", "mime_type": media_type, "modality": modality, "content": ""})
        }
        Source::Url { url } => {
            json!({"type": "uri", "mime_type": media_type, "modality": modality, "uri": url})
        }
    }
}

//! Entries and requests as bytes of the Anthropic Messages API. Pure.

use std::{borrow::Cow, sync::Arc};

use adjutant_llm::{Cache, Document, Entry, ModelInfo, Options, Request, Source, Thinking, Warning};
use base64::{Engine, engine::general_purpose::STANDARD};

use super::wire::{self, Message, Part, Tool};
use crate::{
    options,
    pieces::{Piece, changed},
    projection::{self, Answer, Said, Shown},
    segments::{Encode, Messages, Role, Tail, member, write},
};

/// Extra fields that would contradict the request.
const RESERVED: [&str; 5] = ["model", "messages", "stream", "system", "tools"];

/// Writes requests for one model.
#[derive(Debug, Clone)]
pub(super) struct Encoder {
    pub(super) info: Arc<ModelInfo>,
    pub(super) caching: Caching,
}

/// Whether the prompt cache is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caching {
    /// The ends of the tools, of the system prompt, of the request before this one, and of this one are marked: four
    /// marks, which is what the API takes. It looks back 20 blocks from a mark, so the third one meets what the request
    /// before has written, whatever came since. Source: prompt caching guide, 2026-08.
    Marks,
    /// Nothing is said about it.
    Off,
}

impl Encode for Encoder {
    fn head(&self, request: &Request, out: &mut Vec<u8>, warnings: &mut Vec<Warning>) -> Messages {
        let options = options::effective(&self.info, &request.options, warnings);
        let extra = options::extra(&request.options, &RESERVED, warnings);
        let own = |name: &str| !request.options.extra.contains_key(name);
        out.extend_from_slice(b"{\"model\":");
        write(out, self.info.name());
        if own("max_tokens") {
            // The API demands the field, so a model cannot refuse it.
            member(out, "max_tokens", &options.max_output_tokens.unwrap_or(self.info.max_output_tokens));
        }
        member(out, "stream", &true);
        if let Some(temperature) = options.temperature.filter(|_| own("temperature")) {
            member(out, "temperature", &temperature);
        }
        if !options.stop.is_empty() && own("stop_sequences") {
            member(out, "stop_sequences", options.stop);
        }
        for (name, value) in extra {
            member(out, name, value);
        }
        if !request.system.trim().is_empty() {
            member(out, "system", &request.system);
        }
        if !request.tools.is_empty() {
            let tools: Vec<_> = request
                .tools
                .iter()
                .map(|it| Tool { name: it.name.as_str(), description: &it.description, input_schema: &it.schema })
                .collect();
            member(out, "tools", &tools);
        }
        out.extend_from_slice(b",\"messages\":[");
        Messages::None
    }

    fn entry(&self, entry: &Entry, tail: &mut Tail, warnings: &mut Vec<Warning>) {
        match projection::shown(entry, &self.info, warnings) {
            Shown::Nothing => {}
            Shown::User(pieces) => message(tail, Role::User, &content(pieces, warnings)),
            Shown::Turn(said) => turn(said, tail, warnings),
        }
    }

    fn mark(&self, options: &Options) -> Option<&'static [u8]> {
        match (self.caching, options.cache) {
            (Caching::Off, _) | (_, Cache::Off) => None,
            // The form of the vendor's own, chosen by the caller.
            _ if options.extra.contains_key("cache_control") => None,
            (Caching::Marks, Cache::Long) => Some(br#","cache_control":{"type":"ephemeral","ttl":"1h"}"#),
            (Caching::Marks, _) => Some(br#","cache_control":{"type":"ephemeral"}"#),
        }
    }
}

fn turn(said: Said<'_>, tail: &mut Tail, warnings: &mut Vec<Warning>) {
    let parts: Vec<_> = said.parts.into_iter().filter_map(part).collect();
    message(tail, Role::Model, &parts);
    if !said.results.is_empty() {
        let results: Vec<_> = said.results.into_iter().map(|it| result(it, warnings)).collect();
        message(tail, Role::User, &results);
    }
}

fn result<'a>(answer: Answer<'a>, warnings: &mut Vec<Warning>) -> Part<'a> {
    Part::ToolResult {
        tool_use_id: answer.call.id,
        content: content(answer.pieces, warnings),
        is_error: answer.is_error,
    }
}

fn part(part: projection::Part<'_>) -> Option<Part<'_>> {
    match part {
        projection::Part::Text { text, .. } => (!text.trim().is_empty()).then_some(Part::Text { text }),
        projection::Part::Thinking(thinking) => replayed(thinking),
        projection::Part::Call { call, args, .. } => {
            Some(Part::ToolUse { id: call.id, name: call.name.as_str(), input: args })
        }
        projection::Part::Opaque(value) => Some(Part::Opaque(value)),
    }
}

fn content<'a>(pieces: Vec<Piece<'a>>, warnings: &mut Vec<Warning>) -> Vec<Part<'a>> {
    let part = |piece| match piece {
        Piece::Text(it) => text(it),
        Piece::Image(image) => Part::Image { source: source(&image.media_type, &image.source) },
        Piece::Document(it) => document(it, warnings),
    };
    pieces.into_iter().map(part).collect()
}

/// Writes a message, and says where it could be marked: in its last block, before that, the message and its list end.
fn message(tail: &mut Tail, role: Role, content: &[Part<'_>]) {
    tail.out.push(b',');
    write(&mut tail.out, &Message { role: if role == Role::Model { "assistant" } else { "user" }, content });
    tail.last = Some(role);
    // Thinking takes no mark.
    if !matches!(content.last(), None | Some(Part::Thinking { .. } | Part::RedactedThinking { .. })) {
        tail.markable = Some(tail.out.len() - "}]}".len());
    }
}

fn text(text: &str) -> Part<'_> {
    Part::Text { text: Cow::Borrowed(text) }
}

/// Thinking goes back exactly as it came; without its signature it is never valid.
fn replayed(thinking: &Thinking) -> Option<Part<'_>> {
    let signature = thinking.signature.as_deref().filter(|it| !it.is_empty())?;
    Some(if thinking.redacted {
        Part::RedactedThinking { data: signature }
    } else {
        Part::Thinking { thinking: &thinking.text, signature }
    })
}

fn source<'a>(media_type: &'a str, source: &'a Source) -> wire::Source<'a> {
    match source {
        Source::Url { url } => wire::Source::Url { url },
        Source::Base64 { data } => wire::Source::Base64 { media_type, data },
        _ => wire::Source::Text { media_type: "text/plain", data: String::new() },
    }
}

/// A document; plain text has a form of its own, because the API takes no base64 of it.
fn document<'a>(document: &'a Document, warnings: &mut Vec<Warning>) -> Part<'a> {
    let title = document.name.as_deref();
    let Source::Base64 { data } = &document.source else {
        return Part::Document { source: source(&document.media_type, &document.source), title };
    };
    if !document.media_type.starts_with("text/") {
        return Part::Document { source: source(&document.media_type, &document.source), title };
    }
    match STANDARD.decode(&**data).ok().and_then(|bytes| String::from_utf8(bytes).ok()) {
        Some(data) => Part::Document { source: wire::Source::Text { media_type: "text/plain", data }, title },
        None => {
            const UNREADABLE: &str = "[document omitted: it is not the text that it says it is]";
            changed(warnings, UNREADABLE);
            text(UNREADABLE)
        }
    }
}

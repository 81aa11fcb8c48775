//! Entries and requests as bytes of the Anthropic Messages API. Pure.

use std::{borrow::Cow, sync::Arc};

use adjutant_llm::{
    Block, CallResult, Content, Document, Entry, ModelInfo, Reply, Request, Source, Stop, Thinking, Turn, Warning,
};
use base64::{Engine, engine::general_purpose::STANDARD};

use super::wire::{self, Message, Part, Tool};
use crate::{
    options,
    pieces::{Args, Piece, changed, pieces},
    segments::{Encode, Messages, member, write},
};

/// Whose opaque blocks are sent back.
pub(super) const ISSUER: &str = "anthropic";
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
    /// The API marks the last block that can be cached. Source: prompt caching guide, "automatic caching", 2026-08.
    Automatic,
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
        if self.caching == Caching::Automatic && own("cache_control") {
            out.extend_from_slice(b",\"cache_control\":{\"type\":\"ephemeral\"}");
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

    fn entry(&self, entry: &Entry, out: &mut Vec<u8>, warnings: &mut Vec<Warning>) {
        match entry {
            Entry::User(user) => message(out, "user", &self.content(&user.content, warnings)),
            Entry::Summary(summary) => message(out, "user", &[text(&summary.text)]),
            Entry::Turn(turn) => self.turn(turn, out, warnings),
            _ => {}
        }
    }
}

impl Encoder {
    fn turn(&self, turn: &Turn, out: &mut Vec<u8>, warnings: &mut Vec<Warning>) {
        let reply = turn.reply();
        let said = match reply.stop {
            Stop::Interrupted | Stop::Refused | Stop::Filtered => {
                return message(out, "assistant", &only_text(reply));
            }
            _ => self.said(reply, turn.results()),
        };
        // Thinking alone is no message: the API refuses one that ends in it.
        if said.iter().all(|part| matches!(part, Part::Thinking { .. } | Part::RedactedThinking { .. })) {
            return;
        }
        message(out, "assistant", &said);
        let results: Vec<_> = turn
            .pairs()
            .map(|(call, result)| Part::ToolResult {
                tool_use_id: call.id,
                content: self.content(&result.content, warnings),
                is_error: result.is_error(),
            })
            .collect();
        message(out, "user", &results);
    }

    /// The blocks of a reply in their order, as far as this model may see them.
    fn said<'a>(&self, reply: &'a Reply, results: &'a [Arc<CallResult>]) -> Vec<Part<'a>> {
        let own = reply.model == self.info.id;
        let mut results = results.iter();
        let part = |block: &'a Arc<Block>| match &**block {
            Block::Text(said) => (!said.text.trim().is_empty()).then(|| text(&said.text)),
            Block::Thinking(thinking) => own.then(|| replayed(thinking)).flatten(),
            Block::Call(call) => results.next().map(|result| Part::ToolUse {
                id: call.id,
                name: call.name.as_str(),
                input: Args::of(call, result),
            }),
            Block::Opaque { issuer, value } => (&**issuer == ISSUER).then_some(Part::Opaque(value)),
            _ => None,
        };
        reply.blocks.iter().filter_map(part).collect()
    }

    fn content<'a>(&self, content: &'a [Content], warnings: &mut Vec<Warning>) -> Vec<Part<'a>> {
        let pieces = pieces(content, self.info.inputs, warnings);
        let part = |piece| match piece {
            Piece::Text(it) => text(it),
            Piece::Image(image) => Part::Image { source: source(&image.media_type, &image.source) },
            Piece::Document(it) => document(it, warnings),
        };
        pieces.into_iter().map(part).collect()
    }
}

/// Writes a message, if it says anything.
fn message(out: &mut Vec<u8>, role: &'static str, content: &[Part<'_>]) {
    let blank = |part: &Part<'_>| matches!(part, Part::Text { text } if text.trim().is_empty());
    if !content.iter().all(blank) {
        out.push(b',');
        write(out, &Message { role, content });
    }
}

fn text(text: &str) -> Part<'_> {
    Part::Text { text: Cow::Borrowed(text) }
}

fn only_text(reply: &Reply) -> Vec<Part<'_>> {
    let part = |block: &'_ Arc<Block>| matches!(&**block, Block::Text(said) if !said.text.trim().is_empty());
    let said = reply.blocks.iter().filter(|block| part(block));
    said.filter_map(|block| match &**block {
        Block::Text(said) => Some(text(&said.text)),
        _ => None,
    })
    .collect()
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

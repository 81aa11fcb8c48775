//! Entries and requests as bytes of the OpenAI Chat Completions API. Pure.

use std::{borrow::Cow, sync::Arc};

use adjutant_llm::{Entry, ModelInfo, Request, Source, ToolDecl, Warning};

use super::wire::{self, Address, Call, Content, Declaration, File, Function, ImageUrl, Message, Tool};
use crate::{
    options,
    pieces::{Args, Piece, changed},
    projection::{self, Answer, Part, Said, Shown},
    segments::{Encode, Messages, Role, Tail, member, write},
};

/// Tool messages hold text only, so their media follow in a message of the user.
const ATTACHED: &str = "Attached image(s) from tool result:";
/// The whole result of a call that gave media only.
const SEE_BELOW: &str = "(see the attached files)";
const NO_ADDRESSES: &str = "[document omitted: this model takes no addresses of documents]";
/// Extra fields that would contradict the request.
const RESERVED: [&str; 4] = ["model", "messages", "stream", "tools"];

/// Writes requests for one model.
#[derive(Debug, Clone)]
pub(super) struct Encoder {
    pub(super) info: Arc<ModelInfo>,
}

impl Encode for Encoder {
    fn head(&self, request: &Request, out: &mut Vec<u8>, warnings: &mut Vec<Warning>) -> Messages {
        let options = options::effective(&self.info, &request.options, warnings);
        let extra = options::extra(&request.options, &RESERVED, warnings);
        let own = |name: &str| !request.options.extra.contains_key(name);
        out.extend_from_slice(b"{\"model\":");
        write(out, self.info.name());
        if let Some(tokens) = options.max_output_tokens.filter(|_| own("max_completion_tokens") && own("max_tokens")) {
            member(out, "max_completion_tokens", &tokens);
        }
        member(out, "stream", &true);
        if own("stream_options") {
            out.extend_from_slice(b",\"stream_options\":{\"include_usage\":true}");
        }
        if let Some(temperature) = options.temperature.filter(|_| own("temperature")) {
            member(out, "temperature", &temperature);
        }
        if !options.stop.is_empty() && own("stop") {
            member(out, "stop", options.stop);
        }
        for (name, value) in extra {
            member(out, name, value);
        }
        if !request.tools.is_empty() {
            member(out, "tools", &request.tools.iter().map(declaration).collect::<Vec<_>>());
        }
        out.extend_from_slice(b",\"messages\":[");
        if request.system.trim().is_empty() {
            return Messages::None;
        }
        write(out, &Message::System { content: &request.system });
        Messages::Some
    }

    fn entry(&self, entry: &Entry, tail: &mut Tail, warnings: &mut Vec<Warning>) {
        match projection::shown(entry, &self.info, warnings) {
            Shown::Nothing => {}
            Shown::User(pieces) => {
                let content = match &pieces[..] {
                    [Piece::Text(text)] => Content::Text(text),
                    pieces => Content::Parts(pieces.iter().map(|piece| part(piece, warnings)).collect()),
                };
                message(tail, Role::User, &Message::User { content });
            }
            Shown::Turn(said) => turn(said, tail, warnings),
        }
    }
}

fn turn(said: Said<'_>, tail: &mut Tail, warnings: &mut Vec<Warning>) {
    let content = text(&said.parts);
    let tool_calls = said.parts.iter().filter_map(|part| match part {
        Part::Call { call, args, .. } => Some(Call {
            id: call.id,
            kind: "function",
            function: Function { name: call.name.as_str(), arguments: arguments(args) },
        }),
        _ => None,
    });
    let tool_calls: Vec<_> = tool_calls.collect();
    if content.is_none() && tool_calls.is_empty() {
        return;
    }
    message(tail, Role::Model, &Message::Assistant { content, tool_calls });
    results(said.results, tail, warnings);
}

/// Writes a message for each result, and one for all the media in them.
fn results(results: Vec<Answer<'_>>, tail: &mut Tail, warnings: &mut Vec<Warning>) {
    let mut attached = Vec::new();
    for answer in results {
        let (mut texts, before) = (Vec::new(), attached.len());
        for piece in answer.pieces {
            match piece {
                Piece::Text(text) => texts.push(text),
                Piece::Image(_) | Piece::Document(_) => attached.push(part(&piece, warnings)),
            }
        }
        let content = match &texts[..] {
            [] if attached.len() > before => Cow::Borrowed(SEE_BELOW),
            [text] => Cow::Borrowed(*text),
            texts => Cow::Owned(texts.join("\n")),
        };
        message(tail, Role::Tool, &Message::Tool { tool_call_id: answer.call.id, content });
    }
    if !attached.is_empty() {
        attached.insert(0, wire::Part::Text { text: ATTACHED });
        message(tail, Role::User, &Message::User { content: Content::Parts(attached) });
    }
}

fn declaration(tool: &ToolDecl) -> Tool<'_> {
    let function = Declaration { name: tool.name.as_str(), description: &tool.description, parameters: &tool.schema };
    Tool { kind: "function", function }
}

fn message(tail: &mut Tail, role: Role, message: &Message<'_>) {
    tail.out.push(b',');
    write(&mut tail.out, message);
    tail.last = Some(role);
}

/// The text of a reply; thinking and opaque blocks have no place on this wire.
fn text<'a>(parts: &'a [Part<'a>]) -> Option<Cow<'a, str>> {
    let mut texts = parts.iter().filter_map(|part| match part {
        Part::Text { text, .. } if !text.trim().is_empty() => Some(&**text),
        _ => None,
    });
    let mut said = Cow::Borrowed(texts.next()?);
    for text in texts {
        said.to_mut().push_str(text);
    }
    Some(said)
}

/// The arguments of a call as the text of a JSON object.
fn arguments<'a>(args: &Args<'a>) -> Cow<'a, str> {
    match args {
        Args::Empty => Cow::Borrowed("{}"),
        Args::Object(raw) => Cow::Borrowed(raw.get()),
        invalid @ Args::Invalid(_) => Cow::Owned(serde_json::to_string(invalid).unwrap_or_default()),
    }
}

fn part<'a>(piece: &Piece<'a>, warnings: &mut Vec<Warning>) -> wire::Part<'a> {
    match *piece {
        Piece::Text(text) => wire::Part::Text { text },
        Piece::Image(image) => match &image.source {
            Source::Base64 { data } => wire::Part::ImageUrl {
                image_url: ImageUrl { url: Address::Data { media_type: &image.media_type, data } },
            },
            Source::Url { url } => wire::Part::ImageUrl { image_url: ImageUrl { url: Address::Url(url) } },
            _ => wire::Part::Text { text: "" },
        },
        Piece::Document(document) => match &document.source {
            Source::Base64 { data } => wire::Part::File {
                file: File {
                    filename: document.name.as_deref().unwrap_or("document"),
                    file_data: Address::Data { media_type: &document.media_type, data },
                },
            },
            _ => {
                changed(warnings, NO_ADDRESSES);
                wire::Part::Text { text: NO_ADDRESSES }
            }
        },
    }
}

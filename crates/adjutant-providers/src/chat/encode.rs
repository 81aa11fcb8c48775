//! Entries and requests as bytes of the OpenAI Chat Completions API. Pure.

use std::{borrow::Cow, sync::Arc};

use adjutant_llm::{
    Block, CallResult, Content as Given, Entry, ModelInfo, Reply, Request, Source, Stop, ToolDecl, Turn, Warning,
};

use super::wire::{Address, Call, Content, Declaration, File, Function, ImageUrl, Message, Part, Tool};
use crate::{
    options,
    pieces::{Args, Piece, changed, pieces},
    segments::{Encode, Messages, member, write},
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

    fn entry(&self, entry: &Entry, out: &mut Vec<u8>, warnings: &mut Vec<Warning>) {
        match entry {
            Entry::User(user) => self.user(&user.content, out, warnings),
            Entry::Summary(summary) if !summary.text.trim().is_empty() => {
                message(out, &Message::User { content: Content::Text(&summary.text) });
            }
            Entry::Turn(turn) => self.turn(turn, out, warnings),
            _ => {}
        }
    }
}

impl Encoder {
    fn user(&self, content: &[Given], out: &mut Vec<u8>, warnings: &mut Vec<Warning>) {
        let content = match &pieces(content, self.info.inputs, warnings)[..] {
            [] => return,
            [Piece::Text(text)] => Content::Text(text),
            pieces => Content::Parts(pieces.iter().map(|piece| part(piece, warnings)).collect()),
        };
        message(out, &Message::User { content });
    }

    fn turn(&self, turn: &Turn, out: &mut Vec<u8>, warnings: &mut Vec<Warning>) {
        let reply = turn.reply();
        let cut_short = matches!(reply.stop, Stop::Interrupted | Stop::Refused | Stop::Filtered);
        let tool_calls = if cut_short {
            Vec::new()
        } else {
            turn.pairs()
                .map(|(call, result)| Call {
                    id: call.id,
                    kind: "function",
                    function: Function { name: call.name.as_str(), arguments: arguments(call, result) },
                })
                .collect()
        };
        let content = said(reply);
        if content.is_none() && tool_calls.is_empty() {
            return;
        }
        message(out, &Message::Assistant { content, tool_calls });
        if !cut_short {
            self.results(turn, out, warnings);
        }
    }

    /// Writes a message for each result, and one for all the media in them.
    fn results(&self, turn: &Turn, out: &mut Vec<u8>, warnings: &mut Vec<Warning>) {
        let mut attached = Vec::new();
        for (call, result) in turn.pairs() {
            let (mut texts, before) = (Vec::new(), attached.len());
            for piece in pieces(&result.content, self.info.inputs, warnings) {
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
            message(out, &Message::Tool { tool_call_id: call.id, content });
        }
        if !attached.is_empty() {
            attached.insert(0, Part::Text { text: ATTACHED });
            message(out, &Message::User { content: Content::Parts(attached) });
        }
    }
}

fn declaration(tool: &ToolDecl) -> Tool<'_> {
    let function = Declaration { name: tool.name.as_str(), description: &tool.description, parameters: &tool.schema };
    Tool { kind: "function", function }
}

fn message(out: &mut Vec<u8>, message: &Message<'_>) {
    out.push(b',');
    write(out, message);
}

/// The text of a reply; thinking and opaque blocks have no place on this wire.
fn said(reply: &Reply) -> Option<Cow<'_, str>> {
    let mut texts = reply.blocks.iter().filter_map(|block| match &**block {
        Block::Text(said) if !said.text.is_empty() => Some(&*said.text),
        _ => None,
    });
    let mut said = Cow::Borrowed(texts.next()?);
    for text in texts {
        said.to_mut().push_str(text);
    }
    (!said.trim().is_empty()).then_some(said)
}

/// The arguments of a call as the text of a JSON object.
fn arguments<'a>(call: &'a adjutant_llm::Call, result: &'a CallResult) -> Cow<'a, str> {
    match Args::of(call, result) {
        Args::Empty => Cow::Borrowed("{}"),
        Args::Object(raw) => Cow::Borrowed(raw.get()),
        invalid @ Args::Invalid(_) => Cow::Owned(serde_json::to_string(&invalid).unwrap_or_default()),
    }
}

fn part<'a>(piece: &Piece<'a>, warnings: &mut Vec<Warning>) -> Part<'a> {
    match *piece {
        Piece::Text(text) => Part::Text { text },
        Piece::Image(image) => match &image.source {
            Source::Base64 { data } => {
                Part::ImageUrl { image_url: ImageUrl { url: Address::Data { media_type: &image.media_type, data } } }
            }
            Source::Url { url } => Part::ImageUrl { image_url: ImageUrl { url: Address::Url(url) } },
            _ => Part::Text { text: "" },
        },
        Piece::Document(document) => match &document.source {
            Source::Base64 { data } => Part::File {
                file: File {
                    filename: document.name.as_deref().unwrap_or("document"),
                    file_data: Address::Data { media_type: &document.media_type, data },
                },
            },
            _ => {
                changed(warnings, NO_ADDRESSES);
                Part::Text { text: NO_ADDRESSES }
            }
        },
    }
}

//! Entries as contents of the Gemini API. Pure. `head.rs` writes the part before the contents.

use std::{borrow::Cow, sync::Arc};

use adjutant_llm::{Call, Document, Entry, ModelInfo, Request, Source, Thinking, Warning};
use serde_json::{Map, Value};

use super::{
    head,
    wire::{
        Blob, Content, FileData, FunctionCall, FunctionResponse, Media, Outcome, Part, Payload,
    },
};
use crate::{
    call_ids::{TheirIds, WireId},
    host::Site,
    pieces::{Piece, media_type, warn_changed},
    projection::{self, ProjectedEntry, ProjectedReply, ProjectedResult},
    segments::{Encode, Messages, Role, Tail, write},
    text::Few,
    tool_names::wire_name,
};

/// The member that holds a part's signature, on the wire and in the stored data.
pub(super) const SIGNATURE: &str = "thoughtSignature";
/// The members in which a candidate describes its text; never sent back.
pub(super) const METADATA: [&str; 3] = [
    "groundingMetadata",
    "citationMetadata",
    "urlContextMetadata",
];

/// Replaces the signature of a call that this model did not make.
///
/// Source: thought signatures guide, questions and answers, 2026-11.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";
/// The generation that demands signatures, and takes media in results.
///
/// Source: thought signatures guide and "multimodal function responses" in the function calling guide, 2026-11.
const STRICT: u32 = 3;
/// The media types that a result may hold itself. Source: "multimodal function responses" in the function calling
/// guide, 2026-11.
const NESTED: [&str; 5] = [
    "image/png",
    "image/jpeg",
    "image/webp",
    "application/pdf",
    "text/plain",
];

/// The largest number of bytes of an id that goes back.
const MAX_ID: usize = 256;
const ATTACHED: &str = "Attached file(s) from tool result:";
/// The complete result of a call with only media.
const SEE_FILES: &str = "(see the attached files)";
const FAILED: &str = "the call failed";
const NO_ADDRESS: &str = "[file omitted: its address is not one that this model can fetch]";
const NO_TOOL_STEPS: &str =
    "steps of a server tool were left out: only the model that took them can go on from them";

/// Writes requests for one model.
#[derive(Debug, Clone)]
pub(super) struct Encoder {
    pub(super) info: Arc<ModelInfo>,
    pub(super) site: Site,
}

/// The relation of the author of a reply to the model of the request.
#[derive(Clone, Copy)]
struct Issuer {
    own: bool,
    related: bool,
}

impl Encode for Encoder {
    fn head(&self, request: &Request, out: &mut Vec<u8>, warnings: &mut Vec<Warning>) -> Messages {
        head::write(&self.info, request, out, warnings);
        Messages::None
    }

    fn entry(&self, entry: &Entry, tail: &mut Tail, warnings: &mut Vec<Warning>) {
        match projection::project_entry(entry, &self.info, warnings) {
            ProjectedEntry::Nothing => {}
            ProjectedEntry::User(pieces) => {
                let mut parts = Vec::new();
                pieces
                    .into_iter()
                    .for_each(|piece| content(piece, &mut parts, warnings));
                message(tail, Role::User, &parts);
            }
            ProjectedEntry::Turn(said) => self.turn(said, tail, warnings),
        }
    }
}

/// The generation of a model: 2 for `gemini-2.5-pro`, the highest for `gemini-flash-latest`, 0 for other families.
pub(super) fn generation(name: &str) -> u32 {
    let Some(rest) = name.strip_prefix("gemini-") else {
        return 0;
    };
    let digits = rest.trim_start_matches(|it: char| !it.is_ascii_digit());
    let end = digits
        .find(|it: char| !it.is_ascii_digit())
        .unwrap_or(digits.len());
    digits[..end].parse().unwrap_or(u32::MAX)
}

impl Encoder {
    fn turn(&self, said: ProjectedReply<'_>, tail: &mut Tail, warnings: &mut Vec<Warning>) {
        let (own, by) = (
            said.own,
            Issuer {
                own: said.own,
                related: said.related,
            },
        );
        // Of the calls of a step, the first one must be signed. Source: thought signatures guide, 2026-11.
        let mut unsigned = (self.generation() >= STRICT).then_some(NO_SIGNATURE);
        let parts = said.parts.into_iter().filter_map(|part| match part {
            projection::ReplyPart::Text { text, extra } => text_part(text, signature(extra)),
            projection::ReplyPart::Thinking(thinking) => thinking_part(thinking),
            projection::ReplyPart::Call { call, args, extra } => {
                let thought_signature = signature(extra).or(unsigned);
                unsigned = None;
                let call = FunctionCall {
                    id: call_id(call, by, &mut tail.their_ids),
                    name: wire_name(call.name.as_str()),
                    args,
                };
                Some(Part {
                    data: Payload::FunctionCall(call),
                    thought: false,
                    thought_signature,
                })
            }
            projection::ReplyPart::Opaque(value) => opaque(value.as_object()?, own, warnings),
        });
        let parts: Vec<_> = parts.collect();
        message(tail, Role::Model, &parts);
        if !said.results.is_empty() {
            self.results(said.results, by, tail, warnings);
        }
    }

    /// Writes all results in one message. Media that a result cannot hold follow in another, since the API counts the
    /// parts of the first.
    fn results(
        &self,
        results: Few<ProjectedResult<'_>>,
        by: Issuer,
        tail: &mut Tail,
        warnings: &mut Vec<Warning>,
    ) {
        let (mut attached, mut parts) = (Vec::new(), Vec::new());
        for answer in results {
            let (mut texts, mut nested, before) = (Vec::new(), Vec::new(), attached.len());
            for piece in answer.pieces {
                match (piece, self.nested(&piece)) {
                    (Piece::Text(text), _) => texts.push(Cow::Borrowed(text)),
                    (Piece::Document(document), Some(blob)) => {
                        texts.extend(label(document).map(Cow::Owned));
                        nested.push(Media { inline_data: blob });
                    }
                    (_, Some(blob)) => nested.push(Media { inline_data: blob }),
                    (piece, None) => content(piece, &mut attached, warnings),
                }
            }
            let has_media = !nested.is_empty() || attached.len() > before;
            let response = outcome(texts, has_media, answer.is_error);
            let id = call_id(answer.call, by, &mut tail.their_ids);
            let name = wire_name(answer.call.name.as_str());
            parts.push(part(Payload::FunctionResponse(FunctionResponse {
                id,
                name,
                response,
                parts: nested,
            })));
        }
        message(tail, Role::User, &parts);
        if !attached.is_empty() {
            attached.insert(0, text(ATTACHED));
            message(tail, Role::User, &attached);
        }
    }

    /// The bytes of a piece inside a result. URLs are not allowed there; source: `FunctionResponsePart` in
    /// java-genai, 2026-11.
    fn nested<'a>(&self, piece: &Piece<'a>) -> Option<Blob<'a>> {
        let (mime_type, source): (&str, _) = match *piece {
            Piece::Text(_) => return None,
            Piece::Image(image) => (media_type(&image.media_type), &image.source),
            Piece::Document(document) => (&*document.media_type, &document.source),
            Piece::Audio(audio) => (&*audio.media_type, &audio.source),
        };
        match source {
            Source::Base64 { data }
                if self.generation() >= STRICT && NESTED.contains(&mime_type) =>
            {
                Some(Blob { mime_type, data })
            }
            _ => None,
        }
    }

    fn generation(&self) -> u32 {
        generation(self.info.name())
    }
}

fn message(tail: &mut Tail, role: Role, parts: &[Part<'_>]) {
    if parts.is_empty() {
        return;
    }
    let calls = parts
        .iter()
        .any(|part| matches!(part.data, Payload::FunctionCall(_)));
    if calls && tail.last != Some(Role::User) {
        // "function call turn comes immediately after a user turn". Source: google-gemini/gemini-cli 11814, 2025-10.
        message(tail, Role::User, &[text("Go on.")]);
    }
    tail.out.push(b',');
    write(
        &mut tail.out,
        &Content {
            role: if role == Role::Model { "model" } else { "user" },
            parts,
        },
    );
    tail.last = Some(role);
}

/// Returns the id of a call, for the call and its result: newer models require the id that they issued. Calls of
/// other models get our ids.
fn call_id<'a>(call: &'a Call, said: Issuer, ids: &mut TheirIds) -> Option<WireId<'a>> {
    if said.own && call.wire_id.is_none() {
        return None;
    }
    let theirs = said
        .related
        .then(|| ids.get(call, |id| (1..=MAX_ID).contains(&id.len())));
    Some(
        theirs
            .flatten()
            .map_or(WireId::Ours(call.id), WireId::Theirs),
    )
}

/// A text of a reply; without words, it is there for its signature.
fn text_part<'a>(text: Cow<'a, str>, thought_signature: Option<&'a str>) -> Option<Part<'a>> {
    if text.trim().is_empty() && thought_signature.is_none() {
        return None;
    }
    Some(Part {
        data: Payload::Text(text),
        thought: false,
        thought_signature,
    })
}

/// A thought goes back as it came. Source: thinking guide, 2026-11: all parts of a response are to be returned.
fn thinking_part(thinking: &Thinking) -> Option<Part<'_>> {
    let signature = thinking.signature.as_deref().filter(|it| is_base64(it));
    let part = text_part(Cow::Borrowed(&*thinking.text), signature)?;
    Some(Part {
        thought: true,
        ..part
    })
}

/// A part that is sent as it came. Signatures are valid for the model that made them alone, and the steps of server
/// tools are not without theirs.
fn opaque<'a>(
    value: &'a Map<String, Value>,
    own: bool,
    warnings: &mut Vec<Warning>,
) -> Option<Part<'a>> {
    if value.keys().all(|name| METADATA.contains(&name.as_str())) {
        return None;
    }
    if own || !value.contains_key(SIGNATURE) && !is_step(value) {
        return Some(part(Payload::Opaque(Cow::Borrowed(value))));
    }
    if is_step(value) {
        warn_changed(warnings, NO_TOOL_STEPS);
        return None;
    }
    let mut value = value.clone();
    value.shift_remove(SIGNATURE);
    Some(part(Payload::Opaque(Cow::Owned(value))))
}

/// True if a part is a step of a tool that the provider ran. Source: `Part` in the API reference of v1beta, 2026-11.
fn is_step(value: &Map<String, Value>) -> bool {
    value.contains_key("toolCall") || value.contains_key("toolResponse")
}

/// The signature that is kept with a block, if it can be one.
fn signature(extra: &Value) -> Option<&str> {
    extra.get(SIGNATURE)?.as_str().filter(|it| is_base64(it))
}

/// True if a text can be bytes in the JSON of protocol buffers: either alphabet of base64, padded or not.
fn is_base64(text: &str) -> bool {
    let data = text.trim_end_matches('=');
    let is_digit = |it: u8| it.is_ascii_alphanumeric() || b"+/-_".contains(&it);
    !data.is_empty()
        && data.bytes().all(is_digit)
        && data.len() % 4 != 1
        && text.len() - data.len() <= 2
}

fn outcome(texts: Vec<Cow<'_, str>>, has_media: bool, is_error: bool) -> Outcome<'_> {
    let said = match <[_; 1]>::try_from(texts) {
        Ok([text]) => text,
        Err(texts) if !texts.is_empty() => Cow::Owned(texts.join("\n")),
        Err(_) if has_media => Cow::Borrowed(SEE_FILES),
        Err(_) if is_error => Cow::Borrowed(FAILED),
        Err(_) => Cow::Borrowed(""),
    };
    if is_error {
        Outcome::Error(said)
    } else {
        Outcome::Output(said)
    }
}

fn part(data: Payload<'_>) -> Part<'_> {
    Part {
        data,
        thought: false,
        thought_signature: None,
    }
}

pub(super) fn text(text: &str) -> Part<'_> {
    part(Payload::Text(Cow::Borrowed(text)))
}

/// Adds a piece of content; the name of a document has no place but a text.
fn content<'a>(piece: Piece<'a>, parts: &mut Vec<Part<'a>>, warnings: &mut Vec<Warning>) {
    let (media_type, source) = match piece {
        Piece::Text(it) => return parts.push(text(it)),
        Piece::Image(image) => (media_type(&image.media_type), &image.source),
        Piece::Audio(audio) => (&*audio.media_type, &audio.source),
        Piece::Document(document) => {
            parts.extend(label(document).map(|it| part(Payload::Text(Cow::Owned(it)))));
            (&*document.media_type, &document.source)
        }
    };
    parts.push(match source {
        Source::Base64 { data } => part(Payload::InlineData(Blob {
            mime_type: media_type,
            data,
        })),
        // Source: file input methods, "external HTTP / signed URLs", 2026-11.
        Source::Url { url } if ["https://", "http://"].iter().any(|it| url.starts_with(it)) => {
            part(Payload::FileData(FileData {
                mime_type: media_type,
                file_uri: url,
            }))
        }
        _ => {
            warn_changed(warnings, NO_ADDRESS);
            text(NO_ADDRESS)
        }
    });
}

/// Returns the text with the name of a document.
fn label(document: &Document) -> Option<String> {
    document.name.as_ref().map(|name| format!("[file: {name}]"))
}

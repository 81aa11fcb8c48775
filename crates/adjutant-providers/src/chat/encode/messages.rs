//! The conversation as messages: one for each reply and result, in the order that a server takes.

use std::{borrow::Cow, mem};

use adjutant_llm::{Call, Source, Thinking, Warning};
use serde_json::Value;

use super::{
    super::{
        details,
        wire::{
            self, Address, Assistant, Content, File, Function, Id, ImageUrl, InputAudio, Message,
            Part, TextPart,
        },
    },
    Encoder,
};
use crate::{
    dialect::{CallIds, RoleOrder, ThinkingReplay},
    pieces::{Args, Piece, media_type, warn_changed},
    projection::{self, ProjectedReply, ProjectedResult},
    segments::{Role, Tail, write},
    text::Few,
    tool_names::wire_name,
};

/// Tool messages hold text only, so their media follow in a message of the user.
const ATTACHED: &str = "Attached image(s) from tool result:";
/// The complete result of a call with only media.
const SEE_BELOW: &str = "(see the attached files)";
const NO_ADDRESSES: &str = "[document omitted: this model takes no addresses of documents]";
const OTHER_AUDIO: &str = "[recording omitted: this wire accepts only WAV and MP3 data]";
const UNKNOWN_SOURCE: &str = "[content omitted: this model cannot load its source]";
const NO_BEGINNING: &str =
    "a reply before the first message of the user was omitted: this model does not accept it";
/// The assistant message that is inserted where a server requires one.
const UNDERSTOOD: &str = "Understood.";
/// The user message that is inserted where a server requires one.
const GO_ON: &str = "Go on.";
/// The field of thinking that came as a part of the content.
pub(in crate::chat) const AS_PART: &str = "content";
/// The field of thinking that came in tags. It does not go back: templates drop the tags of earlier replies.
pub(in crate::chat) const IN_TAGS: &str = "think_tags";

impl Encoder {
    pub(super) fn user(
        &self,
        pieces: Few<Piece<'_>>,
        tail: &mut Tail,
        warnings: &mut Vec<Warning>,
    ) {
        let content = match pieces.only() {
            Some(Piece::Text(said)) if !self.is_marked() => Content::Text(Cow::Borrowed(said)),
            _ => Content::Parts(pieces.iter().map(|piece| part(piece, warnings)).collect()),
        };
        self.message(tail, Role::User, &Message::User { content });
    }

    pub(super) fn turn(
        &self,
        mut said: ProjectedReply<'_>,
        tail: &mut Tail,
        warnings: &mut Vec<Warning>,
    ) {
        if self.dialect.order == RoleOrder::Alternate && tail.last.is_none() {
            warn_changed(warnings, NO_BEGINNING);
            return;
        }
        if !self.dialect.tools {
            return self.in_words(&said, tail, warnings);
        }
        let related = said.related;
        let calls = said.parts.iter().filter_map(|part| match part {
            projection::ReplyPart::Call { call, args, extra } => Some(wire::Call {
                id: self.id(call, related, tail),
                kind: "function",
                function: Function {
                    name: wire_name(call.name.as_str()),
                    arguments: arguments(args),
                },
                extra_content: extra.get("extra_content").unwrap_or(&Value::Null),
            }),
            _ => None,
        });
        let mut tool_calls = Few::default();
        calls.for_each(|call| tool_calls.push(call));
        let content = text(&said.parts).map(Content::Text);
        if content.is_none() && tool_calls.is_empty() {
            return;
        }
        let mut message = Assistant {
            content,
            tool_calls,
            ..Assistant::default()
        };
        self.think(&said, tail, &mut message);
        if message.content.is_none() && !self.dialect.null_content {
            message.content = Some(Content::Text(Cow::Borrowed("")));
        }
        self.message(tail, Role::Model, &Message::Assistant(message));
        self.results(mem::take(&mut said.results), related, tail, warnings);
    }

    /// Puts what the model thought into its message, as the dialect wants it.
    fn think<'a>(
        &self,
        said: &'a ProjectedReply<'a>,
        tail: &mut Tail,
        message: &mut Assistant<'a>,
    ) {
        let thoughts = || {
            said.parts.iter().filter_map(|part| match part {
                projection::ReplyPart::Thinking(thinking) => Some(*thinking),
                _ => None,
            })
        };
        match self.dialect.replay {
            ThinkingReplay::Never => return,
            ThinkingReplay::Details => {
                message.reasoning_details = gather(said, |call| self.id(call, said.related, tail));
                if !message.reasoning_details.is_empty() {
                    return;
                }
            }
            ThinkingReplay::Same | ThinkingReplay::Demanded => {}
        }
        let demanded = self.dialect.replay == ThinkingReplay::Demanded;
        let mut spoken = thoughts().filter(|it| !it.text.is_empty());
        if let Some(first) = spoken.next() {
            let field = first
                .extra
                .get("field")
                .and_then(Value::as_str)
                .filter(|_| !demanded)
                .unwrap_or_default();
            if field == AS_PART {
                message.content = Some(Content::Parts(as_parts(&said.parts)));
                return;
            }
            let mut all = Cow::Borrowed(&*first.text);
            spoken.for_each(|it| all.to_mut().push_str(&it.text));
            match field {
                IN_TAGS => {}
                "reasoning" => message.reasoning = Some(all),
                "reasoning_text" => message.reasoning_text = Some(all),
                _ => message.reasoning_content = Some(all),
            }
        } else if demanded && !message.tool_calls.is_empty() {
            message.reasoning_content = Some(Cow::Borrowed(""));
        }
    }

    /// Writes a message for each result, and one for all the media in them.
    fn results(
        &self,
        results: Few<ProjectedResult<'_>>,
        related: bool,
        tail: &mut Tail,
        warnings: &mut Vec<Warning>,
    ) {
        let mut attached = Vec::new();
        for answer in results {
            let (mut said, mut images, before) = (None::<Cow<'_, str>>, Vec::new(), attached.len());
            for piece in answer.pieces {
                match piece {
                    Piece::Text(text) => match &mut said {
                        None => said = Some(Cow::Borrowed(text)),
                        Some(said) => said.to_mut().extend(["\n", text]),
                    },
                    Piece::Image(_) if self.dialect.result_images => {
                        images.push(part(&piece, warnings))
                    }
                    Piece::Image(_) | Piece::Document(_) | Piece::Audio(_) => {
                        attached.push(part(&piece, warnings))
                    }
                }
            }
            let said = said.unwrap_or(Cow::Borrowed(if attached.len() > before {
                SEE_BELOW
            } else {
                ""
            }));
            let content = if self.is_marked() || !images.is_empty() {
                images.extend((!said.is_empty()).then_some(Part::Text {
                    text: said,
                    cache_control: None,
                }));
                Content::Parts(images)
            } else {
                Content::Text(said)
            };
            let name = self
                .dialect
                .result_names
                .then(|| wire_name(answer.call.name.as_str()));
            let message = wire::Answer {
                tool_call_id: self.id(answer.call, related, tail),
                name,
                content,
            };
            self.message(tail, Role::Tool, &Message::Tool(message));
        }
        if !attached.is_empty() {
            attached.insert(0, words(ATTACHED));
            self.message(
                tail,
                Role::User,
                &Message::User {
                    content: Content::Parts(attached),
                },
            );
        }
    }

    /// Writes a reply and its results for a server that knows no calls.
    fn in_words(&self, said: &ProjectedReply<'_>, tail: &mut Tail, warnings: &mut Vec<Warning>) {
        let mut told = text(&said.parts).map(Cow::into_owned).unwrap_or_default();
        for part in &said.parts {
            if let projection::ReplyPart::Call { call, args, .. } = part {
                told.push_str(if told.is_empty() { "" } else { "\n" });
                told.push_str(&format!("[called {} with {}]", call.name, arguments(args)));
            }
        }
        if told.is_empty() {
            return;
        }
        let content = Some(Content::Text(Cow::Owned(told)));
        self.message(
            tail,
            Role::Model,
            &Message::Assistant(Assistant {
                content,
                ..Assistant::default()
            }),
        );
        let mut parts = Vec::new();
        for answer in said.results.iter() {
            let text = Cow::Owned(format!("[{} answered:]", answer.call.name));
            parts.push(Part::Text {
                text,
                cache_control: None,
            });
            parts.extend(answer.pieces.iter().map(|piece| part(piece, warnings)));
        }
        if !parts.is_empty() {
            self.message(
                tail,
                Role::User,
                &Message::User {
                    content: Content::Parts(parts),
                },
            );
        }
    }

    /// Writes a message, and before it what the order of roles demands.
    fn message(&self, tail: &mut Tail, role: Role, message: &Message<'_>) {
        let said = |text: &'static str| Content::Text(Cow::Borrowed(text));
        let bridge = match (self.dialect.order, tail.last, role) {
            (RoleOrder::BridgeResults, Some(Role::Tool), Role::User)
            | (RoleOrder::Alternate, Some(Role::User | Role::Tool), Role::User) => {
                Some(Message::Assistant(Assistant {
                    content: Some(said(UNDERSTOOD)),
                    ..Assistant::default()
                }))
            }
            (RoleOrder::Alternate, Some(Role::Model), Role::Model) => Some(Message::User {
                content: said(GO_ON),
            }),
            _ => None,
        };
        for message in bridge.iter().chain([message]) {
            tail.out.push(b',');
            write(&mut tail.out, message);
        }
        tail.last = Some(role);
        if self.is_marked() && ends_in_words(message) {
            // Before the brace of the last part, which `]}` follows.
            tail.markable = Some(tail.out.len() - 3);
        }
    }

    /// The id of a call and its result: the vendor's own if it created it and accepts it, else ours in the vendor's
    /// form.
    fn id<'a>(&self, call: &'a Call, related: bool, tail: &mut Tail) -> Id<'a> {
        let form = self.dialect.call_ids;
        let is_taken_back = |id: &str| match form {
            CallIds::Nine => id.len() == 9 && id.bytes().all(|it| it.is_ascii_alphanumeric()),
            CallIds::Named => is_named(id),
            CallIds::Ours => {
                let is_printable = id.bytes().all(|it| it.is_ascii_graphic());
                is_printable && (1..=self.dialect.longest_call_id).contains(&id.len())
            }
        };
        let theirs = related.then(|| tail.their_ids.get(call, is_taken_back));
        match (theirs.flatten(), form) {
            (Some(theirs), _) => Id::Theirs(theirs),
            (None, CallIds::Ours) => Id::Ours(call.id),
            (None, CallIds::Nine) => Id::Nine(call.id),
            (None, CallIds::Named) => Id::Named(call),
        }
    }
}

/// True if an id is `functions.<name>:<number>`, with a smaller number than ours have.
fn is_named(id: &str) -> bool {
    let parts = id
        .strip_prefix("functions.")
        .and_then(|it| it.rsplit_once(':'));
    let is_name = |it: u8| it.is_ascii_alphanumeric() || b"_-.".contains(&it);
    parts.is_some_and(|(name, number)| {
        (1..=128).contains(&name.len())
            && name.bytes().all(is_name)
            && number.parse::<u64>().is_ok_and(|it| it < 1 << 20)
    })
}

/// True if the last part of a message is a text, which alone can be marked.
fn ends_in_words(message: &Message<'_>) -> bool {
    let (Message::User { content } | Message::Tool(wire::Answer { content, .. })) = message else {
        return false;
    };
    matches!(content, Content::Parts(parts) if matches!(parts.last(), Some(Part::Text { .. })))
}

/// The details of thinking in a reply, in order; details of a call name it by the id that is sent.
fn gather<'a>(said: &ProjectedReply<'a>, mut id: impl FnMut(&'a Call) -> Id<'a>) -> Vec<Value> {
    let (mut all, mut calls) = (Vec::new(), Vec::new());
    for part in &said.parts {
        let extra = match part {
            projection::ReplyPart::Thinking(thinking) => &*thinking.extra,
            projection::ReplyPart::Call { call, extra, .. } => {
                calls.push(*call);
                *extra
            }
            projection::ReplyPart::Text { .. } | projection::ReplyPart::Opaque(_) => continue,
        };
        let pieces = extra.get(details::MEMBER).and_then(Value::as_array);
        pieces
            .into_iter()
            .flatten()
            .for_each(|piece| details::add(&mut all, piece.clone()));
    }
    for detail in &mut all {
        let theirs = detail.get("id").and_then(Value::as_str);
        let call = theirs.and_then(|theirs| {
            calls
                .iter()
                .find(|call| call.wire_id.as_deref() == Some(theirs))
        });
        if let Some(call) = call {
            detail["id"] = id(call).text().into();
        }
    }
    all
}

/// Text and thinking as parts of the content, in order.
fn as_parts<'a>(parts: &'a [projection::ReplyPart<'a>]) -> Vec<Part<'a>> {
    let said = parts.iter().filter_map(|part| match part {
        projection::ReplyPart::Text { text, .. } if !text.trim().is_empty() => Some(words(text)),
        projection::ReplyPart::Thinking(Thinking { text, .. }) if !text.is_empty() => {
            Some(Part::Thinking {
                thinking: [TextPart { kind: "text", text }],
                closed: true,
            })
        }
        _ => None,
    });
    said.collect()
}

fn words(text: &str) -> Part<'_> {
    Part::Text {
        text: Cow::Borrowed(text),
        cache_control: None,
    }
}

/// The text of a reply; opaque blocks have no place on this wire.
fn text<'a>(parts: &[projection::ReplyPart<'a>]) -> Option<Cow<'a, str>> {
    let mut texts = parts.iter().filter_map(|part| match part {
        projection::ReplyPart::Text { text, .. } if !text.trim().is_empty() => Some(text.clone()),
        _ => None,
    });
    let mut said = texts.next()?;
    for text in texts {
        said.to_mut().push_str(&text);
    }
    Some(said)
}

/// The arguments of a call as the text of a JSON object.
fn arguments<'a>(args: &Args<'a>) -> Cow<'a, str> {
    match args {
        Args::Empty => Cow::Borrowed("{}"),
        Args::Object(raw) => Cow::Borrowed(raw.get()),
        invalid @ Args::Invalid(_) => {
            Cow::Owned(serde_json::to_string(invalid).unwrap_or_default())
        }
    }
}

/// The name of the form of a recording. Source: `input_audio.format` of Chat Completions, openai-python, 2026-08.
fn format(media_type: &str) -> Option<&'static str> {
    match media_type.trim().trim_start_matches("audio/") {
        "wav" | "x-wav" | "wave" => Some("wav"),
        "mp3" | "mpeg" => Some("mp3"),
        _ => None,
    }
}

fn part<'a>(piece: &Piece<'a>, warnings: &mut Vec<Warning>) -> Part<'a> {
    let mut omitted = |text: &'static str| {
        warn_changed(warnings, text);
        words(text)
    };
    match *piece {
        Piece::Text(text) => words(text),
        Piece::Image(image) => match &image.source {
            Source::Base64 { data } => Part::ImageUrl {
                image_url: ImageUrl {
                    url: Address::Data {
                        media_type: media_type(&image.media_type),
                        data,
                    },
                },
            },
            Source::Url { url } => Part::ImageUrl {
                image_url: ImageUrl {
                    url: Address::Url(url),
                },
            },
            _ => omitted(UNKNOWN_SOURCE),
        },
        Piece::Audio(audio) => match (&audio.source, format(&audio.media_type)) {
            (Source::Base64 { data }, Some(format)) => Part::InputAudio {
                input_audio: InputAudio { data, format },
            },
            _ => omitted(OTHER_AUDIO),
        },
        Piece::Document(document) => match &document.source {
            Source::Base64 { data } => Part::File {
                file: File {
                    filename: document.name.as_deref().unwrap_or("document"),
                    file_data: Address::Data {
                        media_type: &document.media_type,
                        data,
                    },
                },
            },
            _ => omitted(NO_ADDRESSES),
        },
    }
}

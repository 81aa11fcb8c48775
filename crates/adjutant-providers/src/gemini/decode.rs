//! Responses of the Gemini API as chunks. Pure: state and an event give chunks.

use std::{borrow::Cow, collections::VecDeque, sync::Arc};

use adjutant_llm::{
    Block, BlockKind, Call, Chunk, Error, ErrorKind, Extra, FinishReason, ModelId, ModelInfo,
    Reply, Text as Spoken, Thinking, Usage, surrogates,
};
use serde_json::{Map, Value, value::RawValue};

use super::{
    encode::{METADATA, SIGNATURE},
    usage::Counts,
    wire::{Called, Candidate, Piece, PromptFeedback, Response, Whole},
};
use crate::{
    blocks::{Blocks, CallIdSeed},
    classify,
    driver::{Decode, Finish, Flow},
    raw_usage::{RawUsage, members},
    sse::Frame,
    text::Text,
};

/// The text that some gateways end a stream with; the API itself just ends.
const DONE: &str = "[DONE]";
/// The interval, in events, at which usage is emitted: reading and emitting it costs several times the event that
/// contains it.
const TOLD_EVERY: u32 = 64;
/// The number of first events that always emit their usage.
const TOLD_FIRST: u32 = 16;
/// The largest number of characters of an unreadable event that stand in the message.
const MAX_EXCERPT: usize = 120;

/// The state of one answer.
#[derive(Debug)]
pub(super) struct Decoder {
    model: ModelId,
    /// The issuer of opaque blocks.
    issuer: Arc<str>,
    blocks: Blocks,
    /// The open text or thought block.
    open: Option<OpenText>,
    /// The metadata about the text that is not kept with a text yet.
    metadata: Map<String, Value>,
    counts: Counts,
    usage: Usage,
    raw_usage: RawUsage,
    /// The usage that has not been emitted yet.
    waiting: Option<String>,
    /// The number of usages that came.
    usages: u32,
    stop: Option<(Finish, Arc<str>)>,
    wire_id: Option<Arc<str>>,
}

#[derive(Debug)]
struct OpenText {
    block: u32,
    kind: Kind,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thought,
}

impl Decoder {
    pub(super) fn new(info: &ModelInfo, place: CallIdSeed) -> Self {
        Self {
            model: info.id.clone(),
            issuer: info.provider().into(),
            blocks: Blocks::new(place),
            open: None,
            metadata: Map::new(),
            counts: Counts::default(),
            usage: Usage::default(),
            raw_usage: RawUsage::default(),
            waiting: None,
            usages: 0,
            stop: None,
            wire_id: None,
        }
    }

    /// Processes an answer of an event; `whole` returns one of its parts unchanged.
    fn candidate<'a>(
        &mut self,
        candidate: Candidate<'a>,
        whole: impl Fn(usize) -> Option<&'a RawValue>,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), Error> {
        if candidate.index.0.unwrap_or(0) != 0 {
            return Ok(());
        }
        let said = [
            candidate.grounding_metadata,
            candidate.citation_metadata,
            candidate.url_context_metadata,
        ];
        for (name, raw) in METADATA.into_iter().zip(said) {
            if let Some(value) = raw.and_then(|raw| surrogates::read::<Value>(raw.get()).ok()) {
                self.metadata.insert(name.to_owned(), value);
            }
        }
        if candidate.finish_reason.0.is_some() {
            self.tell(out);
        }
        for (at, piece) in candidate
            .content
            .map(|content| content.parts)
            .unwrap_or_default()
            .into_iter()
            .enumerate()
        {
            self.part(piece, || whole(at), out)?;
        }
        match candidate.finish_reason.0.as_deref() {
            None | Some("" | "FINISH_REASON_UNSPECIFIED") => Ok(()),
            Some(reason) => self.read_finish_reason(reason, candidate.finish_message.0),
        }
    }

    fn part<'a>(
        &mut self,
        piece: Piece<'a>,
        whole: impl FnOnce() -> Option<&'a RawValue>,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), Error> {
        let signature = piece
            .thought_signature
            .map(|Text(it)| it)
            .filter(|it| !it.is_empty());
        let kind = if piece.thought == Some(true) {
            Kind::Thought
        } else {
            Kind::Text
        };
        match (piece.text, piece.function_call) {
            (_, Some(call)) => self.call(call, signature, out),
            (Some(Text(text)), None) => self.say(kind, &text, signature, out),
            (None, None) => {
                let raw = whole().map_or("null", RawValue::get);
                let value: Value = surrogates::read(raw).map_err(|_| unreadable(raw))?;
                let is_bare = |it: &Map<String, Value>| {
                    it.keys().all(|name| name == "thought" || name == SIGNATURE)
                };
                if value.as_object().is_none_or(is_bare) {
                    return self.say(kind, "", signature, out);
                }
                self.keep(value, out)
            }
        }
    }

    /// Adds text to the open block if it is of the same kind. A signature belongs only to its part, so a signed part
    /// is its own block, even without text.
    fn say(
        &mut self,
        kind: Kind,
        text: &str,
        signature: Option<Cow<'_, str>>,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), Error> {
        if text.is_empty() && signature.is_none() {
            return Ok(());
        }
        if signature.is_some() || self.open.as_ref().is_none_or(|open| open.kind != kind) {
            self.hush(None, out);
            let opens = if kind == Kind::Text {
                BlockKind::Text
            } else {
                BlockKind::Thinking
            };
            let block = self.blocks.open(|_| opens, out)?;
            self.open = Some(OpenText {
                block,
                kind,
                text: String::new(),
            });
        }
        if let Some(open) = self.open.as_mut().filter(|_| !text.is_empty()) {
            open.text.push_str(text);
            out.push_back(Chunk::Delta {
                block: open.block,
                text: text.to_owned(),
            });
        }
        if signature.is_some() {
            self.hush(signature, out);
        }
        Ok(())
    }

    /// Closes the open block.
    fn hush(&mut self, signature: Option<Cow<'_, str>>, out: &mut VecDeque<Chunk>) {
        let Some(open) = self.open.take() else { return };
        let content = match open.kind {
            Kind::Thought => Block::Thinking(Thinking {
                text: open.text.into(),
                signature: signature.map(Into::into),
                redacted: false,
                extra: Extra::default(),
            }),
            Kind::Text => {
                let extra = extra(signature, std::mem::take(&mut self.metadata));
                Block::Text(Spoken {
                    text: open.text.into(),
                    extra,
                })
            }
        };
        self.blocks.close(open.block, content, out);
    }

    /// Processes a complete call. Calls without ids are always different calls.
    fn call(
        &mut self,
        call: Called<'_>,
        signature: Option<Cow<'_, str>>,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), Error> {
        if call.will_continue == Some(true) || call.partial_args.into_iter().next().is_some() {
            return Err(protocol(
                "a call is streamed in parts, which was not requested",
            ));
        }
        let name = call
            .name
            .0
            .filter(|name| !name.is_empty())
            .ok_or_else(|| protocol("a call names no tool"))?;
        let name: Arc<str> = name.into();
        let args = call.args.map_or("", RawValue::get);
        let id = call.id.0.filter(|id| !id.is_empty());
        // Some gateways send a call again with each event. Source: NousResearch/hermes-agent 25046, 2026-05.
        let is_same = |it: &Call| {
            it.wire_id.as_deref() == id.as_deref() && *it.args == *args && *it.name.0 == *name
        };
        if id.is_some() && self.blocks.calls().any(is_same) {
            return Ok(());
        }
        self.hush(None, out);
        let kind = |id| BlockKind::Call {
            id,
            name: name.to_string().into(),
        };
        let block = self.blocks.open(kind, out)?;
        if !args.is_empty() {
            out.push_back(Chunk::Delta {
                block,
                text: args.to_owned(),
            });
        }
        let mut closed = Call::new(self.blocks.call_id(block), &*name, args);
        closed.wire_id = id.map(Into::into);
        closed.extra = extra(signature, Map::new());
        self.blocks.close(block, Block::Call(closed), out);
        Ok(())
    }

    /// Keeps a part that only its issuer understands.
    fn keep(&mut self, value: Value, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        self.hush(None, out);
        let block = self.blocks.open(|_| BlockKind::Opaque, out)?;
        self.blocks.close(
            block,
            Block::Opaque {
                issuer: Arc::clone(&self.issuer),
                value,
            },
            out,
        );
        Ok(())
    }

    /// Reads a usage. Every event contains it, so only some events emit it: counts are cumulative.
    fn read_usage(&mut self, raw: &RawValue, out: &mut VecDeque<Chunk>) {
        if self
            .waiting
            .as_deref()
            .is_some_and(|waiting| !same_shape(waiting, raw.get()))
        {
            self.tell(out);
        }
        let waiting = self.waiting.get_or_insert_default();
        waiting.clear();
        waiting.push_str(raw.get());
        self.usages += 1;
        if self.usages <= TOLD_FIRST || self.usages.is_multiple_of(TOLD_EVERY) {
            self.tell(out);
        }
    }

    /// Emits the pending usage; a missing count keeps its value.
    fn tell(&mut self, out: &mut VecDeque<Chunk>) {
        let Some(raw) = self.waiting.take() else {
            return;
        };
        let Ok(raw) = serde_json::from_str::<&RawValue>(&raw) else {
            return;
        };
        let Some(fields) = members(raw) else { return };
        self.counts.add(&fields);
        let usage = self.counts.normal();
        let is_new = self.raw_usage.add(raw, fields) | (usage != self.usage);
        self.usage = usage;
        if is_new {
            out.push_back(Chunk::Usage {
                usage,
                raw: self.raw_usage.value(),
            });
        }
    }

    fn read_finish_reason(
        &mut self,
        reason: &str,
        message: Option<Cow<'_, str>>,
    ) -> Result<(), Error> {
        let failure = match ending(reason) {
            Ending::Stop(finish) => {
                self.stop = Some((finish, reason.into()));
                return Ok(());
            }
            Ending::Failure(failure) => failure,
        };
        let why = message
            .filter(|it| !it.is_empty())
            .map(|it| format!(": {}", excerpt(&it)))
            .unwrap_or_default();
        let text = format!("{} broke off ({reason}){why}", self.model);
        Err(match failure {
            Failure::Passing => Error::new(ErrorKind::Generation, text),
            Failure::Request => Error::new(ErrorKind::Invalid, text),
        }
        .with(|it| it.code = Some(reason.into())))
    }

    /// The prompt was refused, so that no candidate comes at all.
    fn block_error(&self, feedback: &PromptFeedback<'_>, data: &str) -> Option<Error> {
        let reason = feedback
            .block_reason
            .0
            .as_deref()
            .filter(|it| !it.is_empty())?;
        let said = feedback
            .block_reason_message
            .0
            .as_deref()
            .filter(|it| !it.is_empty());
        let why = said
            .map(|it| format!(": {}", excerpt(it)))
            .unwrap_or_default();
        let text = format!("{} refused the prompt ({reason}){why}", self.model);
        Some(Error::new(ErrorKind::Refused, text).with(|it| {
            it.code = Some(reason.into());
            it.body = Some(data.into());
        }))
    }

    fn refusal(&self, data: &str) -> Error {
        classify::refusal(&self.model, data)
    }
}

impl Decode for Decoder {
    fn frame(&mut self, frame: Frame<'_>, out: &mut VecDeque<Chunk>) -> Result<Flow, Error> {
        let data = frame.data.trim();
        match data {
            "" => return Ok(Flow::More),
            DONE => return Ok(Flow::Finished),
            _ => {}
        }
        let read = self.response(data, out);
        // The last usage counts, also if the answer broke off.
        if read.is_err() {
            self.tell(out);
        }
        read
    }

    fn is_whole(&self) -> bool {
        self.stop.is_some()
    }

    fn cut(&mut self, out: &mut VecDeque<Chunk>) {
        self.tell(out);
    }

    fn end(&mut self, out: &mut VecDeque<Chunk>) -> Result<Reply, Error> {
        let Some((finish, raw_stop)) = self.stop.take() else {
            return Err(protocol("the stream ended in the middle"));
        };
        self.tell(out);
        self.hush(None, out);
        let metadata = std::mem::take(&mut self.metadata);
        if !metadata.is_empty() {
            self.keep(Value::Object(metadata), out)?;
        }
        let mut reply = Reply::new(self.model.clone(), FinishReason::End);
        reply.blocks = self.blocks.take();
        reply.raw_stop = Some(raw_stop);
        reply.usage = self.usage;
        reply.raw_usage = self.raw_usage.take();
        reply.wire_id = self.wire_id.take();
        finish.settle(reply, out)
    }
}

impl Decoder {
    fn response(&mut self, data: &str, out: &mut VecDeque<Chunk>) -> Result<Flow, Error> {
        let response: Response<'_> =
            serde_json::from_str(data).map_err(|_| unreadable(culprit(data)))?;
        if response.error.is_some() {
            return Err(self.refusal(data));
        }
        if let Some(Text(id)) = response.response_id.filter(|_| self.wire_id.is_none()) {
            self.wire_id = Some(id.into());
        }
        if let Some(raw) = response.usage_metadata {
            self.read_usage(raw, out);
        }
        let mut answered = false;
        for (at, candidate) in response.candidates.into_iter().enumerate() {
            answered = true;
            self.candidate(candidate, |part| whole(data, at, part), out)?;
        }
        let feedback = response
            .prompt_feedback
            .filter(|_| !answered && self.blocks.is_empty());
        match feedback.and_then(|it| self.block_error(&it, data)) {
            Some(error) => Err(error),
            // More may come after the reason to stop: the API has no mark for the end.
            None => Ok(Flow::More),
        }
    }
}

/// A part of an answer as it is.
fn whole(data: &str, candidate: usize, part: usize) -> Option<&RawValue> {
    let whole: Whole<'_> = serde_json::from_str(data).ok()?;
    whole
        .candidates
        .into_iter()
        .nth(candidate)?
        .content?
        .parts
        .into_iter()
        .nth(part)
}

/// The part for which an event cannot be read, or the event.
fn culprit(data: &str) -> &str {
    let Ok(whole) = serde_json::from_str::<Whole<'_>>(data) else {
        return data;
    };
    let contents = whole.candidates.into_iter().filter_map(|it| it.content);
    let mut parts = contents.flat_map(|it| it.parts).map(RawValue::get);
    parts
        .find(|part| serde_json::from_str::<Piece<'_>>(part).is_err())
        .unwrap_or(data)
}

/// The meaning of a reason to stop.
enum Ending {
    Stop(Finish),
    Failure(Failure),
}

/// The caller's possible reaction to an unsuccessful stop reason.
enum Failure {
    /// Retry: the output of the model could not be used.
    Passing,
    /// Change the request.
    Request,
}

/// Source: `FinishReason` in js-genai and in Firebase's client, 2026-11. The API has no separate reason for calls.
fn ending(reason: &str) -> Ending {
    match reason {
        "STOP" => Ending::Stop(Finish::Whole),
        "MAX_TOKENS" => Ending::Stop(Finish::As(FinishReason::Length)),
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Ending::Stop(Finish::As(FinishReason::Filtered)),
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MALFORMED_RESPONSE"
        | "NO_IMAGE"
        | "IMAGE_OTHER"
        | "OTHER" => Ending::Failure(Failure::Passing),
        "MISSING_THOUGHT_SIGNATURE" => Ending::Failure(Failure::Request),
        // Calls come whole.
        _ => Ending::Stop(Finish::Unknown { open: false }),
    }
}

/// True if two usages differ in counts only, so that the later one replaces the earlier one.
fn same_shape(one: &str, other: &str) -> bool {
    let same =
        |one: u8, other: u8| one == other || (one.is_ascii_digit() && other.is_ascii_digit());
    if one.len() == other.len() {
        // Mostly so; without a way out of the loop it takes many bytes at once.
        return one
            .bytes()
            .zip(other.bytes())
            .fold(true, |so_far, (one, other)| so_far & same(one, other));
    }
    let mut others = other.bytes().filter(|it| !it.is_ascii_digit());
    one.bytes()
        .filter(|it| !it.is_ascii_digit())
        .all(|it| others.next() == Some(it))
        && others.next().is_none()
}

/// Returns the data that is stored with a block: its signature and its metadata.
fn extra(signature: Option<Cow<'_, str>>, metadata: Map<String, Value>) -> Extra {
    let mut members = Map::new();
    if let Some(signature) = signature {
        members.insert(SIGNATURE.to_owned(), Value::String(signature.into_owned()));
    }
    members.extend(metadata);
    Extra::from(if members.is_empty() {
        Value::Null
    } else {
        Value::Object(members)
    })
}

fn excerpt(text: &str) -> String {
    text.chars().take(MAX_EXCERPT).collect()
}

fn unreadable(data: &str) -> Error {
    protocol(&format!(
        "the stream holds an event that cannot be read: {}",
        excerpt(data)
    ))
}

fn protocol(text: &str) -> Error {
    Error::new(ErrorKind::Protocol, text)
}

//! Chunks of the OpenAI Chat Completions API as chunks of ours. Pure: state and an event give chunks.

mod calls;
mod frame;
mod tags;
mod usage;

use std::{borrow::Cow, collections::VecDeque, sync::Arc};

use adjutant_llm::{
    Block, BlockKind, Chunk, Error, ErrorKind, Extra, FinishReason, ModelInfo, Reply, Text,
    Thinking, Usage, surrogates,
};
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    details,
    encode::{AS_PART, IN_TAGS},
    wire::{self, CallDelta, Choice, Completion, Delta, FunctionDelta, Groq, Spoken, SpokenPart},
};
use crate::{
    blocks::{Blocks, CallIdSeed},
    classify, counts,
    dialect::Dialect,
    driver::{Decode, Finish, Flow},
    overflow,
    sse::Frame,
    text::{Few, Index, Loose, fill},
};
use calls::OpenCall;
use frame::Around;
use tags::Tags;

/// Source: the streaming guide of Chat Completions, 2026-08.
const DONE: &str = "[DONE]";
/// The largest number of characters of an unreadable event that stand in the message.
const MAX_EXCERPT: usize = 120;
/// The largest number of annotations of a text.
const MAX_NOTES: usize = 4_096;

/// The state of one answer.
#[derive(Debug)]
pub(super) struct Decoder {
    info: Arc<ModelInfo>,
    silent_overflow: bool,
    /// True if the usage was requested.
    wants_usage: bool,
    tags: Tags,
    blocks: Blocks,
    /// The text or thinking block that is open.
    said: Option<OpenText>,
    /// True if a delta had content: a complete message then repeats it.
    has_deltas: bool,
    calls: Vec<OpenCall>,
    /// OpenRouter's pieces of thinking that no block holds yet.
    details: Vec<Value>,
    notes: Notes,
    usage: Usage,
    raw_usage: Option<Extra>,
    finish: Option<Arc<str>>,
    refused: bool,
    done: bool,
    wire_id: Option<Arc<str>>,
    around: Around,
}

/// The sources of the text that no block contains yet.
#[derive(Debug, Default)]
struct Notes {
    annotations: Vec<Value>,
    citations: Option<Box<str>>,
    search_results: Option<Box<str>>,
}

#[derive(Debug)]
struct OpenText {
    block: u32,
    kind: Kind,
    text: String,
    /// The field in which thinking came, if it is not the usual one.
    field: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

impl Decoder {
    pub(super) fn new(info: Arc<ModelInfo>, dialect: &Dialect, place: CallIdSeed) -> Self {
        let tags = if dialect.think_tags {
            Tags::Start(String::new())
        } else {
            Tags::Text
        };
        Self {
            info,
            silent_overflow: dialect.silent_overflow,
            wants_usage: dialect.stream_options,
            tags,
            blocks: Blocks::new(place),
            said: None,
            has_deltas: false,
            calls: Vec::new(),
            details: Vec::new(),
            notes: Notes::default(),
            usage: Usage::default(),
            raw_usage: None,
            finish: None,
            refused: false,
            done: false,
            wire_id: None,
            around: Around::default(),
        }
    }

    fn choices(
        &mut self,
        choices: &mut Few<Choice<'_>>,
        out: &mut VecDeque<Chunk>,
    ) -> Result<Flow, Error> {
        for choice in choices.iter_mut() {
            self.choice(choice, out)?;
        }
        Ok(Flow::More)
    }

    fn choice(&mut self, choice: &mut Choice<'_>, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        if choice.index.0.unwrap_or(0) != 0 {
            return Ok(());
        }
        match choice.message {
            _ if choice.has_delta => {
                self.delta(&mut choice.delta, out)?;
                self.has_deltas |= !self.blocks.is_empty() || !self.calls.is_empty();
            }
            Some(raw) if !self.has_deltas && raw.get() != "null" => {
                let mut delta = Delta::default();
                fill(raw.get(), &mut delta).map_err(|_| unreadable(raw.get()))?;
                self.delta(&mut delta, out)?;
            }
            _ => {}
        }
        if let Some(reason) = choice
            .finish_reason
            .0
            .take()
            .filter(|reason| !reason.is_empty())
        {
            let native = choice.native_finish_reason.map_or("", RawValue::get);
            let native = native.trim_matches('"');
            if classify::is_failed_generation(&reason) || classify::is_failed_generation(native) {
                let text = format!("{} broke off ({reason} {native})", self.info.id);
                return Err(Error::new(ErrorKind::Generation, text));
            }
            // Source: OpenRouter's errors in mid-stream, DeepSeek's and Z.ai's references, 2026.
            if matches!(
                &*reason,
                "error" | "abort" | "network_error" | "insufficient_system_resource"
            ) {
                let text = format!("{} broke off with an error ({reason})", self.info.id);
                return Err(Error::new(ErrorKind::Overloaded, text));
            }
            self.finish = Some(reason.into());
        }
        self.read_usage(choice.usage, out)
    }

    fn delta<'a>(&mut self, delta: &mut Delta<'a>, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        let pieces = match delta.reasoning_details {
            None => Vec::new(),
            details => self.detail(details)?,
        };
        let said = |text: &mut Loose<'a>| text.0.take().filter(|it| !it.is_empty());
        // Some servers send the same text in two fields.
        if let Some(text) = said(&mut delta.reasoning_content) {
            self.say(Kind::Thinking, None, text, out)?;
        } else if let Some(text) = said(&mut delta.reasoning) {
            self.say(Kind::Thinking, Some("reasoning"), text, out)?;
        } else if let Some(text) = said(&mut delta.reasoning_text) {
            self.say(Kind::Thinking, Some("reasoning_text"), text, out)?;
        } else if !pieces.is_empty() {
            for text in pieces {
                self.say(Kind::Thinking, Some("reasoning"), Cow::Owned(text), out)?;
            }
        }
        match delta.content.take() {
            Some(Spoken::Text(text)) => self.say(Kind::Text, None, text, out)?,
            Some(Spoken::Parts(parts)) => parts
                .into_iter()
                .try_for_each(|part| self.part(part, out))?,
            None => {}
        }
        if let Some(text) = delta.refusal.0.take().filter(|text| !text.is_empty()) {
            self.refused = true;
            self.say(Kind::Text, None, text, out)?;
        }
        if delta.annotations.is_some() {
            list(delta.annotations)
                .into_iter()
                .try_for_each(|note| self.notes.add(note))?;
        }
        let alone = delta.tool_calls.is_empty();
        if !alone && !matches!(self.tags, Tags::Text) {
            self.settle_tags(out)?;
        }
        let known = self.calls.len();
        for call in delta.tool_calls.iter_mut() {
            self.call(call, known, out)?;
        }
        if let Some(function) = delta.function_call.filter(|_| alone).and_then(function) {
            let mut call = CallDelta {
                index: Index(Some(0)),
                function: Some(function),
                ..CallDelta::default()
            };
            self.call(&mut call, self.calls.len(), out)?;
        }
        Ok(())
    }

    /// Takes pieces of thinking; what can be read of them comes back.
    #[cold]
    fn detail(&mut self, raw: Option<&RawValue>) -> Result<Vec<String>, Error> {
        let mut readable = Vec::new();
        for piece in list(raw) {
            room(self.details.len())?;
            let text = piece
                .get("text")
                .or_else(|| piece.get("summary"))
                .and_then(Value::as_str);
            readable.extend(text.map(str::to_owned));
            details::add(&mut self.details, piece);
        }
        Ok(readable)
    }

    /// Reads a part of the content: a text, thinking texts, or the sources of a text.
    #[cold]
    fn part(&mut self, part: SpokenPart<'_>, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        if let Some(text) = part.text.0 {
            return self.say(Kind::Text, None, text, out);
        }
        if let Some(ids) = part.reference_ids {
            return self
                .notes
                .add(json!({"type": "reference", "reference_ids": list(Some(ids))}));
        }
        let Some(raw) = part
            .thinking
            .filter(|_| part.kind.0.as_deref() == Some("thinking"))
        else {
            return Ok(());
        };
        match serde_json::from_str(raw.get()) {
            Ok(Spoken::Text(text)) => self.say(Kind::Thinking, Some(AS_PART), text, out),
            Ok(Spoken::Parts(parts)) => {
                let mut texts = parts.into_iter().filter_map(|part| part.text.0);
                texts.try_for_each(|text| self.say(Kind::Thinking, Some(AS_PART), text, out))
            }
            Err(_) => Err(unreadable(raw.get())),
        }
    }

    fn say(
        &mut self,
        kind: Kind,
        field: Option<&'static str>,
        text: Cow<'_, str>,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), Error> {
        if text.is_empty() {
            return Ok(());
        }
        if !matches!(self.tags, Tags::Text) {
            if kind == Kind::Text {
                return self.say_tagged(text, out);
            }
            // The server separates the thinking itself.
            self.settle_tags(out)?;
        }
        if self.said.as_ref().is_none_or(|said| said.kind != kind) {
            self.hush(out);
            let opens = if kind == Kind::Text {
                BlockKind::Text
            } else {
                BlockKind::Thinking
            };
            let block = self.blocks.open(|_| opens, out)?;
            self.said = Some(OpenText {
                block,
                kind,
                text: String::new(),
                field,
            });
        }
        if let Some(said) = &mut self.said {
            said.text.push_str(&text);
            out.push_back(Chunk::Delta {
                block: said.block,
                text: text.into_owned(),
            });
        }
        Ok(())
    }

    /// Closes the open text or thinking block.
    fn hush(&mut self, out: &mut VecDeque<Chunk>) {
        let Some(OpenText {
            block,
            kind,
            text,
            field,
        }) = self.said.take()
        else {
            return;
        };
        let mut extra = Map::new();
        let content = match kind {
            Kind::Text => {
                self.notes.take(&mut extra);
                Block::Text(Text {
                    text: text.into(),
                    extra: members_to_extra(extra),
                })
            }
            Kind::Thinking => {
                extra.extend(field.map(|field| ("field".to_owned(), field.into())));
                self.take_details(&mut extra);
                Block::Thinking(Thinking {
                    extra: members_to_extra(extra),
                    ..Thinking::new(text)
                })
            }
        };
        self.blocks.close(block, content, out);
    }

    fn take_details(&mut self, extra: &mut Map<String, Value>) {
        if !self.details.is_empty() {
            extra.insert(
                details::MEMBER.to_owned(),
                Value::Array(std::mem::take(&mut self.details)),
            );
        }
    }

    /// Closes a block for data that arrived when no block was left to hold it.
    #[cold]
    fn leave(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        let mut extra = Map::new();
        self.take_details(&mut extra);
        if !extra.is_empty() {
            let block = self.blocks.open(|_| BlockKind::Thinking, out)?;
            let thinking = Thinking {
                redacted: true,
                extra: members_to_extra(extra),
                ..Thinking::new("")
            };
            self.blocks.close(block, Block::Thinking(thinking), out);
        }
        let mut value = Map::new();
        self.notes.take(&mut value);
        if !value.is_empty() {
            value.insert("type".to_owned(), "sources".into());
            let block = self.blocks.open(|_| BlockKind::Opaque, out)?;
            let opaque = Block::Opaque {
                issuer: self.info.provider().into(),
                value: Value::Object(value),
            };
            self.blocks.close(block, opaque, out);
        }
        Ok(())
    }

    /// Reads the fields that Groq adds next to its choices.
    #[cold]
    fn groq(&mut self, raw: &RawValue, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        let groq: Groq<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
        if let Some(text) = groq.error.0.filter(|text| !text.is_empty()) {
            return Err(self.refusal(&json!({"error": text}).to_string()));
        }
        if self.raw_usage.is_none() {
            self.read_usage(groq.usage, out)
        } else {
            Ok(())
        }
    }

    /// Reads a usage; a repeated one is ignored.
    fn read_usage(
        &mut self,
        raw: Option<&RawValue>,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), Error> {
        let Some(raw) = raw else { return Ok(()) };
        let text = raw.get();
        if text == "null" || self.raw_usage.as_ref().is_some_and(|known| known == raw) {
            return Ok(());
        }
        let Ok(said) = serde_json::from_str::<wire::Usage>(text) else {
            return Ok(());
        };
        self.usage = usage::normal(&said);
        let kept = counts::usage_to_extra(raw);
        self.raw_usage = Some(kept.clone());
        out.push_back(Chunk::Usage {
            usage: self.usage,
            raw: kept,
        });
        Ok(())
    }

    fn finish(&self) -> Finish {
        match self.finish.as_deref() {
            Some("length" | "max_tokens" | "model_length" | "model_context_window_exceeded") => {
                Finish::As(FinishReason::Length)
            }
            Some("content_filter" | "sensitive") => Finish::As(FinishReason::Filtered),
            _ if self.refused => Finish::As(FinishReason::Refused),
            // Source: the references of OpenAI, Anthropic's and Google's compatible APIs, Mistral, Together, TGI and vLLM.
            Some(
                "stop" | "tool_calls" | "function_call" | "end" | "eos" | "eos_token"
                | "stop_sequence" | "end_turn" | "tool_use" | "STOP",
            )
            | None => Finish::Whole,
            // Calls of this wire have no end of their own: whether their arguments are whole is seen when they are read.
            Some(_) => Finish::Unknown { open: false },
        }
    }

    #[cold]
    fn refusal(&self, data: &str) -> Error {
        classify::refusal(&self.info.id, data)
    }
}

impl Decode for Decoder {
    fn frame(&mut self, frame: Frame<'_>, out: &mut VecDeque<Chunk>) -> Result<Flow, Error> {
        let data = frame.data.trim_ascii();
        if data == DONE {
            self.done = true;
            return Ok(Flow::Finished);
        }
        if data.is_empty() {
            return Ok(Flow::More);
        }
        if frame.event == "error" {
            return Err(self.refusal(data));
        }
        let mut choices = Few::default();
        if self.around.read(data, &mut choices) {
            return self.choices(&mut choices, out);
        }
        let mut completion = Completion {
            knows_id: self.wire_id.is_some(),
            ..Completion::default()
        };
        fill(data, &mut completion).map_err(|_| unreadable(data))?;
        self.around.learn(data, &completion);
        if completion.error.is_some_and(|error| error.get() != "null") {
            return Err(self.refusal(data));
        }
        if let (None, Loose(Some(id))) = (&self.wire_id, &completion.id) {
            self.wire_id = Some((&**id).into());
        }
        self.choices(&mut completion.choices, out)?;
        if completion.citations.is_some() || completion.search_results.is_some() {
            self.notes
                .source(completion.citations, completion.search_results);
        }
        self.read_usage(completion.usage, out)?;
        completion
            .x_groq
            .map_or(Ok(()), |raw| self.groq(raw, out))?;
        Ok(Flow::More)
    }

    fn is_whole(&self) -> bool {
        self.finish.is_some() || self.done
    }

    fn awaits_usage(&self) -> bool {
        self.wants_usage && self.raw_usage.is_none()
    }

    fn cut(&mut self, out: &mut VecDeque<Chunk>) {
        // The answer has failed already: a block that cannot be opened adds nothing to that.
        let _ = self.settle_tags(out);
    }

    fn end(&mut self, out: &mut VecDeque<Chunk>) -> Result<Reply, Error> {
        let empty = self.blocks.is_empty() && self.calls.is_empty() && self.finish.is_none();
        if !self.is_whole() || empty {
            return Err(protocol("the stream ended in the middle"));
        }
        self.settle_tags(out)?;
        self.hush(out);
        self.close_calls(out)?;
        if !self.details.is_empty() || !self.notes.is_empty() {
            self.leave(out)?;
        }
        let mut reply = Reply::new(self.info.id.clone(), FinishReason::End);
        reply.blocks = self.blocks.take();
        // Text without the announced call is still an answer; an empty reply is not.
        let announced = matches!(self.finish.as_deref(), Some("tool_calls" | "function_call"));
        if announced
            && !reply
                .blocks
                .iter()
                .any(|block| matches!(**block, Block::Text(_) | Block::Call(_)))
        {
            return Err(protocol(
                "the reply ended for a call without containing one",
            ));
        }
        let finish = self.finish();
        reply.raw_stop = self.finish.take();
        reply.usage = self.usage;
        reply.raw_usage = self.raw_usage.take().unwrap_or_default();
        reply.wire_id = self.wire_id.take();
        match overflow::silent_overflow(&self.info, &reply).filter(|_| self.silent_overflow) {
            Some(error) => Err(error),
            None => finish.settle(reply, out),
        }
    }
}

impl Notes {
    fn is_empty(&self) -> bool {
        self.annotations.is_empty() && self.citations.is_none() && self.search_results.is_none()
    }

    fn add(&mut self, annotation: Value) -> Result<(), Error> {
        room(self.annotations.len())?;
        self.annotations.push(annotation);
        Ok(())
    }

    /// Reads the sources so far, which servers repeat with every chunk.
    #[cold]
    fn source(&mut self, citations: Option<&RawValue>, search_results: Option<&RawValue>) {
        for (known, raw) in [
            (&mut self.citations, citations),
            (&mut self.search_results, search_results),
        ] {
            let new = raw
                .map(RawValue::get)
                .filter(|raw| !matches!(*raw, "null" | "[]"));
            if let Some(new) = new.filter(|new| known.as_deref() != Some(*new)) {
                *known = Some(new.into());
            }
        }
    }

    /// Moves all of them into the extra of a block.
    fn take(&mut self, into: &mut Map<String, Value>) {
        let notes = std::mem::take(self);
        if !notes.annotations.is_empty() {
            into.insert("annotations".to_owned(), Value::Array(notes.annotations));
        }
        for (name, raw) in [
            ("citations", notes.citations),
            ("search_results", notes.search_results),
        ] {
            into.extend(
                raw.and_then(|raw| Some((name.to_owned(), serde_json::from_str(&raw).ok()?))),
            );
        }
    }
}

/// The members as an extra; none is nothing.
fn members_to_extra(members: Map<String, Value>) -> Extra {
    if members.is_empty() {
        Extra::default()
    } else {
        Extra::from(Value::Object(members))
    }
}

/// Returns the elements of a list; empty for any other value.
fn list(raw: Option<&RawValue>) -> Vec<Value> {
    raw.and_then(|raw| surrogates::read(raw.get()).ok())
        .unwrap_or_default()
}

/// The call of the old form; a few servers send an empty one with every chunk.
fn function(raw: &RawValue) -> Option<FunctionDelta<'_>> {
    let function: FunctionDelta<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
    let is_said = |text: &Option<Cow<'_, str>>| text.as_ref().is_some_and(|it| !it.is_empty());
    (is_said(&function.name.0) || is_said(&function.arguments)).then_some(function)
}

fn room(count: usize) -> Result<(), Error> {
    if count == MAX_NOTES {
        Err(protocol(
            "the reply has more than 4,096 notes beside its text",
        ))
    } else {
        Ok(())
    }
}

fn unreadable(data: &str) -> Error {
    let excerpt: String = data.chars().take(MAX_EXCERPT).collect();
    Error::new(
        ErrorKind::Protocol,
        format!("the stream holds an event that cannot be read: {excerpt}"),
    )
}

fn protocol(text: &str) -> Error {
    Error::new(ErrorKind::Protocol, text)
}

//! Chunks of the OpenAI Chat Completions API as chunks of ours. Pure: state and an event give chunks.

use std::{borrow::Cow, collections::VecDeque, sync::Arc};

use adjutant_llm::{Block, BlockKind, Call, Chunk, Error, ErrorKind, ModelId, Reply, Stop, Thinking, Usage};
use serde_json::{Value, value::RawValue};

use super::wire::{self, CallDelta, Choice, Completion, Delta};
use crate::{
    blocks::{Blocks, Place},
    classify::Refusal,
    driver::{Decode, Flow},
    sse::Frame,
    text::{Loose, Text},
};

/// Source: the streaming guide of Chat Completions, 2026-08.
const DONE: &str = "[DONE]";
/// How many characters of an event that cannot be read stand in the message.
const MAX_EXCERPT: usize = 120;
/// How many calls may wait for their names.
const MAX_CALLS: usize = 4_096;

/// The state of one answer.
#[derive(Debug)]
pub(super) struct Decoder {
    model: ModelId,
    blocks: Blocks,
    /// The text or thinking that is being said.
    said: Option<Said>,
    calls: Vec<Open>,
    usage: Usage,
    raw_usage: Option<(Box<str>, Arc<Value>)>,
    finish: Option<Arc<str>>,
    refused: bool,
    done: bool,
    wire_id: Option<Arc<str>>,
}

#[derive(Debug)]
struct Said {
    block: u32,
    kind: Kind,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

/// A call that is not closed yet; it opens with its name.
#[derive(Debug)]
struct Open {
    index: Option<u64>,
    wire_id: Option<Arc<str>>,
    named: Option<(u32, Arc<str>)>,
    args: String,
}

impl Decoder {
    pub(super) fn new(model: ModelId, place: Place) -> Self {
        Self {
            model,
            blocks: Blocks::new(place),
            said: None,
            calls: Vec::new(),
            usage: Usage::default(),
            raw_usage: None,
            finish: None,
            refused: false,
            done: false,
            wire_id: None,
        }
    }

    fn choice(&mut self, choice: Choice<'_>, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        if choice.index.unwrap_or(0) != 0 {
            return Ok(());
        }
        if let Some(delta) = choice.delta {
            self.delta(delta, out)?;
        }
        if let Some(reason) = choice.finish_reason.0.filter(|reason| !reason.is_empty()) {
            if reason == "error" {
                let text = format!("{} broke off with an error", self.model);
                return Err(Error::new(ErrorKind::Overloaded, text));
            }
            self.finish = Some(reason.into());
        }
        self.used(choice.usage, out)
    }

    fn delta(&mut self, delta: Delta<'_>, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        let thinking = delta.reasoning_content.0.filter(|text| !text.is_empty());
        if let Some(text) = thinking.or(delta.reasoning.0) {
            self.say(Kind::Thinking, text, out)?;
        }
        if let Some(Text(text)) = delta.content {
            self.say(Kind::Text, text, out)?;
        }
        if let Some(text) = delta.refusal.0.filter(|text| !text.is_empty()) {
            self.refused = true;
            self.say(Kind::Text, text, out)?;
        }
        for call in delta.tool_calls.unwrap_or_default() {
            self.call(call, out)?;
        }
        Ok(())
    }

    fn say(&mut self, kind: Kind, text: Cow<'_, str>, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        if text.is_empty() {
            return Ok(());
        }
        if self.said.as_ref().is_none_or(|said| said.kind != kind) {
            self.hush(out);
            let opens = if kind == Kind::Text { BlockKind::Text } else { BlockKind::Thinking };
            let block = self.blocks.open(|_| opens, out)?;
            self.said = Some(Said { block, kind, text: String::new() });
        }
        if let Some(said) = &mut self.said {
            said.text.push_str(&text);
            out.push_back(Chunk::Delta { block: said.block, text: text.into_owned() });
        }
        Ok(())
    }

    /// Closes the text or thinking that is being said.
    fn hush(&mut self, out: &mut VecDeque<Chunk>) {
        let Some(Said { block, kind, text }) = self.said.take() else { return };
        let content = match kind {
            Kind::Text => Block::text(text),
            Kind::Thinking => Block::Thinking(Thinking {
                text: text.into(),
                signature: None,
                redacted: false,
                extra: Default::default(),
            }),
        };
        self.blocks.close(block, content, out);
    }

    fn call(&mut self, delta: CallDelta<'_>, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        let (name, arguments) = match delta.function {
            Some(function) => (function.name.0, function.arguments),
            None => (None, None),
        };
        let (id, name) = (delta.id.0.filter(|it| !it.is_empty()), name.filter(|it| !it.is_empty()));
        let at = match self.find(delta.index, id.as_deref(), name.is_some()) {
            Some(at) => at,
            None if self.calls.len() == MAX_CALLS => return Err(protocol("the reply has more than 4,096 calls")),
            None => {
                self.hush(out);
                self.calls.push(Open { index: delta.index, wire_id: None, named: None, args: String::new() });
                self.calls.len() - 1
            }
        };
        let open = &mut self.calls[at];
        if let (None, Some(id)) = (&open.wire_id, id) {
            open.wire_id = Some(id.into());
        }
        if let (None, Some(name)) = (&open.named, name) {
            let name: Arc<str> = name.into();
            let kind = |id| BlockKind::Call { id, name: name.to_string().into() };
            let block = self.blocks.open(kind, out)?;
            open.named = Some((block, name));
            if !open.args.is_empty() {
                out.push_back(Chunk::Delta { block, text: open.args.clone() });
            }
        }
        if let Some(text) = arguments.and_then(fragment).filter(|text| !text.is_empty()) {
            open.args.push_str(&text);
            if let Some((block, _)) = &open.named {
                out.push_back(Chunk::Delta { block: *block, text: text.into_owned() });
            }
        }
        Ok(())
    }

    /// The open call that a delta belongs to: by its index, then by its id, then the last one.
    ///
    /// Some servers give every call the index 0 and tell them apart by id; some give neither after the first delta.
    fn find(&self, index: Option<u64>, id: Option<&str>, has_name: bool) -> Option<usize> {
        let same_id = |open: &Open| match (open.wire_id.as_deref(), id) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        if let Some(index) = index {
            let found = self.calls.iter().rposition(|open| open.index == Some(index))?;
            let other = !same_id(&self.calls[found]) && has_name;
            return if other { self.calls.iter().position(|open| open.wire_id.as_deref() == id) } else { Some(found) };
        }
        if id.is_some() {
            return self.calls.iter().position(|open| open.wire_id.as_deref() == id);
        }
        let last = self.calls.len().checked_sub(1)?;
        (!has_name || self.calls[last].named.is_none()).then_some(last)
    }

    /// Takes a usage; one that says the same again is left out.
    fn used(&mut self, raw: Option<&RawValue>, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        let Some(raw) = raw.map(RawValue::get) else { return Ok(()) };
        if raw == "null" || self.raw_usage.as_ref().is_some_and(|(known, _)| **known == *raw) {
            return Ok(());
        }
        let Ok(said) = serde_json::from_str::<wire::Usage>(raw) else { return Ok(()) };
        self.usage = normal(&said);
        let value: Arc<Value> = Arc::new(serde_json::from_str(raw).unwrap_or_default());
        self.raw_usage = Some((raw.into(), Arc::clone(&value)));
        out.push_back(Chunk::Usage { usage: self.usage, raw: value });
        Ok(())
    }

    fn stop(&self) -> Stop {
        match self.finish.as_deref() {
            Some("length" | "max_tokens" | "model_context_window_exceeded") => Stop::Length,
            Some("content_filter") => Stop::Filtered,
            _ if self.refused => Stop::Refused,
            // `stop`, `tool_calls` and what is not known: what is there decides.
            _ if self.blocks.have_calls() => Stop::Calls,
            _ => Stop::End,
        }
    }

    fn close_call(&mut self, open: Open, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        let Some((block, name)) = open.named else { return Err(protocol("a call names no tool")) };
        let id = self.blocks.call_id(block);
        let name = name.to_string().into();
        let call = Call { id, wire_id: open.wire_id, name, args: open.args.into(), extra: Default::default() };
        self.blocks.close(block, Block::Call(call), out);
        Ok(())
    }

    fn refusal(&self, data: &str) -> Error {
        let value = serde_json::from_str::<Value>(data).unwrap_or_default();
        let refusal = Refusal::of_value(&value).unwrap_or_else(|| Refusal::of_body(200, data));
        refusal.into_error(&format!("{} broke off with an error", self.model), data)
    }
}

impl Decode for Decoder {
    fn frame(&mut self, frame: Frame<'_>, out: &mut VecDeque<Chunk>) -> Result<Flow, Error> {
        let data = frame.data.trim();
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
        let completion: Completion<'_> = serde_json::from_str(data).map_err(|_| unreadable(data))?;
        if completion.error.is_some_and(|error| error.get() != "null") {
            return Err(self.refusal(data));
        }
        if let (None, Loose(Some(id))) = (&self.wire_id, completion.id) {
            self.wire_id = Some(id.into());
        }
        for choice in completion.choices {
            self.choice(choice, out)?;
        }
        self.used(completion.usage, out)?;
        Ok(Flow::More)
    }

    fn is_whole(&self) -> bool {
        self.finish.is_some() || self.done
    }

    fn end(&mut self, out: &mut VecDeque<Chunk>) -> Result<Reply, Error> {
        let empty = self.blocks.is_empty() && self.calls.is_empty() && self.finish.is_none();
        if !self.is_whole() || empty {
            return Err(protocol("the stream ended in the middle"));
        }
        self.hush(out);
        for open in std::mem::take(&mut self.calls) {
            self.close_call(open, out)?;
        }
        let mut reply = Reply::new(self.model.clone(), self.stop());
        reply.blocks = self.blocks.take();
        reply.raw_stop = self.finish.take();
        reply.usage = self.usage;
        reply.raw_usage = self.raw_usage.take().map(|(_, value)| value).unwrap_or_default();
        reply.wire_id = self.wire_id.take();
        Ok(reply)
    }
}

/// A piece of arguments: a text, or the JSON itself where a server sends an object.
fn fragment(raw: &RawValue) -> Option<Cow<'_, str>> {
    match serde_json::from_str::<Text<'_>>(raw.get()) {
        Ok(Text(text)) => Some(text),
        Err(_) if raw.get() == "null" => None,
        Err(_) => Some(Cow::Borrowed(raw.get())),
    }
}

/// Usage in disjoint classes; reasoning that a server counts beside the output is added to it.
fn normal(said: &wire::Usage) -> Usage {
    let count = |count: Option<u64>| count.unwrap_or(0);
    let (input, output) = (count(said.prompt_tokens), count(said.completion_tokens));
    let details = said.prompt_tokens_details.as_ref();
    let cached = details.and_then(|it| it.cached_tokens).or(said.prompt_cache_hit_tokens);
    let cache_read = count(cached).min(input);
    let cache_write = count(details.and_then(|it| it.cache_write_tokens)).min(input - cache_read);
    let reasoning = count(said.completion_tokens_details.as_ref().and_then(|it| it.reasoning_tokens));
    let beside =
        reasoning > output || said.total_tokens == input.checked_add(output).and_then(|it| it.checked_add(reasoning));
    let output = if beside { output.saturating_add(reasoning) } else { output };
    Usage {
        input_uncached: input - cache_read - cache_write,
        cache_read,
        cache_write,
        cache_write_1h: 0,
        output,
        reasoning,
    }
}

fn unreadable(data: &str) -> Error {
    let excerpt: String = data.chars().take(MAX_EXCERPT).collect();
    Error::new(ErrorKind::Protocol, format!("the stream holds an event that cannot be read: {excerpt}"))
}

fn protocol(text: &str) -> Error {
    Error::new(ErrorKind::Protocol, text)
}

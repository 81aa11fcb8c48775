//! Events of the Anthropic Messages API as chunks. Pure: state and an event give chunks.

use std::{collections::VecDeque, sync::Arc};

use adjutant_llm::{
    Block, BlockKind, Call, Chunk, Error, ErrorKind, Extra, FinishReason, ModelId, ModelInfo,
    Reply, Text as Said, Thinking, Usage, Warning, WarningKind, surrogates,
};
use serde_json::{Value, json, value::RawValue};

use super::{
    usage::Counts,
    wire::{Begun, Delta, Event, Growth, Kind, Opened, WholeMessage},
};
use crate::{
    args::PartialArgs,
    blocks::{Blocks, CallIdSeed},
    classify,
    driver::{Decode, Finish, Flow},
    raw_usage::{RawUsage, members},
    sse::Frame,
    text::Text,
};

/// The largest number of characters of an unreadable event that stand in the message.
const MAX_EXCERPT: usize = 120;
/// The event that most of an answer is made of.
const GROWTH: &str = "content_block_delta";
/// The events that are understood; one of these that cannot be read is an error.
const KNOWN: [&str; 6] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
];

/// The state of one answer.
#[derive(Debug)]
pub(super) struct Decoder {
    model: ModelId,
    /// The issuer of opaque blocks.
    issuer: Arc<str>,
    blocks: Blocks,
    open: Vec<OpenBlock>,
    counts: Counts,
    usage: Usage,
    raw_usage: RawUsage,
    /// True if the raw usage contains something that has not been emitted.
    noted: bool,
    stop: Option<Arc<str>>,
    finished: bool,
    wire_id: Option<Arc<str>>,
}

/// A block that is not closed yet.
#[derive(Debug)]
struct OpenBlock {
    index: u64,
    block: u32,
    so_far: SoFar,
}

#[derive(Debug)]
enum SoFar {
    Text {
        text: String,
        citations: Vec<Value>,
    },
    Thinking {
        text: String,
        signature: String,
    },
    Redacted(String),
    Call {
        wire_id: Option<Arc<str>>,
        name: Arc<str>,
        args: PartialArgs,
        given: Option<String>,
        extra: Extra,
    },
    Opaque {
        value: Value,
        input: String,
    },
}

impl Decoder {
    pub(super) fn new(info: &ModelInfo, place: CallIdSeed) -> Self {
        Self {
            model: info.id.clone(),
            issuer: info.provider().into(),
            blocks: Blocks::new(place),
            open: Vec::new(),
            counts: Counts::default(),
            usage: Usage::default(),
            raw_usage: RawUsage::default(),
            noted: false,
            stop: None,
            finished: false,
            wire_id: None,
        }
    }

    fn start_message(&mut self, message: Option<Begun<'_>>, out: &mut VecDeque<Chunk>) {
        let Some(message) = message else { return };
        self.wire_id = message.id.map(|Text(id)| id.into());
        self.report_dropped(message.input_transformations, out);
        self.read_usage(message.usage, out);
    }

    /// Reads a usage, and emits it if it contains anything new.
    fn read_usage(&mut self, raw: Option<&RawValue>, out: &mut VecDeque<Chunk>) {
        let Some(raw) = raw else { return };
        let Some(fields) = members(raw) else { return };
        self.counts.add(&fields);
        let usage = self.counts.normal();
        let is_new = self.raw_usage.add(raw, fields)
            | std::mem::take(&mut self.noted)
            | (usage != self.usage);
        self.usage = usage;
        if is_new {
            out.push_back(Chunk::Usage {
                usage,
                raw: self.raw_usage.value(),
            });
        }
    }

    /// Stores fields next to the reply with the usage: a reply has no other place for them.
    fn note_field(&mut self, name: &str, raw: Option<&RawValue>) {
        let value = raw.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        if let Some(value) = value {
            self.noted |= self.raw_usage.set(name.to_owned(), value);
        }
    }

    /// Warns of thinking that the API withheld from the model, and keeps the report.
    ///
    /// Source: "Preserved thinking", platform.claude.com, 2026-11: the report is empty if nothing was dropped; entries of
    /// other types and with other reasons may come.
    fn report_dropped(&mut self, raw: Option<&RawValue>, out: &mut VecDeque<Chunk>) {
        let entries = list(raw);
        let paths = |reason: &str| -> Vec<&str> {
            let is_dropped =
                |it: &&Value| it["type"] == "thinking_dropped" && it["reason"] == reason;
            let dropped = entries.iter().filter(is_dropped);
            dropped.filter_map(|it| it["path"].as_str()).collect()
        };
        let changed = paths("prefix_binding_mismatch");
        if let Some(first) = changed.first() {
            let text = format!(
                "{} thinking blocks of earlier replies were dropped by the API, from {first} on: the conversation \
                 before them has changed",
                changed.len()
            );
            let kind = WarningKind::ThinkingDropped;
            out.push_back(Chunk::Warned {
                warning: Warning {
                    kind,
                    message: text.into(),
                },
            });
        }
        if !entries.is_empty() {
            self.noted |= self
                .raw_usage
                .set("input_transformations".to_owned(), entries.into());
        }
    }

    fn open_block(
        &mut self,
        index: Option<u64>,
        raw: &RawValue,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), Error> {
        let next = || {
            self.open
                .last()
                .map_or(0, |open| open.index.saturating_add(1))
        };
        let index = index.unwrap_or_else(next);
        // Gateways that give every block the same number do not always report the end of the previous block.
        self.closed(Some(index), out);
        let said: Opened<'_> =
            serde_json::from_str(raw.get()).map_err(|_| unreadable(raw.get()))?;
        let (so_far, first) = match &*said.kind.0 {
            "text" => (
                SoFar::Text {
                    text: String::new(),
                    citations: list(said.citations),
                },
                said.text,
            ),
            "thinking" => {
                let signature = said
                    .signature
                    .map(|Text(it)| it.into_owned())
                    .unwrap_or_default();
                (
                    SoFar::Thinking {
                        text: String::new(),
                        signature,
                    },
                    said.thinking,
                )
            }
            "redacted_thinking" => (
                SoFar::Redacted(said.data.0.unwrap_or_default().into_owned()),
                None,
            ),
            "tool_use" => {
                let name = said.name.filter(|it| !it.0.is_empty());
                let name = name.ok_or_else(|| protocol("a call names no tool".to_owned()))?;
                let given = said
                    .input
                    .map(RawValue::get)
                    .filter(|it| it.len() > 2)
                    .map(str::to_owned);
                let wire_id = said.id.map(|Text(it)| it.into());
                let extra = read_caller(said.caller);
                (
                    SoFar::Call {
                        wire_id,
                        name: name.0.into(),
                        args: PartialArgs::default(),
                        given,
                        extra,
                    },
                    None,
                )
            }
            _ => {
                let value = serde_json::from_str(raw.get()).map_err(|_| unreadable(raw.get()))?;
                (
                    SoFar::Opaque {
                        value,
                        input: String::new(),
                    },
                    None,
                )
            }
        };
        let block = self.blocks.open(|id| so_far.kind(id), out)?;
        self.open.push(OpenBlock {
            index,
            block,
            so_far,
        });
        if let (Some(Text(first)), Some(open)) = (first, self.open.last_mut()) {
            open.grow(first.into_owned(), out);
        }
        Ok(())
    }

    /// A block grows, and nothing else happens.
    fn grows(
        &mut self,
        growth: Growth<'_>,
        data: &str,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), Error> {
        let open = self.find(Some(growth.index), growth.delta.partial_json.is_some())?;
        let text = match &mut open.so_far {
            SoFar::Opaque { value, input } => {
                merge(value, input, data);
                return Ok(());
            }
            SoFar::Text { .. } => growth.delta.text,
            SoFar::Thinking { .. } => growth.delta.thinking,
            SoFar::Call { .. } => growth.delta.partial_json,
            SoFar::Redacted(_) => None,
        };
        if let Some(Text(text)) = text {
            open.grow(text.into_owned(), out);
        }
        Ok(())
    }

    /// The open block that a delta belongs to; without an index, the last one. Arguments belong to a call, whatever they
    /// are numbered.
    fn find(&mut self, index: Option<u64>, is_args: bool) -> Result<&mut OpenBlock, Error> {
        let is_named = |open: &OpenBlock| index.is_none_or(|index| open.index == index);
        let found = self.open.iter().rposition(is_named);
        let takes_args =
            |open: &OpenBlock| matches!(open.so_far, SoFar::Call { .. } | SoFar::Opaque { .. });
        let at = match found {
            Some(at) if !is_args || takes_args(&self.open[at]) => Some(at),
            other => is_args
                .then(|| self.open.iter().rposition(takes_args))
                .flatten()
                .or(other),
        };
        let found = at.and_then(|at| self.open.get_mut(at));
        let name = || index.map_or_else(String::new, |index| format!("{index} "));
        found.ok_or_else(|| protocol(format!("a delta of block {}came before its start", name())))
    }

    fn grown(
        &mut self,
        index: Option<u64>,
        delta: Delta<'_>,
        data: &str,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), Error> {
        let open = self.find(index, delta.partial_json.is_some())?;
        let text = match &mut open.so_far {
            SoFar::Opaque { value, input } => {
                merge(value, input, data);
                return Ok(());
            }
            SoFar::Text { citations, .. } => {
                citations.extend(
                    delta
                        .citation
                        .and_then(|it| surrogates::read::<Value>(it.get()).ok()),
                );
                delta.text
            }
            SoFar::Thinking { signature, .. } => {
                if let Some(Text(whole)) = delta.signature {
                    *signature = whole.into_owned();
                }
                delta.thinking
            }
            SoFar::Call { .. } => delta.partial_json,
            SoFar::Redacted(_) => None,
        };
        if let Some(Text(text)) = text {
            open.grow(text.into_owned(), out);
        }
        Ok(())
    }

    fn closed(&mut self, index: Option<u64>, out: &mut VecDeque<Chunk>) {
        let is_it = |open: &OpenBlock| index.is_none_or(|index| open.index == index);
        if let Some(at) = self.open.iter().rposition(is_it) {
            let open = self.open.remove(at);
            self.close(open, out);
        }
    }

    fn close(&mut self, open: OpenBlock, out: &mut VecDeque<Chunk>) {
        let block = match open.so_far {
            SoFar::Text { text, citations } if citations.is_empty() => Block::text(text),
            SoFar::Text { text, citations } => Block::Text(Said {
                text: text.into(),
                extra: Extra::from(json!({"citations": citations})),
            }),
            SoFar::Thinking { text, signature } => {
                let signature = (!signature.is_empty()).then(|| signature.into());
                Block::Thinking(Thinking {
                    text: text.into(),
                    signature,
                    redacted: false,
                    extra: Default::default(),
                })
            }
            SoFar::Redacted(data) => Block::Thinking(Thinking {
                text: "".into(),
                signature: Some(data.into()),
                redacted: true,
                extra: Default::default(),
            }),
            SoFar::Call {
                wire_id,
                name,
                args,
                given,
                extra,
            } => {
                if !args.rest().is_empty() {
                    out.push_back(Chunk::Delta {
                        block: open.block,
                        text: args.rest().to_owned(),
                    });
                }
                let given = given.filter(|_| args.is_empty());
                let args = given.as_deref().unwrap_or(args.whole());
                let id = self.blocks.call_id(open.block);
                Block::Call(Call {
                    id,
                    wire_id,
                    name: name.to_string().into(),
                    args: args.into(),
                    extra,
                })
            }
            SoFar::Opaque { mut value, input } => {
                if let (false, Value::Object(fields)) = (input.is_empty(), &mut value) {
                    // An input that was cut off is sent back in the form of other arguments that are no object.
                    let whole = serde_json::from_str(&input).ok().filter(Value::is_object);
                    let input = whole.unwrap_or_else(|| json!({"INVALID_JSON": input}));
                    fields.insert("input".to_owned(), input);
                }
                Block::Opaque {
                    issuer: Arc::clone(&self.issuer),
                    value,
                }
            }
        };
        self.blocks.close(open.block, block, out);
    }

    fn finish(&self) -> Finish {
        match self.stop.as_deref() {
            Some("max_tokens" | "model_context_window_exceeded") => {
                Finish::As(FinishReason::Length)
            }
            Some("pause_turn" | "compaction") => Finish::As(FinishReason::Paused),
            Some("refusal") => Finish::As(FinishReason::Refused),
            Some("stop_sequence") => Finish::As(FinishReason::Sequence),
            Some("end_turn" | "tool_use") | None => Finish::Whole,
            Some(_) => Finish::Unknown {
                open: !self.open.is_empty(),
            },
        }
    }
}

impl Decode for Decoder {
    fn frame(&mut self, frame: Frame<'_>, out: &mut VecDeque<Chunk>) -> Result<Flow, Error> {
        let data = frame.data;
        if frame.event == GROWTH
            && let Ok(growth) = serde_json::from_str::<Growth<'_>>(data)
            && growth.kind == GROWTH
        {
            self.grows(growth, data, out)?;
            return Ok(Flow::More);
        }
        if data.trim().is_empty() {
            return Ok(Flow::More);
        }
        self.event(frame, out)
    }

    fn document(&mut self, json: &str, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        let message: WholeMessage<'_> = serde_json::from_str(json).map_err(|_| unreadable(json))?;
        self.wire_id = message.id.map(|Text(id)| id.into());
        for (index, block) in (0..).zip(message.content) {
            self.open_block(Some(index), block, out)?;
            self.closed(Some(index), out);
        }
        self.stop = message.stop_reason.map(|Text(reason)| reason.into());
        self.note_field("stop_details", message.stop_details);
        self.note_field("container", message.container);
        self.note_field("context_management", message.context_management);
        self.report_dropped(message.input_transformations, out);
        self.read_usage(message.usage, out);
        Ok(())
    }

    fn is_whole(&self) -> bool {
        self.stop.is_some() || self.finished
    }

    fn end(&mut self, out: &mut VecDeque<Chunk>) -> Result<Reply, Error> {
        let empty = self.blocks.is_empty() && self.stop.is_none();
        if !self.is_whole() || empty {
            return Err(protocol("the stream ended in the middle".to_owned()));
        }
        let finish = self.finish();
        for open in std::mem::take(&mut self.open) {
            self.close(open, out);
        }
        let mut reply = Reply::new(self.model.clone(), FinishReason::End);
        reply.blocks = self.blocks.take();
        reply.raw_stop = self.stop.take();
        reply.usage = self.usage;
        reply.raw_usage = self.raw_usage.take();
        reply.wire_id = self.wire_id.take();
        finish.settle(reply, out)
    }
}

impl Decoder {
    fn event(&mut self, frame: Frame<'_>, out: &mut VecDeque<Chunk>) -> Result<Flow, Error> {
        let data = frame.data;
        let event: Event<'_> = match serde_json::from_str(data) {
            Ok(event) => event,
            Err(_) => return tolerate(frame),
        };
        let kind = event.kind.0.as_deref().unwrap_or(frame.event);
        let index = event.index.0;
        match kind {
            "content_block_delta" => {
                if let Some(delta) = event.delta {
                    self.grown(index, delta, data, out)?;
                }
            }
            "content_block_start" => {
                if let Some(block) = event.content_block {
                    self.open_block(index, block, out)?;
                }
            }
            "content_block_stop" => self.closed(index, out),
            "message_start" => self.start_message(event.message, out),
            "message_delta" => {
                if let Some(delta) = event.delta {
                    if let Some(Text(reason)) = delta.stop_reason.filter(|it| !it.0.is_empty()) {
                        self.stop = Some(reason.into());
                    }
                    self.note_field("stop_details", delta.stop_details);
                    self.note_field("container", delta.container);
                }
                self.note_field("context_management", event.context_management);
                self.report_dropped(event.input_transformations, out);
                self.read_usage(event.usage, out);
            }
            "message_stop" => {
                // Without a stop reason, the arguments may be incomplete.
                if self.stop.is_none()
                    && self
                        .open
                        .iter()
                        .any(|open| matches!(open.so_far, SoFar::Call { .. }))
                {
                    return Err(protocol(
                        "the stream ended in the middle of a call".to_owned(),
                    ));
                }
                self.finished = true;
                return Ok(Flow::Finished);
            }
            "error" => return Err(self.refusal(data)),
            _ => {}
        }
        Ok(Flow::More)
    }

    fn refusal(&self, data: &str) -> Error {
        classify::refusal(&self.model, data)
    }
}

impl OpenBlock {
    fn grow(&mut self, delta: String, out: &mut VecDeque<Chunk>) {
        if delta.is_empty() {
            return;
        }
        match &mut self.so_far {
            SoFar::Text { text, .. } | SoFar::Thinking { text, .. } => text.push_str(&delta),
            SoFar::Call { args, .. } => {
                if !args.push(&delta) {
                    return;
                }
            }
            SoFar::Redacted(_) | SoFar::Opaque { .. } => return,
        }
        out.push_back(Chunk::Delta {
            block: self.block,
            text: delta,
        });
    }
}

impl SoFar {
    fn kind(&self, id: adjutant_llm::CallId) -> BlockKind {
        match self {
            SoFar::Text { .. } => BlockKind::Text,
            SoFar::Thinking { .. } | SoFar::Redacted(_) => BlockKind::Thinking,
            SoFar::Call { name, .. } => BlockKind::Call {
                id,
                name: name.to_string().into(),
            },
            SoFar::Opaque { .. } => BlockKind::Opaque,
        }
    }
}

/// The elements of a list, if it is one.
fn list(raw: Option<&RawValue>) -> Vec<Value> {
    raw.and_then(|raw| surrogates::read(raw.get()).ok())
        .unwrap_or_default()
}

/// Returns the caller of a call, unless it is the model itself: it goes back with the call.
fn read_caller(raw: Option<&RawValue>) -> Extra {
    let caller = raw
        .and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok())
        .unwrap_or_default();
    if caller.is_object() && caller["type"] != "direct" {
        Extra::from(json!({"caller": caller}))
    } else {
        Extra::default()
    }
}

/// Adds a delta to a block of an unknown type: texts grow, citations are collected, arguments wait for the end.
/// `null` adds nothing, as in a failed compaction; the API accepts such a block back and ignores it.
fn merge(value: &mut Value, input: &mut String, data: &str) {
    let Ok(Value::Object(mut event)) = serde_json::from_str(data) else {
        return;
    };
    let (Some(Value::Object(delta)), Value::Object(fields)) = (event.remove("delta"), value) else {
        return;
    };
    for (name, added) in delta {
        match (name.as_str(), added) {
            ("type", _) => {}
            (_, Value::Null) => {
                fields.entry(name).or_insert(Value::Null);
            }
            ("partial_json", Value::String(text)) => input.push_str(&text),
            ("citation", citation) => match fields
                .entry("citations")
                .or_insert_with(|| Value::Array(Vec::new()))
            {
                Value::Array(list) => list.push(citation),
                other => *other = Value::Array(vec![citation]),
            },
            (_, Value::String(text)) => match fields.get_mut(&name) {
                Some(Value::String(so_far)) => so_far.push_str(&text),
                _ => {
                    fields.insert(name, Value::String(text));
                }
            },
            (_, added) => {
                fields.insert(name, added);
            }
        }
    }
}

/// An event that cannot be read is an error, unless it is of a kind that is not known anyway.
fn tolerate(frame: Frame<'_>) -> Result<Flow, Error> {
    let kind = serde_json::from_str::<Kind<'_>>(frame.data).map_err(|_| unreadable(frame.data))?;
    if KNOWN.contains(&kind.to_string().as_str()) {
        Err(unreadable(frame.data))
    } else {
        Ok(Flow::More)
    }
}

fn unreadable(data: &str) -> Error {
    let excerpt: String = data.chars().take(MAX_EXCERPT).collect();
    protocol(format!(
        "the stream holds an event that cannot be read: {excerpt}"
    ))
}

fn protocol(text: String) -> Error {
    Error::new(ErrorKind::Protocol, text)
}

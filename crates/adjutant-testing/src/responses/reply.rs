//! Writes the stream of the Responses wire.
//!
//! The end of a message is held back until it is known what follows it: its phase depends on that.

use std::collections::BTreeMap;

use adjutant_llm::{Block, BlockKind, Chunk, FinishReason, RateLimits, Reply, Thinking, Usage};
use serde_json::{Map, Value, json};

use super::{code, snapshot};
use crate::{
    body::{Body, Frame},
    encode::{self, Answer, ErrorAt, Stamp, push_data, unspeakable},
    openai::limit_headers,
    refusal::Refusal,
    wire::{Asked, Wire},
};

/// The text of a model that refuses.
const REFUSAL: &str = "I'm sorry, I can't help with that.";
/// The encrypted content of a reasoning item before the item is done: it is not usable.
const UNFINISHED: &str = "gAAAAAB";

/// Turns chunks into the events of the Responses wire.
#[derive(Debug)]
pub(crate) struct Encoder {
    answer: Answer,
    usage: Usage,
    sequence: u64,
    begun: bool,
    /// The items that are done, by their place.
    output: BTreeMap<usize, Value>,
    /// The items that are not, by block.
    open: BTreeMap<u32, OpenItem>,
    next: usize,
    /// The message whose end is held back.
    held: Option<(usize, Value)>,
    /// The id of the reasoning that came last.
    reasoning: Option<String>,
}

/// An item of the output that is not done.
#[derive(Debug, Clone)]
struct OpenItem {
    at: usize,
    id: String,
    text: String,
    /// True if the summary of a reasoning has begun.
    summarised: bool,
    call_id: String,
    name: String,
}

impl Encoder {
    pub(crate) fn new(asked: Asked, stamp: Stamp) -> Self {
        Self {
            answer: Answer::new(asked, stamp),
            usage: Usage::default(),
            sequence: 0,
            begun: false,
            output: BTreeMap::new(),
            open: BTreeMap::new(),
            next: 0,
            held: None,
            reasoning: None,
        }
    }

    fn event(&mut self, kind: &str, fields: Value, frame: Frame, body: &mut Body) {
        let bytes = event(kind, self.sequence, fields);
        self.sequence += 1;
        body.frame(frame, |to| to.extend_from_slice(&bytes));
    }

    fn content(&mut self, kind: &str, fields: Value, body: &mut Body) {
        self.event(kind, fields, Frame::Content, body);
    }

    fn begin(&mut self, body: &mut Body) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let response = snapshot::response(&self.answer.asked, &self.answer.stamp);
        self.content("response.created", json!({"response": response}), body);
        self.content("response.in_progress", json!({"response": response}), body);
    }

    /// Starts an item; the one before ends.
    fn start(&mut self, prefix: &str, body: &mut Body) -> OpenItem {
        self.begin(body);
        self.release("commentary", body);
        let (at, number) = (self.next, self.answer.stamp.number);
        self.next += 1;
        OpenItem {
            at,
            id: format!("{prefix}_{number:024x}{at:024x}"),
            text: String::new(),
            summarised: false,
            call_id: String::new(),
            name: String::new(),
        }
    }

    fn add(&mut self, item: &OpenItem, shown: Value, body: &mut Body) {
        self.content(
            "response.output_item.added",
            json!({"output_index": item.at, "item": shown}),
            body,
        );
    }

    fn open(&mut self, block: u32, kind: &BlockKind, body: &mut Body) {
        self.answer.open(block, kind, true);
        let item = match kind {
            BlockKind::Text => self.start_message("output_text", body),
            BlockKind::Thinking => {
                let item = self.start("rs", body);
                let shown = json!({"id": item.id, "type": "reasoning", "summary": [], "encrypted_content": UNFINISHED});
                self.add(&item, shown, body);
                item
            }
            BlockKind::Call { id, name } => {
                let mut item = self.start("fc", body);
                item.call_id = self.answer.call_id("call_", *id);
                item.name = name.as_str().to_owned();
                let shown = call(&item, "in_progress");
                self.add(&item, shown, body);
                item
            }
            _ => self.start("oc", body),
        };
        self.open.insert(block, item);
    }

    fn start_message(&mut self, part: &str, body: &mut Body) -> OpenItem {
        let item = self.start("msg", body);
        let shown = json!({"id": item.id, "type": "message", "status": "in_progress", "role": "assistant",
                           "content": []});
        self.add(&item, shown, body);
        let fields = json!({"item_id": item.id, "output_index": item.at, "content_index": 0,
                            "part": message_part(part, "")});
        self.content("response.content_part.added", fields, body);
        item
    }

    fn grow(&mut self, block: u32, text: &str, body: &mut Body) -> Result<(), Refusal> {
        let kind = self.answer.blocks.get(&block).map(|open| open.kind.clone());
        let (Some(mut item), Some(kind)) = (self.open.remove(&block), kind) else {
            return Err(unspeakable("a delta of a block that is not open"));
        };
        item.text.push_str(text);
        let place = json!({"item_id": item.id, "output_index": item.at});
        match kind {
            BlockKind::Text => {
                let fields = with(
                    place,
                    json!({"content_index": 0, "delta": text, "logprobs": []}),
                );
                self.content("response.output_text.delta", fields, body);
            }
            BlockKind::Thinking => {
                if !std::mem::replace(&mut item.summarised, true) {
                    let part = json!({"type": "summary_text", "text": ""});
                    let fields = with(place.clone(), json!({"summary_index": 0, "part": part}));
                    self.content("response.reasoning_summary_part.added", fields, body);
                }
                let fields = with(place, json!({"summary_index": 0, "delta": text}));
                self.content("response.reasoning_summary_text.delta", fields, body);
            }
            BlockKind::Call { .. } => {
                let fields = with(place, json!({"delta": text}));
                self.content("response.function_call_arguments.delta", fields, body);
            }
            _ => {}
        }
        self.open.insert(block, item);
        Ok(())
    }

    fn close(&mut self, block: u32, content: &Block, body: &mut Body) -> Result<(), Refusal> {
        let whole = match content {
            Block::Text(said) => &said.text,
            Block::Thinking(thinking) if !thinking.redacted => &thinking.text,
            Block::Call(call) => &call.args,
            _ => "",
        };
        if self
            .open
            .get(&block)
            .is_some_and(|item| item.text.is_empty())
            && !whole.is_empty()
        {
            self.grow(block, whole, body)?;
        }
        self.answer.blocks.remove(&block);
        let Some(item) = self.open.remove(&block) else {
            return Err(unspeakable("the end of a block that is not open"));
        };
        match content {
            Block::Text(_) => self.end_message(item, "output_text", body),
            Block::Thinking(thinking) => self.end_reasoning(block, &item, thinking, body),
            Block::Call(_) => self.end_call(&item, body),
            Block::Opaque { value, .. } => {
                self.add(&item, value.clone(), body);
                self.done_item(item.at, value.clone(), body);
            }
            _ => return Err(unspeakable("a block of an unknown kind")),
        }
        Ok(())
    }

    fn end_message(&mut self, item: OpenItem, part: &str, body: &mut Body) {
        let (event, field) = if part == "refusal" {
            ("refusal", "refusal")
        } else {
            ("output_text", "text")
        };
        let place = json!({"item_id": item.id, "output_index": item.at, "content_index": 0});
        let whole = Map::from_iter([(field.to_owned(), item.text.as_str().into())]);
        self.content(
            &format!("response.{event}.done"),
            with(place.clone(), Value::Object(whole)),
            body,
        );
        let shown = message_part(part, &item.text);
        self.content(
            "response.content_part.done",
            with(place, json!({"part": shown})),
            body,
        );
        self.follows(&item.id);
        let shown = json!({"id": item.id, "type": "message", "status": "completed", "role": "assistant",
                           "content": [shown]});
        self.held = Some((item.at, shown));
    }

    fn end_reasoning(&mut self, block: u32, item: &OpenItem, thinking: &Thinking, body: &mut Body) {
        let mut summary = Vec::new();
        if item.summarised {
            let place = json!({"item_id": item.id, "output_index": item.at, "summary_index": 0});
            let part = json!({"type": "summary_text", "text": item.text});
            let fields = with(place.clone(), json!({"text": item.text}));
            self.content("response.reasoning_summary_text.done", fields, body);
            self.content(
                "response.reasoning_summary_part.done",
                with(place, json!({"part": part})),
                body,
            );
            summary.push(part);
        }
        let sealed = self
            .answer
            .seal(Wire::Responses, thinking.signature.as_deref(), block);
        let shown = json!({"id": item.id, "type": "reasoning", "summary": summary, "encrypted_content": sealed});
        self.done_item(item.at, shown, body);
        self.reasoning = Some(item.id.clone());
    }

    fn end_call(&mut self, item: &OpenItem, body: &mut Body) {
        let fields = json!({"item_id": item.id, "output_index": item.at, "name": item.name, "arguments": item.text});
        self.content("response.function_call_arguments.done", fields, body);
        self.follows(&item.id);
        self.done_item(item.at, call(item, "completed"), body);
    }

    fn follows(&self, item: &str) {
        if let Some(reasoning) = &self.reasoning {
            self.answer.stamp.issued.follow(item, reasoning);
        }
    }

    /// Ends the message whose end was held back.
    fn release(&mut self, phase: &str, body: &mut Body) {
        let Some((at, mut item)) = self.held.take() else {
            return;
        };
        // Models before this family have no phases.
        if !self.answer.asked.model.starts_with("gpt-4") {
            item["phase"] = phase.into();
        }
        self.done_item(at, item, body);
    }

    fn done_item(&mut self, at: usize, item: Value, body: &mut Body) {
        self.content(
            "response.output_item.done",
            json!({"output_index": at, "item": item}),
            body,
        );
        self.output.insert(at, item);
    }

    fn done(&mut self, reply: &Reply, body: &mut Body) {
        self.begin(body);
        if reply.usage != Usage::default() {
            self.usage = reply.usage;
        }
        if reply.stop == FinishReason::Refused {
            let mut item = self.start_message("refusal", body);
            item.text = REFUSAL.to_owned();
            let fields = json!({"item_id": item.id, "output_index": item.at, "content_index": 0, "delta": REFUSAL});
            self.content("response.refusal.delta", fields, body);
            self.end_message(item, "refusal", body);
        }
        self.release("final_answer", body);
        let (status, reason) = match reply.stop {
            FinishReason::Length => ("incomplete", Some("max_output_tokens")),
            FinishReason::Filtered => ("incomplete", Some("content_filter")),
            _ => ("completed", None),
        };
        let reason = reason.map(|reason| reply.raw_stop.as_deref().unwrap_or(reason));
        let mut response = self.final_response(status);
        response["incomplete_details"] =
            reason.map_or(Value::Null, |reason| json!({"reason": reason}));
        let fields = json!({"response": response});
        self.event(
            &format!("response.{status}"),
            fields,
            Frame::UsageAndFinish,
            body,
        );
    }

    fn final_response(&self, status: &str) -> Value {
        let mut response = snapshot::response(&self.answer.asked, &self.answer.stamp);
        response["status"] = status.into();
        response["output"] = self.output.values().cloned().collect();
        response["usage"] = snapshot::usage(&self.usage);
        response
    }
}

impl encode::Encoder for Encoder {
    fn chunk(&mut self, chunk: &Chunk, body: &mut Body) -> Result<(), Refusal> {
        match chunk {
            Chunk::Start { .. } | Chunk::Warned { .. } | Chunk::Pending { .. } => {}
            Chunk::Open { block, kind } => self.open(*block, kind, body),
            Chunk::Delta { block, text } => self.grow(*block, text, body)?,
            Chunk::Close { block, content } => self.close(*block, content, body)?,
            Chunk::Usage { usage, .. } => self.usage = *usage,
            Chunk::Done(reply) => self.done(reply, body),
            _ => return Err(unspeakable("a retracted attempt")),
        }
        Ok(())
    }

    /// A model that fails ends in `response.failed`; what fails in between is an `error` event.
    fn error(&self, refusal: &Refusal, at: ErrorAt) -> Vec<u8> {
        let message = refusal.message_or(super::OVERFLOW);
        match at {
            ErrorAt::Frame(frame) => event(
                "error",
                frame,
                json!({"code": code(refusal), "message": message, "param": null}),
            ),
            ErrorAt::Here => {
                let mut response = self.final_response("failed");
                response["error"] =
                    json!({"code": code(refusal).unwrap_or("server_error"), "message": message});
                event(
                    "response.failed",
                    self.sequence,
                    json!({"response": response}),
                )
            }
        }
    }

    fn headers(&self, limits: &RateLimits) -> Vec<(&'static str, String)> {
        limit_headers(limits)
    }
}

fn event(kind: &str, sequence: u64, fields: Value) -> Vec<u8> {
    let mut bytes = format!("event: {kind}\n").into_bytes();
    push_data(
        &with(json!({"type": kind, "sequence_number": sequence}), fields),
        &mut bytes,
    );
    bytes
}

/// The fields of both, in order.
fn with(mut first: Value, second: Value) -> Value {
    if let (Value::Object(first), Value::Object(second)) = (&mut first, second) {
        first.extend(second);
    }
    first
}

/// A part of a message.
fn message_part(part: &str, text: &str) -> Value {
    match part {
        "refusal" => json!({"type": "refusal", "refusal": text}),
        _ => json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text}),
    }
}

fn call(item: &OpenItem, status: &str) -> Value {
    json!({"id": item.id, "type": "function_call", "status": status, "arguments": item.text,
           "call_id": item.call_id, "name": item.name})
}

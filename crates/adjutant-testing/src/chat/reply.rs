//! Writes the stream of the Chat Completions wire.
//!
//! Thinking is sent as `reasoning_content`, as common servers do; opaque and withheld thinking has no form here.

use std::collections::BTreeMap;

use adjutant_llm::{Block, BlockKind, Chunk, FinishReason, RateLimits, Reply, Usage};
use serde_json::{Value, json};

use crate::{
    body::{Body, Frame},
    encode::{self, Answer, ErrorAt, Stamp, push_data, push_json, unspeakable},
    openai::limit_headers,
    refusal::Refusal,
    wire::Asked,
};

/// The text of a model that refuses without a word.
const REFUSAL: &str = "I'm sorry, I can't help with that.";

/// Turns chunks into the frames of the Chat Completions wire.
#[derive(Debug)]
pub(crate) struct Encoder {
    answer: Answer,
    usage: Usage,
    /// Everything of a chunk before its delta.
    prefix: Vec<u8>,
    begun: bool,
    /// The `index` of each call, by its block.
    calls: BTreeMap<u32, usize>,
}

impl Encoder {
    pub(crate) fn new(asked: Asked, stamp: Stamp) -> Self {
        let head = head(&asked, &stamp).to_string();
        let mut prefix = b"data: ".to_vec();
        prefix.extend_from_slice(head.trim_end_matches('}').as_bytes());
        prefix.extend_from_slice(b",\"choices\":[{\"index\":0,\"delta\":");
        let answer = Answer::new(asked, stamp);
        Self {
            answer,
            usage: Usage::default(),
            prefix,
            begun: false,
            calls: BTreeMap::new(),
        }
    }

    /// Sends the role, with the form of the content that comes first.
    fn begin(&mut self, first: Option<&BlockKind>, body: &mut Body) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let content = match first {
            Some(BlockKind::Call { .. } | BlockKind::Thinking) => Value::Null,
            _ => "".into(),
        };
        self.delta(
            &json!({"role": "assistant", "content": content, "refusal": null}),
            body,
        );
    }

    fn delta(&self, delta: &Value, body: &mut Body) {
        self.choice(delta, None, Frame::Content, body);
    }

    fn choice(&self, delta: &Value, finish: Option<&str>, frame: Frame, body: &mut Body) {
        let usage = self.answer.asked.include_usage;
        body.frame(frame, |to| {
            to.extend_from_slice(&self.prefix);
            to.extend_from_slice(delta.to_string().as_bytes());
            end_choice(finish, usage, to);
        });
    }

    /// Written by hand: it is the one frame that comes in hundreds of thousands.
    fn text(&self, field: &str, text: &str, body: &mut Body) {
        let usage = self.answer.asked.include_usage;
        body.frame(Frame::Content, |to| {
            to.extend_from_slice(&self.prefix);
            to.extend_from_slice(b"{\"");
            to.extend_from_slice(field.as_bytes());
            to.extend_from_slice(b"\":");
            push_json(text, to);
            to.push(b'}');
            end_choice(None, usage, to);
        });
    }

    fn open(&mut self, block: u32, kind: &BlockKind, body: &mut Body) {
        self.begin(Some(kind), body);
        self.answer.open(block, kind, true);
        if let BlockKind::Call { id, name } = kind {
            let index = self.calls.len();
            self.calls.insert(block, index);
            let id = self.answer.call_id("call_", *id);
            let function = json!({"name": name, "arguments": ""});
            let call = json!({"index": index, "id": id, "type": "function", "function": function});
            self.delta(&json!({"tool_calls": [call]}), body);
        }
    }

    fn grow(&mut self, block: u32, text: &str, body: &mut Body) -> Result<(), Refusal> {
        let Some(open) = self.answer.blocks.get_mut(&block) else {
            return Err(unspeakable("a delta of a block that is not open"));
        };
        open.grown = true;
        match open.kind {
            BlockKind::Text => self.text("content", text, body),
            BlockKind::Thinking => self.text("reasoning_content", text, body),
            BlockKind::Call { .. } => {
                let call =
                    json!({"index": self.calls.get(&block), "function": {"arguments": text}});
                self.delta(&json!({"tool_calls": [call]}), body);
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, block: u32, content: &Block, body: &mut Body) -> Result<(), Refusal> {
        let whole = match content {
            Block::Text(said) => &said.text,
            Block::Thinking(thinking) => &thinking.text,
            Block::Call(call) => &call.args,
            _ => "",
        };
        let grown = self
            .answer
            .blocks
            .get(&block)
            .is_some_and(|open| open.grown);
        if !grown && !whole.is_empty() {
            self.grow(block, whole, body)?;
        }
        self.answer.blocks.remove(&block);
        Ok(())
    }

    fn done(&mut self, reply: &Reply, body: &mut Body) {
        self.begin(None, body);
        if reply.usage != Usage::default() {
            self.usage = reply.usage;
        }
        if reply.stop == FinishReason::Refused {
            self.delta(&json!({"refusal": REFUSAL}), body);
        }
        let finish = match reply.stop {
            FinishReason::Calls => "tool_calls",
            FinishReason::Length => "length",
            FinishReason::Filtered => "content_filter",
            _ => "stop",
        };
        let finish = reply.raw_stop.as_deref().unwrap_or(finish);
        self.choice(&json!({}), Some(finish), Frame::Finish, body);
        if self.answer.asked.include_usage {
            let mut chunk = head(&self.answer.asked, &self.answer.stamp);
            chunk["choices"] = json!([]);
            chunk["usage"] = usage(&self.usage);
            body.frame(Frame::Usage, |to| push_data(&chunk, to));
        }
        body.frame(Frame::Finish, |to| {
            to.extend_from_slice(b"data: [DONE]\n\n")
        });
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

    fn error(&self, refusal: &Refusal, _: ErrorAt) -> Vec<u8> {
        let mut frame = Vec::new();
        push_data(&super::error(refusal), &mut frame);
        frame
    }

    fn headers(&self, limits: &RateLimits) -> Vec<(&'static str, String)> {
        limit_headers(limits)
    }
}

/// Makes the beginning of every chunk.
fn head(asked: &Asked, stamp: &Stamp) -> Value {
    json!({
        "id": format!("chatcmpl-{:029}", stamp.number),
        "object": "chat.completion.chunk",
        "created": stamp.now_ms / 1_000,
        "model": asked.model,
        "service_tier": "default",
        "system_fingerprint": "fp_44709d6fcb",
    })
}

fn end_choice(finish: Option<&str>, usage: bool, to: &mut Vec<u8>) {
    to.extend_from_slice(b",\"logprobs\":null,\"finish_reason\":");
    match finish {
        Some(finish) => push_json(finish, to),
        None => to.extend_from_slice(b"null"),
    }
    to.extend_from_slice(if usage {
        b"}],\"usage\":null}\n\n"
    } else {
        b"}]}\n\n"
    });
}

/// Here the input includes cached tokens; tokens written to a cache are not reported.
fn usage(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.input(),
        "completion_tokens": usage.output,
        "total_tokens": usage.total(),
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    })
}

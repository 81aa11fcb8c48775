//! Writes the stream of the Gemini wire: each event is a whole response with new parts.
//!
//! The signature of a thinking block is sent where the vendor sends it: on the first call, or on an empty text part
//! at the end. A script can choose another place with the thinking's extra: `{"place": "thought" | "text"}`.

use adjutant_llm::{
    Block, BlockKind, Call, Chunk, FinishReason, RateLimits, Reply, Thinking, Usage,
};
use serde_json::{Value, json};

use super::signs_calls;
use crate::{
    body::{Body, Frame},
    encode::{self, Answer, ErrorAt, Stamp, unspeakable},
    refusal::Refusal,
    wire::{Asked, Wire},
};

/// Turns chunks into the responses of the Gemini wire.
#[derive(Debug)]
pub(crate) struct Encoder {
    answer: Answer,
    usage: Usage,
    /// The signature that the next part of its kind carries.
    pending: Option<Pending>,
    calls: usize,
    /// True if a call could not be expressed, because its arguments are no object.
    malformed: bool,
}

/// A signature, and whether a text may carry it.
#[derive(Debug)]
struct Pending {
    signature: String,
    on_text: bool,
}

impl Encoder {
    pub(crate) fn new(asked: Asked, stamp: Stamp) -> Self {
        // The input size is sent from the beginning; the model can correct it later.
        let usage = Usage {
            input_uncached: asked.request.entries.tokens(),
            ..Usage::default()
        };
        Self {
            answer: Answer::new(asked, stamp),
            usage,
            pending: None,
            calls: 0,
            malformed: false,
        }
    }

    fn part(&self, part: Value, body: &mut Body) {
        let candidate = json!({"content": {"parts": [part], "role": "model"}, "index": 0});
        self.respond(json!({"candidates": [candidate]}), Frame::Content, body);
    }

    fn respond(&self, mut response: Value, frame: Frame, body: &mut Body) {
        response["usageMetadata"] = usage(&self.usage);
        response["modelVersion"] = self.answer.asked.model.as_str().into();
        response["responseId"] = format!("{:022x}", self.answer.stamp.number).into();
        body.frame(frame, |to| push(&response, to));
    }

    fn grow(&mut self, block: u32, text: &str, body: &mut Body) -> Result<(), Refusal> {
        let Some(open) = self.answer.blocks.get_mut(&block) else {
            return Err(unspeakable("a delta of a block that is not open"));
        };
        open.grown = true;
        match open.kind {
            BlockKind::Text => {
                let mut part = json!({"text": text});
                if let Some(pending) = self.pending.take_if(|pending| pending.on_text) {
                    part["thoughtSignature"] = pending.signature.into();
                }
                self.part(part, body);
            }
            BlockKind::Thinking => self.part(json!({"text": text, "thought": true}), body),
            // A call comes whole, at its end.
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, block: u32, content: &Block, body: &mut Body) -> Result<(), Refusal> {
        let grown = self
            .answer
            .blocks
            .get(&block)
            .is_some_and(|open| open.grown);
        match content {
            Block::Text(said) if !grown && !said.text.is_empty() => {
                self.grow(block, &said.text, body)?
            }
            Block::Text(_) => {}
            Block::Thinking(thinking) => {
                if !grown && !thinking.text.is_empty() && !thinking.redacted {
                    self.grow(block, &thinking.text, body)?;
                }
                self.sign(block, thinking, body);
            }
            Block::Call(call) => self.call(block, call, body),
            Block::Opaque { value, .. } => self.part(value.clone(), body),
            _ => return Err(unspeakable("a block of an unknown kind")),
        }
        self.answer.blocks.remove(&block);
        Ok(())
    }

    fn sign(&mut self, block: u32, thinking: &Thinking, body: &mut Body) {
        let Some(given) = thinking.signature.as_deref() else {
            return;
        };
        let signature = self.answer.seal(Wire::Gemini, Some(given), block);
        match thinking.extra.get("place").and_then(Value::as_str) {
            Some("thought") => self.part(
                json!({"text": "", "thought": true, "thoughtSignature": signature}),
                body,
            ),
            place => {
                self.pending = Some(Pending {
                    signature,
                    on_text: place == Some("text"),
                })
            }
        }
    }

    fn call(&mut self, block: u32, call: &Call, body: &mut Body) {
        let mut function = json!({"name": call.name});
        match serde_json::from_str::<Value>(&call.args) {
            Ok(args @ Value::Object(_)) => function["args"] = args,
            // Calls without arguments come without the field.
            _ if call.args.is_empty() => {}
            _ => {
                self.malformed = true;
                return;
            }
        }
        let signs = signs_calls(&self.answer.asked.model);
        if signs {
            function["id"] = self.answer.call_id("", call.id).into();
        }
        let mut part = json!({"functionCall": function});
        if let Some(pending) = self.pending.take() {
            part["thoughtSignature"] = pending.signature.into();
        } else if signs && self.calls == 0 {
            part["thoughtSignature"] = self.answer.seal(Wire::Gemini, None, block).into();
        }
        self.calls += 1;
        self.part(part, body);
    }

    fn done(&mut self, reply: &Reply, body: &mut Body) {
        if reply.usage != Usage::default() {
            self.usage = reply.usage;
        }
        if reply.stop == FinishReason::Refused && reply.blocks.is_empty() {
            let feedback = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}});
            self.respond(feedback, Frame::UsageAndFinish, body);
            return;
        }
        let reason = match reply.stop {
            FinishReason::Length => "MAX_TOKENS",
            FinishReason::Refused => "PROHIBITED_CONTENT",
            FinishReason::Filtered => "SAFETY",
            _ if self.malformed => "MALFORMED_FUNCTION_CALL",
            _ => "STOP",
        };
        let mut candidate =
            json!({"finishReason": reply.raw_stop.as_deref().unwrap_or(reason), "index": 0});
        let mut part = json!({"text": ""});
        if let Some(pending) = self.pending.take() {
            part["thoughtSignature"] = pending.signature.into();
        }
        if reason != "MALFORMED_FUNCTION_CALL" {
            candidate["content"] = json!({"parts": [part], "role": "model"});
        }
        self.respond(
            json!({"candidates": [candidate]}),
            Frame::UsageAndFinish,
            body,
        );
    }
}

impl encode::Encoder for Encoder {
    fn chunk(&mut self, chunk: &Chunk, body: &mut Body) -> Result<(), Refusal> {
        match chunk {
            Chunk::Start { .. } | Chunk::Warned { .. } | Chunk::Pending { .. } => {}
            Chunk::Open { block, kind } => self.answer.open(*block, kind, false),
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
        push(&super::error(refusal), &mut frame);
        frame
    }

    fn headers(&self, _: &RateLimits) -> Vec<(&'static str, String)> {
        // The vendor sends no rate limit headers.
        Vec::new()
    }
}

/// The lines end as this vendor ends them.
fn push(data: &Value, to: &mut Vec<u8>) {
    to.extend_from_slice(b"data: ");
    to.extend_from_slice(data.to_string().as_bytes());
    to.extend_from_slice(b"\r\n\r\n");
}

/// Here the input includes cached tokens, and reasoning is separate from the rest of the output.
fn usage(usage: &Usage) -> Value {
    let mut told = json!({
        "promptTokenCount": usage.input(),
        "candidatesTokenCount": usage.output.saturating_sub(usage.reasoning),
        "totalTokenCount": usage.total(),
    });
    if usage.cache_read > 0 {
        told["cachedContentTokenCount"] = usage.cache_read.into();
    }
    if usage.reasoning > 0 {
        told["thoughtsTokenCount"] = usage.reasoning.into();
    }
    told
}

//! Writes the stream of the Messages wire.

use adjutant_llm::{
    Block, BlockKind, Chunk, FinishReason, RateLimits, Reply, Thinking, Usage, Utc,
};
use serde_json::{Value, json};

use crate::{
    body::{Body, Frame},
    encode::{self, Answer, ErrorAt, Stamp, push_data, push_json, unspeakable},
    refusal::Refusal,
    wire::{Asked, Wire},
};

/// The progress of the message.
#[derive(Debug, PartialEq, Eq)]
enum MessageProgress {
    /// Nothing was sent.
    Before,
    /// The message has begun, no block has.
    Started,
    /// A block has begun, and the ping was sent.
    Pinged,
}

/// Turns chunks into the events of the Messages wire.
#[derive(Debug)]
pub(crate) struct Encoder {
    answer: Answer,
    usage: Usage,
    stage: MessageProgress,
}

impl Encoder {
    pub(crate) fn new(asked: Asked, stamp: Stamp) -> Self {
        // The vendor knows the size of the input when it begins; the model may correct it later.
        let usage = Usage {
            input_uncached: asked.request.entries.tokens(),
            output: 1,
            ..Usage::default()
        };
        Self {
            answer: Answer::new(asked, stamp),
            usage,
            stage: MessageProgress::Before,
        }
    }

    fn begin(&mut self, body: &mut Body) {
        if self.stage != MessageProgress::Before {
            return;
        }
        self.stage = MessageProgress::Started;
        let message = json!({
            "id": format!("msg_01{:022}", self.answer.stamp.number),
            "type": "message",
            "role": "assistant",
            "content": [],
            "model": self.answer.asked.model,
            "stop_reason": null,
            "stop_sequence": null,
            "usage": usage(&self.usage),
        });
        event(
            "message_start",
            &json!({"type": "message_start", "message": message}),
            Frame::Content,
            body,
        );
    }

    /// Begins a block whose form is known.
    fn start_block(&mut self, block: u32, content: &Value, body: &mut Body) {
        let data = json!({"type": "content_block_start", "index": block, "content_block": content});
        event("content_block_start", &data, Frame::Content, body);
        if self.stage == MessageProgress::Started {
            self.stage = MessageProgress::Pinged;
            body.frame(Frame::Content, |to| {
                to.extend_from_slice(b"event: ping\ndata: {\"type\": \"ping\"}\n\n")
            });
        }
        if let Some(open) = self.answer.blocks.get_mut(&block) {
            open.announced = true;
        }
    }

    fn open(&mut self, block: u32, kind: &BlockKind, body: &mut Body) {
        self.begin(body);
        self.answer.open(block, kind, false);
        match kind {
            BlockKind::Text => self.start_block(block, &json!({"type": "text", "text": ""}), body),
            BlockKind::Call { id, name } => {
                let id = self.answer.call_id("toolu_", *id);
                self.start_block(
                    block,
                    &json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                    body,
                );
                delta(block, INPUT, "", body);
            }
            // The first delta shows if thinking is withheld; opaque content shows at its end.
            _ => {}
        }
    }

    fn grow(&mut self, block: u32, text: &str, body: &mut Body) -> Result<(), Refusal> {
        let Some(open) = self.answer.blocks.get_mut(&block) else {
            return Err(unspeakable("a delta of a block that is not open"));
        };
        open.grown = true;
        let announced = open.announced;
        let shape = match open.kind {
            BlockKind::Text => TEXT,
            BlockKind::Call { .. } => INPUT,
            BlockKind::Thinking => THINKING,
            _ => return Ok(()),
        };
        if !announced {
            self.start_block(
                block,
                &json!({"type": "thinking", "thinking": "", "signature": ""}),
                body,
            );
        }
        delta(block, shape, text, body);
        Ok(())
    }

    fn close(&mut self, block: u32, content: &Block, body: &mut Body) -> Result<(), Refusal> {
        let whole = match content {
            Block::Text(said) => &said.text,
            Block::Thinking(thinking) => &thinking.text,
            Block::Call(call) => &call.args,
            Block::Opaque { value, .. } => {
                self.start_block(block, value, body);
                self.end_block(block, body);
                return Ok(());
            }
            _ => return Err(unspeakable("a block of an unknown kind")),
        };
        let grown = self
            .answer
            .blocks
            .get(&block)
            .is_some_and(|open| open.grown);
        if !grown && !whole.is_empty() {
            self.grow(block, whole, body)?;
        }
        if let Block::Thinking(thinking) = content {
            self.sign(block, thinking, body);
        }
        self.end_block(block, body);
        Ok(())
    }

    fn sign(&mut self, block: u32, thinking: &Thinking, body: &mut Body) {
        let announced = self
            .answer
            .blocks
            .get(&block)
            .is_some_and(|open| open.announced);
        let signature = thinking.signature.as_deref().unwrap_or_default();
        self.answer.issue(Wire::Messages, signature);
        if thinking.redacted && !announced {
            self.start_block(
                block,
                &json!({"type": "redacted_thinking", "data": signature}),
                body,
            );
            return;
        }
        if !announced {
            self.start_block(
                block,
                &json!({"type": "thinking", "thinking": "", "signature": ""}),
                body,
            );
        }
        if !signature.is_empty() {
            delta(block, SIGNATURE, signature, body);
        }
    }

    fn end_block(&mut self, block: u32, body: &mut Body) {
        self.answer.blocks.remove(&block);
        let data = json!({"type": "content_block_stop", "index": block});
        event("content_block_stop", &data, Frame::Content, body);
    }

    fn done(&mut self, reply: &Reply, body: &mut Body) {
        self.begin(body);
        if reply.usage != Usage::default() {
            self.usage = reply.usage;
        }
        let reason = match reply.stop {
            FinishReason::Sequence => "stop_sequence",
            FinishReason::Calls => "tool_use",
            FinishReason::Length => "max_tokens",
            FinishReason::Paused => "pause_turn",
            FinishReason::Refused | FinishReason::Filtered => "refusal",
            _ => "end_turn",
        };
        let sequence = self
            .answer
            .asked
            .request
            .options
            .stop
            .first()
            .filter(|_| reply.stop == FinishReason::Sequence);
        let data = json!({
            "type": "message_delta",
            "delta": {"stop_reason": reply.raw_stop.as_deref().unwrap_or(reason), "stop_sequence": sequence},
            "usage": usage(&self.usage),
        });
        event("message_delta", &data, Frame::UsageAndFinish, body);
        event(
            "message_stop",
            &json!({"type": "message_stop"}),
            Frame::Finish,
            body,
        );
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
        let mut frame = b"event: error\n".to_vec();
        push_data(&super::error(refusal, None), &mut frame);
        frame
    }

    fn headers(&self, limits: &RateLimits) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        let reset = limits.reset_after.map(|wait| {
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            Utc::from_ms(self.answer.stamp.now_ms.saturating_add(wait_ms)).to_string()
        });
        if let Some(left) = limits.requests_left {
            headers.push(("anthropic-ratelimit-requests-remaining", left.to_string()));
            headers.extend(
                reset
                    .clone()
                    .map(|reset| ("anthropic-ratelimit-requests-reset", reset)),
            );
        }
        if let Some(left) = limits.tokens_left {
            headers.push(("anthropic-ratelimit-tokens-remaining", left.to_string()));
            headers.extend(reset.map(|reset| ("anthropic-ratelimit-tokens-reset", reset)));
        }
        headers
    }
}

/// The type of a delta, and the name of its text.
type Shape = (&'static str, &'static str);

const TEXT: Shape = ("text_delta", "text");
const THINKING: Shape = ("thinking_delta", "thinking");
const SIGNATURE: Shape = ("signature_delta", "signature");
const INPUT: Shape = ("input_json_delta", "partial_json");

fn event(name: &str, data: &Value, frame: Frame, body: &mut Body) {
    body.frame(frame, |to| {
        to.extend_from_slice(b"event: ");
        to.extend_from_slice(name.as_bytes());
        to.push(b'\n');
        push_data(data, to);
    });
}

/// A delta is written by hand: it is the one event that comes in hundreds of thousands.
fn delta(block: u32, (kind, field): Shape, text: &str, body: &mut Body) {
    body.frame(Frame::Content, |to| {
        to.extend_from_slice(
            b"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":",
        );
        to.extend_from_slice(block.to_string().as_bytes());
        to.extend_from_slice(b",\"delta\":{\"type\":\"");
        to.extend_from_slice(kind.as_bytes());
        to.extend_from_slice(b"\",\"");
        to.extend_from_slice(field.as_bytes());
        to.extend_from_slice(b"\":");
        push_json(text, to);
        to.extend_from_slice(b"}}\n\n");
    });
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_uncached,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    })
}

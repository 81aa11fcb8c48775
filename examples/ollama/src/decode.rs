//! Lines of an answer as chunks. Pure: state and a line give chunks.

use std::{collections::VecDeque, sync::Arc};

use adjutant_llm::{
    Block, BlockKind, Call, Chunk, Error, ErrorKind, Extra, FinishReason, ModelId, Reply, Thinking,
    ToolName, Usage,
};
use adjutant_providers::wire::{
    Blocks, CallIdSeed, Decode, Finish, Flow, Frame, refusal, usage_to_extra,
};
use serde_json::value::RawValue;

use crate::wire::{Line, SpokenCall};

/// The largest number of characters of an unreadable line that stand in the message.
const MAX_EXCERPT: usize = 120;

/// The state of one answer.
#[derive(Debug)]
pub struct Decoder {
    model: ModelId,
    blocks: Blocks,
    /// The open text or thinking: its block, whether it is thinking, and its content.
    said: Option<(u32, bool, String)>,
    usage: Usage,
    raw_usage: Extra,
    /// The word for how the reply stopped.
    stop: Option<Arc<str>>,
    done: bool,
}

impl Decoder {
    pub(crate) fn new(model: ModelId, seed: CallIdSeed) -> Self {
        let (usage, raw_usage) = (Usage::default(), Extra::default());
        Self {
            model,
            blocks: Blocks::new(seed),
            said: None,
            usage,
            raw_usage,
            stop: None,
            done: false,
        }
    }

    fn say(
        &mut self,
        is_thinking: bool,
        text: String,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), Error> {
        if text.is_empty() {
            return Ok(());
        }
        if self
            .said
            .as_ref()
            .is_none_or(|(_, was, _)| *was != is_thinking)
        {
            self.hush(out);
            let kind = if is_thinking {
                BlockKind::Thinking
            } else {
                BlockKind::Text
            };
            self.said = Some((self.blocks.open(|_| kind, out)?, is_thinking, String::new()));
        }
        if let Some((block, _, said)) = &mut self.said {
            said.push_str(&text);
            out.push_back(Chunk::Delta {
                block: *block,
                text,
            });
        }
        Ok(())
    }

    /// Closes the open text or thinking.
    fn hush(&mut self, out: &mut VecDeque<Chunk>) {
        let Some((block, is_thinking, said)) = self.said.take() else {
            return;
        };
        let content = if is_thinking {
            Block::Thinking(Thinking::new(said))
        } else {
            Block::text(said)
        };
        self.blocks.close(block, content, out);
    }

    /// Takes a call, which comes whole.
    fn call(&mut self, call: SpokenCall<'_>, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        self.hush(out);
        let name = ToolName::from(call.function.name.as_str());
        let args = call
            .function
            .arguments
            .map(RawValue::get)
            .filter(|it| *it != "null")
            .unwrap_or_default();
        let block = self.blocks.open(
            |id| BlockKind::Call {
                id,
                name: name.clone(),
            },
            out,
        )?;
        if !args.is_empty() {
            out.push_back(Chunk::Delta {
                block,
                text: args.to_owned(),
            });
        }
        let mut made = Call::new(self.blocks.call_id(block), name, args);
        made.wire_id = Some(call.id.into()).filter(|it: &Arc<str>| !it.is_empty());
        self.blocks.close(block, Block::Call(made), out);
        Ok(())
    }
}

impl Decode for Decoder {
    fn frame(&mut self, frame: Frame<'_>, out: &mut VecDeque<Chunk>) -> Result<Flow, Error> {
        let line: Line<'_> = serde_json::from_str(frame.data).map_err(|_| {
            let excerpt: String = frame.data.chars().take(MAX_EXCERPT).collect();
            Error::new(
                ErrorKind::Protocol,
                format!("the stream holds a line that cannot be read: {excerpt}"),
            )
        })?;
        if line.error.is_some() {
            let error = refusal(&self.model, frame.data);
            // There is no status here: an unknown error is a server failure.
            let is_known = error.kind() != ErrorKind::Protocol;
            return Err(if is_known {
                error
            } else {
                Error::new(ErrorKind::Overloaded, error.message())
            });
        }
        self.say(true, line.message.thinking.unwrap_or_default(), out)?;
        self.say(false, line.message.content, out)?;
        for call in line.message.tool_calls.unwrap_or_default() {
            self.call(call, out)?;
        }
        if !line.done {
            return Ok(Flow::More);
        }
        // The server reports the tokens that it read, without cached ones.
        self.usage.input_uncached = line.prompt_eval_count.unwrap_or_default();
        self.usage.output = line.eval_count.unwrap_or_default();
        self.raw_usage = serde_json::from_str(frame.data)
            .map(usage_to_extra)
            .unwrap_or_default();
        out.push_back(Chunk::Usage {
            usage: self.usage,
            raw: self.raw_usage.clone(),
        });
        self.stop = line.done_reason.map(Into::into);
        self.done = true;
        Ok(Flow::Finished)
    }

    fn is_whole(&self) -> bool {
        self.done
    }

    fn end(&mut self, out: &mut VecDeque<Chunk>) -> Result<Reply, Error> {
        if !self.done {
            return Err(Error::new(
                ErrorKind::Protocol,
                "the stream ended in the middle",
            ));
        }
        self.hush(out);
        let mut reply = Reply::new(self.model.clone(), FinishReason::End);
        reply.blocks = self.blocks.take();
        reply.usage = self.usage;
        reply.raw_usage = self.raw_usage.clone();
        let finish = match self.stop.as_deref() {
            Some("length") => Finish::As(FinishReason::Length),
            Some("stop" | "load" | "unload" | "") | None => Finish::Whole,
            Some(_) => Finish::Unknown { open: false },
        };
        reply.raw_stop = self.stop.take();
        finish.settle(reply, out)
    }
}

//! Models that answer at once: one that calls a tool turn after turn, one that writes summaries.

use std::sync::{Arc, Mutex};

use adjutant_llm::{
    Block, Call, CallId, Chunk, ChunkStream, FinishReason, Model, ModelInfo, Reply, Request, Usage,
};
use adjutant_tool::tool;
use futures_util::stream;

use crate::measure::cpu_us;

/// How many tokens the models here take.
const WINDOW: u64 = 200_000;

/// Fetches a page.
#[tool(replay = "pure")]
pub(crate) fn fetch(
    /// The number of the page.
    n: u64,
) -> String {
    format!("page {n}")
}

/// A model that calls one tool in each turn until its turns are over; it notes how long was computed when it was asked.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    info: ModelInfo,
    tool: &'static str,
    turns: u64,
    clock: Option<Arc<Mutex<Vec<f64>>>>,
}

impl Caller {
    pub(crate) fn new(tool: &'static str, turns: u64) -> Self {
        let info = ModelInfo {
            context_window: WINDOW,
            max_output_tokens: 8_000,
            ..ModelInfo::new("bench/caller")
        };
        Self {
            info,
            tool,
            turns,
            clock: None,
        }
    }

    pub(crate) fn clock(mut self, clock: &Arc<Mutex<Vec<f64>>>) -> Self {
        self.clock = Some(Arc::clone(clock));
        self
    }

    fn reply(&self, request: &Request) -> Reply {
        let (turn, attempt) = (request.turn(), request.attempt);
        let mut reply = Reply::new(self.info.id.clone(), FinishReason::End);
        // As a provider counts, so that effects see the size of the conversation.
        reply.usage = Usage {
            input_uncached: request.entries.tokens(),
            output: 20,
            ..Usage::default()
        };
        if turn < self.turns {
            let id = CallId {
                turn,
                attempt,
                block: 0,
            };
            reply.blocks.push(Arc::new(Block::Call(Call::new(
                id,
                self.tool,
                format!("{{\"n\":{turn}}}"),
            ))));
            reply.stop = FinishReason::Calls;
        }
        reply
    }
}

impl Model for Caller {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn stream(&self, request: Request) -> ChunkStream {
        if let Some(clock) = &self.clock {
            clock.lock().expect("one run at a time").push(cpu_us());
        }
        say(&request, self.reply(&request))
    }
}

/// A model that answers with the same notes every time.
#[derive(Debug)]
pub(crate) struct Notes {
    info: ModelInfo,
}

impl Notes {
    pub(crate) fn new() -> Self {
        Self {
            info: ModelInfo {
                context_window: WINDOW,
                max_output_tokens: 8_000,
                ..ModelInfo::new("bench/notes")
            },
        }
    }
}

impl Model for Notes {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn stream(&self, request: Request) -> ChunkStream {
        let mut reply = Reply::new(self.info.id.clone(), FinishReason::End);
        reply.blocks.push(Arc::new(Block::text(
            "## Goal\n- Pages were asked for.\n".repeat(40),
        )));
        say(&request, reply)
    }
}

fn say(request: &Request, reply: Reply) -> ChunkStream {
    let start = Chunk::Start {
        attempt: request.attempt,
        model: reply.model.clone(),
        limits: Box::default(),
        warnings: Vec::new(),
    };
    Box::pin(stream::iter([Ok(start), Ok(Chunk::Done(Arc::new(reply)))]))
}

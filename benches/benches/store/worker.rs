//! A model that says a little and calls one tool, turn after turn, and the tool: about 2.5 KB of records a turn.

use std::sync::Arc;

use adjutant_agent::{Agent, Limits};
use adjutant_llm::{
    Block, Call, CallId, Chunk, ChunkStream, FinishReason, Model, ModelInfo, Reply, Request, Usage,
};
use adjutant_tool::tool;
use futures_util::stream;
use serde_json::json;

/// Reads a page.
#[tool(replay = "pure")]
pub(crate) fn page(
    /// The number of the page.
    n: u64,
) -> String {
    format!(
        "page {n}\n{}",
        "    let value = \"some text of a file\"; // line\n".repeat(19)
    )
}

/// A model that calls `page` in each turn, and answers in every `every`th.
#[derive(Debug)]
pub(crate) struct Worker {
    info: ModelInfo,
    every: u64,
}

impl Worker {
    /// An agent with this model, without limits.
    pub(crate) fn agent(every: u64) -> Agent {
        let model = Self {
            info: ModelInfo {
                context_window: 100_000_000,
                ..ModelInfo::new("bench/worker")
            },
            every,
        };
        Agent::new(model).tool(page).limits(Limits {
            max_turns: None,
            ..Limits::default()
        })
    }
}

impl Model for Worker {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn stream(&self, request: Request) -> ChunkStream {
        let (turn, attempt) = (request.turn(), request.attempt);
        let mut reply = Reply::new(self.info.id.clone(), FinishReason::End);
        reply.usage = Usage {
            input_uncached: 100,
            cache_read: 3_000,
            output: 20,
            ..Usage::default()
        };
        reply.raw_usage =
            json!({"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 3000})
                .into();
        reply.wire_id = Some("msg_01234567890123456789".into());
        let said = "It is said that this is needed. ".repeat(10);
        reply.blocks.push(Arc::new(Block::text(format!(
            "I look at page {turn} now. {said}"
        ))));
        if turn % self.every != 0 {
            let id = CallId {
                turn,
                attempt,
                block: 1,
            };
            let mut call = Call::new(id, "page", format!("{{\"n\":{turn}}}"));
            call.wire_id = Some("toolu_0123456789012345".into());
            reply.blocks.push(Arc::new(Block::Call(call)));
            reply.stop = FinishReason::Calls;
        }
        let start = Chunk::Start {
            attempt,
            model: reply.model.clone(),
            limits: Box::default(),
            warnings: Vec::new(),
        };
        Box::pin(stream::iter([Ok(start), Ok(Chunk::Done(Arc::new(reply)))]))
    }
}

//! A model for use without any other model. It is not a language model, but a small deterministic planner that reads
//! the request and the offered tools, calls them, and answers from their results. It never invents an answer.

mod answer;
mod evidence;
mod manifest;
mod outline;
mod plan;
mod shapes;
mod tools;
mod wish;

use std::sync::Arc;

use adjutant_llm::{
    Block, BlockKind, Call, CallId, Chunk, ChunkStream, Estimate, Extra, FinishReason, Model,
    ModelInfo, Price, Reply, Request, RequestOption, Usage, Warning, WarningKind,
};
use futures_util::stream;
use serde_json::{Value, json};

use plan::PlannedStep;
use tools::Planned;

/// The warning that every stream of this model begins with.
const WARNING: &str =
    "offline: no language model; a small planner answers from what the tools return";
/// The number of characters that one delta of a call's arguments holds.
const DELTA_CHARS: usize = 12;

/// A small planner in the place of a language model, called `offline/planner`; it costs nothing.
///
/// It describes a directory, finds a word, shows a file, replaces a quoted text in a file, and runs a quoted command,
/// with tools that it recognizes by their declarations. A question can contain four such tasks, with up to four
/// requests each. The same request produces the same stream.
#[derive(Debug, Clone)]
pub struct OfflineModel {
    info: ModelInfo,
}

impl OfflineModel {
    /// The planner.
    pub fn new() -> Self {
        let info = ModelInfo {
            context_window: 10_000_000,
            refuses: vec![
                RequestOption::MaxOutputTokens,
                RequestOption::Temperature,
                RequestOption::Stop,
            ],
            price: Some(Price::default()),
            ..ModelInfo::new("offline/planner")
        };
        Self { info }
    }
}

impl Default for OfflineModel {
    fn default() -> Self {
        Self::new()
    }
}

impl Model for OfflineModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn stream(&self, request: Request) -> ChunkStream {
        let speech = Speech::new(&self.info, &request);
        let chunks = match plan::next(&request) {
            PlannedStep::Say(text) => speech.say(&text),
            PlannedStep::Call(calls) => speech.call(calls),
        };
        Box::pin(stream::iter(chunks.into_iter().map(Ok)))
    }
}

/// A stream in the making.
struct Speech<'a> {
    request: &'a Request,
    chunks: Vec<Chunk>,
    reply: Reply,
}

impl<'a> Speech<'a> {
    fn new(info: &ModelInfo, request: &'a Request) -> Self {
        let start = Chunk::Start {
            attempt: request.attempt,
            model: info.id.clone(),
            limits: Box::default(),
            warnings: warnings(request),
        };
        Self {
            request,
            chunks: vec![start],
            reply: Reply::new(info.id.clone(), FinishReason::End),
        }
    }

    fn say(mut self, text: &str) -> Vec<Chunk> {
        let words = text
            .split_inclusive([' ', '\n'])
            .map(str::to_owned)
            .collect();
        self.block(BlockKind::Text, words, Block::text(text));
        self.finish(Estimate.count(text))
    }

    fn call(mut self, calls: Vec<Planned>) -> Vec<Chunk> {
        let mut output = 0;
        for (block, planned) in (0..).zip(calls) {
            let id = CallId {
                turn: self.request.turn(),
                attempt: self.request.attempt,
                block,
            };
            let args = Value::Object(planned.args).to_string();
            output += Estimate.count(&args) + Estimate.count(planned.tool.as_str());
            let kind = BlockKind::Call {
                id,
                name: planned.tool.clone(),
            };
            let call = Call {
                id,
                wire_id: None,
                name: planned.tool,
                args: args.as_str().into(),
                extra: Default::default(),
            };
            self.block(kind, pieces(&args), Block::Call(call));
        }
        self.reply.stop = FinishReason::Calls;
        self.finish(output)
    }

    fn block(&mut self, kind: BlockKind, deltas: Vec<String>, content: Block) {
        let block = self.reply.blocks.len() as u32;
        let content = Arc::new(content);
        self.chunks.push(Chunk::Open { block, kind });
        self.chunks
            .extend(deltas.into_iter().map(|text| Chunk::Delta { block, text }));
        self.chunks.push(Chunk::Close {
            block,
            content: Arc::clone(&content),
        });
        self.reply.blocks.push(content);
    }

    fn finish(mut self, output: u64) -> Vec<Chunk> {
        let tools = self
            .request
            .tools
            .iter()
            .map(|tool| Estimate.count(&tool.description));
        let asked = self.request.entries.tokens()
            + Estimate.count(&self.request.system)
            + tools.sum::<u64>();
        let usage = Usage {
            input_uncached: asked,
            output,
            ..Usage::default()
        };
        let raw = Extra::from(json!({"estimated": true}));
        self.reply.usage = usage;
        self.reply.raw_usage = raw.clone();
        self.chunks.push(Chunk::Usage { usage, raw });
        self.chunks.push(Chunk::Done(Arc::new(self.reply)));
        self.chunks
    }
}

fn warnings(request: &Request) -> Vec<Warning> {
    let options = &request.options;
    let dropped = [
        (options.max_output_tokens.is_some(), "max_output_tokens"),
        (options.temperature.is_some(), "temperature"),
        (options.top_p.is_some(), "top_p"),
        (options.seed.is_some(), "seed"),
        (!options.stop.is_empty(), "stop"),
    ];
    let mut warnings = vec![Warning {
        kind: WarningKind::Degraded,
        message: WARNING.into(),
    }];
    for (_, option) in dropped.iter().filter(|(set, _)| *set) {
        let message = format!("offline/planner does not take {option}; it was dropped");
        warnings.push(Warning {
            kind: WarningKind::OptionDropped,
            message: message.into(),
        });
    }
    warnings
}

fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters
        .chunks(DELTA_CHARS)
        .map(|piece| piece.iter().collect())
        .collect()
}

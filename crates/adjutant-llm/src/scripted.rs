//! A model that replies with a script: for tests of everything above a model.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use futures_core::Stream;
use serde_json::Value;
use tokio::sync::watch;

use crate::{
    Block, BlockKind, Call, CallId, Chunk, ChunkStream, Error, ErrorKind, Extra, FinishReason,
    Model, ModelInfo, Reply, Request, Thinking, Usage, Warning,
};

/// The default number of characters per delta.
const DELTA_CHARS: usize = 8;

/// A model that gives scripted replies, one for each request, in order.
///
/// When the script is used up, further requests end in an error. All requests are kept; clones share both.
#[derive(Clone)]
pub struct ScriptedModel {
    info: ModelInfo,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    scripts: VecDeque<Script>,
    requests: Vec<Request>,
}

/// One scripted reply: its content, its pauses, and its end.
#[derive(Default)]
pub struct Script {
    parts: Vec<ScriptedPart>,
    stop: Option<FinishReason>,
    usage: Option<Usage>,
    delta_chars: Option<usize>,
    warnings: Vec<Warning>,
    failure: Option<Error>,
    retracted: Vec<(Script, Error)>,
    gates: Vec<(usize, Gate)>,
    factory: Option<Factory>,
}

type Factory = Box<dyn FnOnce(&Request) -> Script + Send>;

enum ScriptedPart {
    Text(Arc<str>),
    Thinking(Thinking),
    Call { name: Arc<str>, args: Arc<str> },
    Opaque { issuer: Arc<str>, value: Value },
}

/// A gate at which a scripted stream waits until the test opens it.
#[derive(Debug, Clone)]
pub struct Gate {
    reached: watch::Sender<bool>,
    open: watch::Sender<bool>,
}

impl ScriptedModel {
    /// A model called `scripted/model` that gives these replies.
    pub fn new(scripts: impl IntoIterator<Item = Script>) -> Self {
        let state = State {
            scripts: scripts.into_iter().collect(),
            requests: Vec::new(),
        };
        Self {
            info: ModelInfo::new("scripted/model"),
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Sets the info of the model.
    #[must_use]
    pub fn info(mut self, info: ModelInfo) -> Self {
        self.info = info;
        self
    }

    /// Adds a reply at the end of the script.
    pub fn push(&self, script: Script) {
        self.state().scripts.push_back(script);
    }

    /// The requests so far, in order.
    pub fn requests(&self) -> Vec<Request> {
        self.state().requests.clone()
    }

    /// Checks that every scripted reply was requested.
    ///
    /// # Panics
    /// If one was not.
    #[track_caller]
    pub fn assert_done(&self) {
        let left = self.state().scripts.len();
        assert_eq!(left, 0, "unused scripted replies");
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Model for ScriptedModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn stream(&self, request: Request) -> ChunkStream {
        let mut state = self.state();
        let script = state.scripts.pop_front();
        let number = state.requests.len() + 1;
        state.requests.push(request.clone());
        drop(state);
        let script = script.unwrap_or_else(|| {
            Script::new().fail(Error::new(
                ErrorKind::Config,
                format!("no scripted reply is left for request {number}"),
            ))
        });
        Box::pin(Play {
            items: script.play(&self.info, &request),
        })
    }
}

impl Script {
    /// Creates an empty reply.
    pub fn new() -> Self {
        Self::default()
    }

    /// A reply that is made when the request is seen.
    pub fn from_fn(make: impl FnOnce(&Request) -> Script + Send + 'static) -> Self {
        Self {
            factory: Some(Box::new(make)),
            ..Self::default()
        }
    }

    /// Adds a text block.
    #[must_use]
    pub fn text(mut self, text: impl Into<Arc<str>>) -> Self {
        self.parts.push(ScriptedPart::Text(text.into()));
        self
    }

    /// Adds a thinking block.
    #[must_use]
    pub fn thinking(mut self, thinking: Thinking) -> Self {
        self.parts.push(ScriptedPart::Thinking(thinking));
        self
    }

    /// Calls a tool.
    #[must_use]
    pub fn call(self, name: impl Into<Arc<str>>, args: Value) -> Self {
        self.call_raw(name, args.to_string())
    }

    /// Calls a tool with arguments that need not be JSON.
    #[must_use]
    pub fn call_raw(mut self, name: impl Into<Arc<str>>, args: impl Into<Arc<str>>) -> Self {
        self.parts.push(ScriptedPart::Call {
            name: name.into(),
            args: args.into(),
        });
        self
    }

    /// Adds a block that only its issuer understands.
    #[must_use]
    pub fn opaque(mut self, issuer: impl Into<Arc<str>>, value: Value) -> Self {
        self.parts.push(ScriptedPart::Opaque {
            issuer: issuer.into(),
            value,
        });
        self
    }

    /// Sets how the reply stops; without it, `Calls` if it calls a tool and `End` otherwise.
    #[must_use]
    pub fn stop(mut self, stop: FinishReason) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Sets what the reply used; without it, the estimated size of the request and ten tokens of output.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Sets how many characters one delta holds; 8 without it.
    #[must_use]
    pub fn delta_chars(mut self, chars: usize) -> Self {
        self.delta_chars = Some(chars.max(1));
        self
    }

    /// Adds a warning to the start of the stream.
    #[must_use]
    pub fn warning(mut self, warning: Warning) -> Self {
        self.warnings.push(warning);
        self
    }

    /// Ends the stream with an error after the scripted content.
    #[must_use]
    pub fn fail(mut self, error: Error) -> Self {
        self.failure = Some(error);
        self
    }

    /// Plays another script first, and then withdraws its output.
    #[must_use]
    pub fn after_retracted(mut self, script: Script, cause: Error) -> Self {
        self.retracted.push((script, cause));
        self
    }

    /// Waits at the gate before the delta of this number, counted from 0 over the whole reply.
    ///
    /// A number beyond the last delta waits before the end.
    #[must_use]
    pub fn wait_at(mut self, delta: usize, gate: &Gate) -> Self {
        self.gates.push((delta, gate.clone()));
        self
    }

    fn play(self, info: &ModelInfo, request: &Request) -> VecDeque<ScriptItem> {
        let mut script = self;
        while let Some(factory) = script.factory.take() {
            script = factory(request);
        }
        let mut items = VecDeque::new();
        let mut attempt = request.attempt;
        for (voided, cause) in std::mem::take(&mut script.retracted) {
            let usage = voided.usage.unwrap_or_default();
            voided.attempt(info, request, attempt, &mut items);
            items.push_back(ScriptItem::Chunk(Ok(Chunk::Retracted {
                attempt,
                cause,
                usage,
            })));
            attempt += 1;
        }
        let failure = script.failure.take();
        let reply = script.attempt(info, request, attempt, &mut items);
        items.push_back(ScriptItem::Chunk(
            failure.map_or(Ok(Chunk::Done(Arc::new(reply))), Err),
        ));
        items
    }

    fn attempt(
        mut self,
        info: &ModelInfo,
        request: &Request,
        attempt: u32,
        items: &mut VecDeque<ScriptItem>,
    ) -> Reply {
        let chunk = |chunk| ScriptItem::Chunk(Ok(chunk));
        let mut reply = Reply::new(info.id.clone(), self.stop.unwrap_or(FinishReason::End));
        items.push_back(chunk(Chunk::Start {
            attempt,
            model: info.id.clone(),
            limits: Box::default(),
            warnings: std::mem::take(&mut self.warnings),
        }));
        let mut deltas = 0;
        for (block, part) in (0_u32..).zip(&self.parts) {
            let (kind, text, content) = part.block(CallId {
                turn: request.turn(),
                attempt,
                block,
            });
            items.push_back(chunk(Chunk::Open { block, kind }));
            for text in pieces(&text, self.delta_chars.unwrap_or(DELTA_CHARS)) {
                items.extend(
                    self.gates
                        .iter()
                        .filter(|(at, _)| *at == deltas)
                        .map(|(_, gate)| ScriptItem::Gate(gate.clone())),
                );
                items.push_back(chunk(Chunk::Delta { block, text }));
                deltas += 1;
            }
            items.push_back(chunk(Chunk::Close {
                block,
                content: Arc::clone(&content),
            }));
            reply.blocks.push(content);
        }
        items.extend(
            self.gates
                .iter()
                .filter(|(at, _)| *at >= deltas)
                .map(|(_, gate)| ScriptItem::Gate(gate.clone())),
        );
        if self.stop.is_none() && reply.calls().next().is_some() {
            reply.stop = FinishReason::Calls;
        }
        let estimate = Usage {
            input_uncached: request.entries.tokens(),
            output: 10,
            ..Usage::default()
        };
        reply.usage = self.usage.unwrap_or(estimate);
        items.push_back(chunk(Chunk::Usage {
            usage: reply.usage,
            raw: Extra::default(),
        }));
        reply
    }
}

impl ScriptedPart {
    fn block(&self, id: CallId) -> (BlockKind, Arc<str>, Arc<Block>) {
        let (kind, text, block) = match self {
            ScriptedPart::Text(text) => {
                (BlockKind::Text, text.clone(), Block::text(Arc::clone(text)))
            }
            ScriptedPart::Thinking(it) => (
                BlockKind::Thinking,
                it.text.clone(),
                Block::Thinking(it.clone()),
            ),
            ScriptedPart::Call { name, args } => {
                let name = crate::ToolName(name.clone());
                let call = Call {
                    id,
                    wire_id: None,
                    name: name.clone(),
                    args: args.clone(),
                    extra: Default::default(),
                };
                (
                    BlockKind::Call { id, name },
                    args.clone(),
                    Block::Call(call),
                )
            }
            ScriptedPart::Opaque { issuer, value } => (
                BlockKind::Opaque,
                "".into(),
                Block::Opaque {
                    issuer: issuer.clone(),
                    value: value.clone(),
                },
            ),
        };
        (kind, text, Arc::new(block))
    }
}

impl Gate {
    /// Waits until a stream reaches the gate.
    pub async fn wait_until_reached(&self) {
        let mut reached = self.reached.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        let _ = reached.wait_for(|reached| *reached).await;
    }

    /// Lets everything pass, now and later.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    async fn pass(self) {
        self.reached.send_replace(true);
        let mut open = self.open.subscribe();
        let _ = open.wait_for(|open| *open).await;
    }
}

impl Default for Gate {
    /// A closed gate.
    fn default() -> Self {
        Self {
            reached: watch::Sender::new(false),
            open: watch::Sender::new(false),
        }
    }
}

struct Play {
    items: VecDeque<ScriptItem>,
}

enum ScriptItem {
    Chunk(Result<Chunk, Error>),
    Gate(Gate),
    Waiting(Pin<Box<dyn Future<Output = ()> + Send>>),
}

impl Stream for Play {
    type Item = Result<Chunk, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match self.items.pop_front() {
                None => return Poll::Ready(None),
                Some(ScriptItem::Chunk(chunk)) => return Poll::Ready(Some(chunk)),
                Some(ScriptItem::Gate(gate)) => self
                    .items
                    .push_front(ScriptItem::Waiting(Box::pin(gate.pass()))),
                Some(ScriptItem::Waiting(mut wait)) => {
                    if wait.as_mut().poll(cx).is_pending() {
                        self.items.push_front(ScriptItem::Waiting(wait));
                        return Poll::Pending;
                    }
                }
            }
        }
    }
}

fn pieces(text: &str, chars: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut left = text;
    while !left.is_empty() {
        let end = left
            .char_indices()
            .nth(chars)
            .map_or(left.len(), |(at, _)| at);
        let (piece, rest) = left.split_at(end);
        pieces.push(piece.to_owned());
        left = rest;
    }
    pieces
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("ScriptedModel")
            .field("info", &self.info)
            .field("left", &state.scripts.len())
            .field("requests", &state.requests.len())
            .finish()
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("parts", &self.parts.len())
            .field("stop", &self.stop)
            .finish_non_exhaustive()
    }
}

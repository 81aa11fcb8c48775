//! Ask: streams the model, emits its chunks, and keeps the partial reply when it is cut off.

mod refuse;
mod revise;

use std::{
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use adjutant_core::{ActivityId, EventKind, Failure, Record, Run, TurnNo, panic_text};
use adjutant_llm::{
    BlockKind, Chunk, ChunkStream, EntryId, Error, ErrorKind, Estimate, FinishReason, Model,
    ModelId, NanoUsd, Reply, Request, ToolName, Usage,
};
use adjutant_tool::Cancel;
use futures_util::FutureExt;
use smallvec::SmallVec;

use super::{
    LocalExecutor, Performed, Records,
    early::Early,
    fingerprint::Recorded,
    fit::{Asked, warn_of_cut},
    prepare::{Restore, ShownTools},
};
use crate::{
    event_sink::EventSink,
    listener::Aloud,
    partial_reply::{PartialReply, lock},
    points::{AfterModel, ModelError},
    turn_position::TurnPosition,
};

/// The maximum number of chunks taken in a row before other work gets its turn: the driver, the reader, a
/// cancellation.
const BURST: u32 = 256;

/// The smallest estimate of entries that the floor makes smaller when the provider refuses them.
const LEAST_CUT: u64 = 256;

/// A stream on its way.
struct Asking {
    feed: Arc<EventSink>,
    early: Arc<Early>,
    place: TurnPosition,
    turn: TurnNo,
    asked: Arc<dyn Model>,
    stream: ChunkStream,
    /// Shared with observers of the partial reply.
    reply: Arc<Mutex<PartialReply>>,
    _aloud: Aloud,
    kinds: SmallVec<[Delta; 8]>,
    /// The model of the current attempt.
    model: Option<ModelId>,
    /// The current attempt.
    attempt: u32,
    records: Vec<Record>,
    shown: bool,
    /// True if the event mailbox was full at the last check.
    full: bool,
    at_ms: u64,
}

/// The event that a delta of a block becomes.
#[derive(Clone, Copy)]
enum Delta {
    Text,
    Thinking,
    Args,
    Hidden,
}

/// The parts that a request to a model needs.
pub(super) struct Asker {
    feed: Arc<EventSink>,
    early: Arc<Early>,
    place: TurnPosition,
    model: Arc<dyn Model>,
    stop: Cancel,
    /// True if a request that does not fit may be made smaller.
    shrinks: bool,
    /// The id of the first entry that came after the request.
    next_entry: EntryId,
}

impl LocalExecutor {
    pub(super) fn ask(&mut self, run: &Run, turn: TurnNo, attempt: u32) {
        let has_floor = self.setup.floor.is_on() && run.view().items().tokens() >= LEAST_CUT;
        let shrinks =
            (has_floor || !self.setup.effects.is_empty()) && !run.request().has_overflowed();
        if run.request().is_stale() && shrinks && self.is_tight(run) {
            return self.perform(
                ActivityId::Ask(turn),
                std::future::ready(self.outgrown(run)),
            );
        }
        let request = self.request(run, turn, attempt);
        let model = Arc::clone(self.model_of(run));
        let (feed, early) = (Arc::clone(&self.feed), Arc::clone(&self.background.early));
        // The token of the request before, unless it was cancelled.
        let stop = self
            .generating
            .take()
            .filter(|stop| !stop.is_cancelled())
            .unwrap_or_else(|| self.stop.child());
        self.generating = Some(stop.clone());
        let asker = Asker {
            feed,
            early,
            place: self.place,
            model,
            stop,
            shrinks,
            next_entry: run.history().next_id(),
        };
        if self.tools.is_some() && self.budget().is_none() {
            return self.perform(ActivityId::Ask(turn), asker.ask(request));
        }
        self.ask_with(run, turn, request, asker);
    }

    /// Sends the request with the rest of a budget, or with tools that must be resolved first.
    #[cold]
    fn ask_with(&mut self, run: &Run, turn: TurnNo, request: Request, asker: Asker) {
        let dressed = asker.apply_goal(request.clone()).ok();
        let (fund, restore) = (
            self.fund(run, dressed.as_ref().unwrap_or(&request)),
            self.restore(run),
        );
        let restore = restore.map(|restore| {
            (
                restore,
                run.request().hidden().to_vec(),
                self.request_baseline(run),
            )
        });
        let stop = asker.stop.clone();
        let ask = move |request: Request| async move {
            match restore {
                None => asker.ask(request).await,
                // Boxed, so that a request of this drive stays small.
                Some((restore, hidden, recorded)) => {
                    Box::pin(asker.ask_later(request, restore, hidden, recorded)).await
                }
            }
        };
        match fund {
            None => self.perform(ActivityId::Ask(turn), ask(request)),
            Some(fund) => self.perform(ActivityId::Ask(turn), fund.ask(turn, request, stop, ask)),
        }
    }
}

impl Asker {
    /// Resolves the tools first: the turn was prepared by an earlier drive.
    ///
    /// If the request differs from its record, the difference is recorded first; then the request is sent.
    async fn ask_later(
        self,
        mut request: Request,
        restore: Box<Restore>,
        hidden: Vec<ToolName>,
        recorded: Recorded,
    ) -> Performed {
        let act = ActivityId::Ask(self.place.turn);
        let resolved = tokio::select! {
            biased;
            resolved = restore.tools(&self.feed.setup) => resolved,
            () = self.stop.cancelled() => return Performed::nothing(act),
        };
        match resolved {
            Ok((sources, tools)) => {
                if !restore.keeps_prefix() {
                    request.tools =
                        ShownTools::decls(&mut None, tools.decls(), &hidden, restore.only());
                }
                let performed = match recorded.check(&request, &self.feed, self.place) {
                    Some(configured) => Performed::new(act, configured),
                    None => self.ask(request).await,
                };
                Performed {
                    tools: Some((sources, tools)),
                    ..performed
                }
            }
            Err(message) => Performed::new(
                act,
                Record::Broke {
                    act,
                    failure: Failure::Activity {
                        act,
                        message: message.into(),
                    },
                },
            ),
        }
    }

    /// Returns the request with the options and tools for the wanted answer, if there is one.
    fn apply_goal(&self, request: Request) -> Result<Request, Error> {
        match &self.feed.setup.goal {
            None => Ok(request),
            Some(goal) => goal.dress(request, &*self.model),
        }
    }

    async fn ask(self, request: Request) -> Performed {
        let turn = self.place.turn;
        let request = match self.apply_goal(request) {
            Ok(request) => request,
            Err(error) => {
                let act = ActivityId::Ask(turn);
                return Performed::new(
                    act,
                    Record::Broke {
                        act,
                        failure: Failure::Model { error },
                    },
                );
            }
        };
        let attempt = request.attempt;
        // Kept only for a server whose count may show that it cut off the request.
        let asked = self.model.info().cuts_silently;
        let asked = asked.then(|| Box::new((request.entries.clone(), Arc::clone(&request.system))));
        let stream = self.model.stream(request);
        let at_ms = self.feed.setup.world.now_ms();
        let (reply, who) = (Arc::clone(self.feed.seen.reply()), &self.feed.setup.who);
        lock(&reply).begin(who, self.place, at_ms, attempt);
        let aloud = self.feed.listeners().hear_reply(&who.thread, &reply);
        // Only now: an observer that comes later finds the reply and emits it itself.
        lock(&reply).is_shown |= self.feed.is_open();
        let mut asking = Asking {
            at_ms,
            shown: false,
            _aloud: aloud,
            feed: Arc::clone(&self.feed),
            early: self.early,
            place: self.place,
            turn,
            asked: self.model,
            stream,
            reply,
            kinds: SmallVec::new(),
            model: None,
            attempt,
            records: Vec::new(),
            full: false,
        };
        let began_ms = asking.at_ms;
        let mut stopped = pin!(self.stop.cancelled());
        let streaming = std::future::poll_fn(|cx| asking.poll(cx, stopped.as_mut()));
        let outcome = AssertUnwindSafe(streaming).catch_unwind().await;
        if let (Some(asked), Ok(Some(Ok(reply)))) = (&asked, &outcome) {
            let (entries, system) = &**asked;
            asking.check_count(&Asked::new(entries, entries.len(), system), reply);
        }
        match outcome {
            Ok(Some(Err(error))) if self.shrinks && asking.gives_way(&error) => {
                asking.handle_overflow(&error)
            }
            Ok(Some(Err(error)))
                if let Some(edits) = asking.replacements(&error, self.next_entry) =>
            {
                asking.handle_refusal(&error, edits)
            }
            Ok(Some(Ok(reply)))
                if asking.feed.setup.hooks.hears::<AfterModel>() && !has_doubles(&reply) =>
            {
                Box::pin(asking.run_reply_hooks(reply, began_ms, &self.stop)).await
            }
            Ok(Some(Err(error))) if asking.feed.setup.hooks.hears::<ModelError>() => {
                Box::pin(asking.run_error_hooks(error, &self.stop)).await
            }
            Ok(outcome) => asking.end(outcome),
            Err(panic) => {
                // The reply was emitted up to the panic, so that part stays.
                let act = ActivityId::Ask(turn);
                let message = format!("{act:?} panicked: {}", panic_text(&*panic));
                asking.records.push(Record::Broke {
                    act,
                    failure: Failure::Activity {
                        act,
                        message: message.into(),
                    },
                });
                asking.end(None)
            }
        }
    }
}

impl Asking {
    /// Takes chunks until the stream ends, or returns `None` if the run is cancelled.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        mut stopped: Pin<&mut impl Future>,
    ) -> Poll<Option<Result<Arc<Reply>, Error>>> {
        let reply = Arc::clone(&self.reply);
        for _ in 0..BURST {
            if self.full {
                if self.feed.poll_room(cx).is_pending() {
                    return stopped.as_mut().poll(cx).map(|_| None);
                }
                self.full = false;
            }
            let chunk = match self.stream.as_mut().poll_next(cx) {
                Poll::Ready(Some(Ok(chunk))) => chunk,
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => {
                    let message = "the stream of the model ended without a reply";
                    return Poll::Ready(Some(Err(Error::new(ErrorKind::Protocol, message))));
                }
                Poll::Pending => {
                    // The next chunk comes later, so the time is read once for each wake, not for each chunk.
                    self.at_ms = self.feed.setup.world.now_ms();
                    return stopped.as_mut().poll(cx).map(|_| None);
                }
            };
            let news = self.is_news(&chunk).then(|| chunk.clone());
            {
                let mut reply = lock(&reply);
                match reply.push(&chunk) {
                    Ok(Some(reply)) => return Poll::Ready(Some(Ok(reply))),
                    Ok(None) => self.take(chunk, reply.is_shown),
                    Err(error) => return Poll::Ready(Some(Err(error))),
                }
            }
            news.iter()
                .for_each(|chunk| self.early.see(chunk, &self.feed));
        }
        if stopped.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        // The executor notices a cancellation only when it is polled itself.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// True if calls may begin or end with this chunk.
    fn is_news(&self, chunk: &Chunk) -> bool {
        self.feed.setup.calls.early
            && matches!(chunk, Chunk::Close { .. } | Chunk::Retracted { .. })
    }

    fn take(&mut self, chunk: Chunk, is_shown: bool) {
        self.shown |= is_shown;
        let kind = match chunk {
            Chunk::Start {
                attempt,
                model,
                limits,
                warnings,
            } => {
                self.kinds.clear();
                (self.model, self.attempt) = (Some(model.clone()), attempt);
                warnings
                    .iter()
                    .for_each(|warning| self.feed.warn(self.place, self.at_ms, warning));
                EventKind::ReplyStarted {
                    attempt,
                    model,
                    limits,
                }
            }
            Chunk::Pending { silent } => EventKind::ReplyPending { silent },
            Chunk::Open { block, kind } => {
                let at = block as usize;
                self.kinds
                    .resize(self.kinds.len().max(at + 1), Delta::Hidden);
                self.kinds[at] = Delta::from_kind(&kind);
                EventKind::BlockStarted { block, kind }
            }
            Chunk::Delta { block, text } => match self.kinds.get(block as usize) {
                Some(Delta::Text) => EventKind::TextDelta { block, text },
                Some(Delta::Thinking) => EventKind::ThinkingDelta { block, text },
                Some(Delta::Args) => EventKind::ArgsDelta { block, text },
                Some(Delta::Hidden) | None => return,
            },
            Chunk::Close { block, content } => EventKind::BlockFinished { block, content },
            Chunk::Warned { warning } => return self.feed.warn(self.place, self.at_ms, &warning),
            Chunk::Retracted {
                attempt,
                cause,
                usage,
            } => {
                let cost = self.cost_if_reported(&usage);
                self.records.push(Record::Retracted {
                    turn: self.turn,
                    attempt,
                    usage,
                    cost,
                });
                (self.attempt, self.kinds) = (attempt.saturating_add(1), SmallVec::new());
                EventKind::ReplyRetracted {
                    attempt,
                    cause,
                    usage,
                }
            }
            _ => return,
        };
        if self.shown {
            self.full = self.feed.show(self.place, self.at_ms, kind);
        }
    }

    /// Warns if the provider counted so little of a request that it has cut it off.
    fn check_count(&self, asked: &Asked<'_>, reply: &Reply) {
        let (info, counted) = (self.asked.info_of(&reply.model), reply.usage.input());
        if !info.cuts_silently || !Estimate::is_undercounted(asked.most(), counted) {
            return;
        }
        if let Some(window) = asked.window(info, counted) {
            let warning = warn_of_cut(info, counted, window);
            self.feed.warn(self.place, self.at_ms, &warning);
        }
    }

    /// The records of the whole stream: one for each void attempt, the reply, and what broke.
    fn end(mut self, outcome: Option<Result<Arc<Reply>, Error>>) -> Performed {
        let act = ActivityId::Ask(self.turn);
        let cut = lock(&self.reply).cut();
        let said = match outcome {
            Some(Ok(reply)) if has_doubles(&reply) => {
                let error = Error::new(ErrorKind::Protocol, "two calls of a reply have one id");
                self.broke(act, error);
                None
            }
            Some(Ok(reply)) => Some(reply),
            Some(Err(error)) => {
                self.broke(act, error);
                cut.map(Arc::new)
            }
            None => cut.map(Arc::new),
        };
        // An interrupted attempt without content and usage leaves no trace in the conversation.
        let said = said.filter(|it| {
            it.stop != FinishReason::Interrupted || !it.blocks.is_empty() || it.usage.total() > 0
        });
        if said.is_none() {
            self.take_back();
        }
        let mut records = Records::from(std::mem::take(&mut self.records));
        if let Some(reply) = said.filter(|it| !has_doubles(it)) {
            let cost = self.cost_if_reported(&reply.usage);
            let replied = Record::reply_received(self.turn, reply, cost);
            let at = records
                .iter()
                .position(|record| matches!(record, Record::Broke { .. }));
            records.insert(at.unwrap_or(records.len()), replied);
        }
        Performed {
            records,
            ..Performed::nothing(act)
        }
    }

    /// Voids blocks that were emitted by an attempt that leaves no trace.
    fn take_back(&self) {
        if self.shown && !self.kinds.is_empty() {
            let cause = Error::new(
                ErrorKind::Cancelled,
                "the reply ended before it said anything",
            );
            let kind = EventKind::ReplyRetracted {
                attempt: self.attempt,
                cause,
                usage: Usage::default(),
            };
            // No later part of the reply could wait for space.
            let _full = self.feed.show(self.place, self.at_ms, kind);
        }
    }

    /// Some servers never report usage, and a cut stream may not have: missing usage does not mean that nothing was
    /// spent.
    fn cost_if_reported(&self, usage: &Usage) -> Option<NanoUsd> {
        if usage.total() > 0 {
            self.cost(usage)
        } else {
            None
        }
    }

    /// Returns the cost of the current attempt: a model may stand for several, each with its own price.
    fn cost(&self, usage: &Usage) -> Option<NanoUsd> {
        match &self.model {
            Some(id) => self.asked.info_of(id).cost(usage),
            None => self.asked.info().cost(usage),
        }
    }

    #[cold]
    fn broke(&mut self, act: ActivityId, error: Error) {
        self.records.push(Record::Broke {
            act,
            failure: Failure::Model { error },
        });
    }
}

impl Delta {
    fn from_kind(kind: &BlockKind) -> Self {
        match kind {
            BlockKind::Text => Delta::Text,
            BlockKind::Thinking => Delta::Thinking,
            BlockKind::Call { .. } => Delta::Args,
            _ => Delta::Hidden,
        }
    }
}

fn has_doubles(reply: &Reply) -> bool {
    // Most replies have one call, or none.
    if reply.calls().nth(1).is_none() {
        return false;
    }
    let mut seen = std::collections::BTreeSet::new();
    !reply.calls().all(|call| seen.insert(call.id))
}

//! The things that an observer of a run sees: the records, and the deltas between them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use adjutant_llm::{
    Block, BlockKind, CallId, CallResult, Edit, Entry, ErrorKind, ModelId, NanoUsd, RateLimits,
    Reply, ThreadId, ToolName, Usage, Warning,
};
use adjutant_tool::{Answer, Identity, Progress};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    journal::Stamped,
    number::{RunNo, Seq, TurnNo},
    outcome::{CancelBy, Limit, Outcome},
    pause,
    pause::{Pause, PauseId},
    record::{Admission, EffectReport, Lane, OutputVerdict, Record},
    report::RunResult,
};

/// Something that happened in a run.
///
/// Shape: `{"seq":…,"at_ms":…,"run":…,"turn":…,"who":{…},"event":"text_delta","block":0,"text":"…"}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The record that this shows, or the newest one before it: where to read on from.
    pub seq: Seq,
    /// The time when it happened, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The run.
    pub run: RunNo,
    /// The turn; 0 before the first one.
    pub turn: TurnNo,
    /// The agent that it happened to.
    pub who: Arc<Identity>,
    /// The kind of the event, with its content.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// The kinds of events.
///
/// Order: `RunStarted` first, `RunFinished` last; turns, replies and tools each start once and finish once. So do
/// blocks, except blocks that are open when their reply is interrupted or retracted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A run began.
    RunStarted,
    /// An entry joined the conversation: a prompt, a reminder, something of the application.
    EntryAdded {
        /// The entry.
        content: Arc<Entry>,
    },
    /// A turn began.
    TurnStarted,
    /// Something was changed or tolerated.
    Warning {
        /// The warning.
        warning: Warning,
    },
    /// The model began to answer.
    ReplyStarted {
        /// The attempt at the turn's reply, counted from 0.
        attempt: u32,
        /// The model.
        model: ModelId,
        /// The provider's statement about its limits.
        limits: Box<RateLimits>,
    },
    /// The server keeps the connection alive, but has sent no content for a while.
    ReplyPending {
        /// The time since the request, or since the last content.
        silent: Duration,
    },
    /// A block of the reply began.
    BlockStarted {
        /// Its place in the reply.
        block: u32,
        /// The kind of block that it will be.
        kind: BlockKind,
    },
    /// A text block grew.
    TextDelta {
        /// Its place in the reply.
        block: u32,
        /// The text that was added.
        text: String,
    },
    /// A thinking block grew.
    ThinkingDelta {
        /// Its place in the reply.
        block: u32,
        /// The text that was added.
        text: String,
    },
    /// The raw arguments of a call grew.
    ArgsDelta {
        /// The call's place in the reply.
        block: u32,
        /// The text that was added.
        text: String,
    },
    /// A block of the reply is finished.
    BlockFinished {
        /// Its place in the reply.
        block: u32,
        /// The block.
        content: Arc<Block>,
    },
    /// The model's output in this attempt is void; another attempt follows.
    ReplyRetracted {
        /// The attempt.
        attempt: u32,
        /// The cause.
        cause: adjutant_llm::Error,
        /// The usage of the attempt.
        usage: Usage,
    },
    /// The reply is finished or interrupted, and in the log.
    ReplyFinished {
        /// The reply.
        reply: Arc<Reply>,
        /// The cost of the reply, if the model has a price.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<NanoUsd>,
    },
    /// A call begins; a call that may not run begins too, and finishes at once.
    ToolStarted {
        /// The call.
        call: CallId,
        /// The tool.
        name: ToolName,
        /// The title for people, instead of the name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<Arc<str>>,
        /// The arguments it runs with, as JSON text; the raw ones if it may not run.
        args: Arc<str>,
    },
    /// A call reports its progress.
    ToolProgress {
        /// The call.
        call: CallId,
        /// The progress that it has made.
        progress: Box<Progress>,
    },
    /// A call has its result; of parallel calls, in the order in which they end.
    ToolFinished {
        /// The call.
        call: CallId,
        /// The tool.
        name: ToolName,
        /// The result.
        result: Arc<CallResult>,
        /// The time that it ran.
        duration: Duration,
    },
    /// A turn is over: every call of it has a result.
    TurnFinished,
    /// A caller requested to cancel the run.
    CancelAsked {
        /// The source of the request.
        by: CancelBy,
    },
    /// A message waits to be placed.
    MessageQueued {
        /// Its number in the thread.
        item: u64,
        /// The queue.
        lane: Lane,
        /// The message.
        content: Arc<Entry>,
    },
    /// A queued message was taken back.
    MessageWithdrawn {
        /// Its number.
        item: u64,
    },
    /// A queued message joins the conversation; its `EntryAdded` follows.
    MessagePlaced {
        /// Its number.
        item: u64,
    },
    /// A hook denied something.
    Denied {
        /// The point.
        point: Arc<str>,
        /// The reason.
        reason: Arc<str>,
        /// The call that it was about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
    },
    /// The answer does not fit the output of the run; the model must try again, unless no time is left.
    OutputRefused {
        /// The reason, as sent to the model.
        reason: Arc<str>,
        /// The number of times that the model may still be sent back; the run fails at 0.
        left: u32,
    },
    /// The run, or a call of it, waits for the outside.
    Paused {
        /// The pause, with its question.
        #[serde(serialize_with = "pause::tell")]
        pause: Arc<Pause>,
    },
    /// A pause was answered.
    Answered {
        /// The pause.
        pause: PauseId,
        /// The answer.
        answer: Box<Answer>,
    },
    /// A call opened a child agent.
    ChildOpened {
        /// The call.
        call: CallId,
        /// The identity of the child.
        child: Arc<Identity>,
    },
    /// A run of a call's agent ended.
    ChildEnded {
        /// The call.
        call: CallId,
        /// The child's thread.
        thread: ThreadId,
        /// The outcome of the run.
        outcome: Box<Outcome>,
        /// The usage of the child and everything under it.
        usage: Usage,
    },
    /// An effect reports its work.
    Report {
        /// Its kind.
        by: Arc<str>,
        /// A description of its action.
        data: Box<Value>,
    },
    /// The request did not fit the model; the turn is prepared again.
    Overflowed,
    /// The provider refused media of the request; the turn is prepared again without them.
    MediaRefused {
        /// The provider's message.
        reason: Arc<str>,
    },
    /// A limit was reached.
    LimitReached {
        /// The limit.
        limit: Limit,
    },
    /// A middleware replaced the outcome of the run.
    Overruled {
        /// The outcome that counts for the run.
        outcome: Box<Outcome>,
        /// The name of the middleware.
        by: Arc<str>,
    },
    /// Something of an upper crate or of the application.
    App {
        /// The kind of the thing.
        kind: Arc<str>,
        /// The version of its content.
        version: u32,
        /// Its content.
        data: Box<Value>,
    },
    /// A listener missed events that could not be read again from the log; the events that follow are newer.
    Lagged {
        /// The last record whose events were all received.
        after: Seq,
    },
    /// A parked run continues; the answers follow.
    RunResumed,
    /// The run waits for the outside; nothing follows until it is resumed.
    RunPaused {
        /// The result of the run so far.
        result: Arc<RunResult>,
    },
    /// The run is over; nothing follows.
    RunFinished {
        /// The result of the run.
        result: Arc<RunResult>,
    },
}

/// The fold from records to events: the same for a live run and for a log that is read again.
///
/// Deltas are not in the log, and the driver emits `RunFinished`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Events {
    who: Arc<Identity>,
    run: RunNo,
    turn: TurnNo,
    calls: Vec<KnownCall>,
    queued: BTreeMap<u64, Arc<Entry>>,
}

/// A call of the open turn, with the data that its events need.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct KnownCall {
    id: CallId,
    name: ToolName,
    args: Arc<str>,
    title: Option<Arc<str>>,
    launched_ms: Option<u64>,
    /// True once its start was emitted.
    has_begun: bool,
}

impl EventKind {
    /// The event for a text of a block; `None` if it is empty, or only its issuer understands it.
    pub fn delta(block: u32, kind: &BlockKind, text: &str) -> Option<Self> {
        let text = Some(text.to_owned()).filter(|text| !text.is_empty())?;
        match kind {
            BlockKind::Text => Some(Self::TextDelta { block, text }),
            BlockKind::Thinking => Some(Self::ThinkingDelta { block, text }),
            BlockKind::Call { .. } => Some(Self::ArgsDelta { block, text }),
            _ => None,
        }
    }

    /// An attempt at a reply ended before the reply was whole.
    pub fn cut_off(attempt: u32, usage: Usage) -> Self {
        let cause = adjutant_llm::Error::new(
            ErrorKind::Cancelled,
            "the attempt ended before the reply was whole",
        );
        Self::ReplyRetracted {
            attempt,
            cause,
            usage,
        }
    }
}

impl Events {
    /// The events of this agent.
    pub fn new(who: Arc<Identity>) -> Self {
        Self {
            who,
            run: RunNo(0),
            turn: TurnNo(0),
            calls: Vec::new(),
            queued: BTreeMap::new(),
        }
    }

    /// The events that a record shows, in order.
    pub fn fold(&mut self, stamped: &Stamped, mut show: impl FnMut(Event)) {
        self.note(&stamped.record, stamped.at_ms);
        let (seq, at_ms, run, turn) = (stamped.seq, stamped.at_ms, self.run, self.turn);
        let who = Arc::clone(&self.who);
        self.kinds(&stamped.record, at_ms, |kind| {
            show(Event {
                seq,
                at_ms,
                run,
                turn,
                who: Arc::clone(&who),
                kind,
            });
        });
    }

    /// Folds a record without emitting events.
    pub fn learn(&mut self, stamped: &Stamped) {
        self.note(&stamped.record, stamped.at_ms);
        match &stamped.record {
            Record::Launched { calls } => calls.iter().for_each(|call| self.begin(call)),
            Record::Returned { call, .. }
            | Record::Admitted {
                call,
                admission: Admission::Refuse { .. } | Admission::Supplied { .. },
            } => {
                self.begin(call);
            }
            Record::Withdrawn { item } => {
                self.queued.remove(item);
            }
            Record::Placed { items, .. } => items.iter().for_each(|item| {
                self.queued.remove(item);
            }),
            _ => {}
        }
    }

    fn begin(&mut self, call: &CallId) {
        if let Some(call) = self.call(*call) {
            call.has_begun = true;
        }
    }

    /// The same fold for an agent that may have another name by now.
    pub fn by(self, who: Arc<Identity>) -> Self {
        Self { who, ..self }
    }

    /// Learns what later events need to know.
    fn note(&mut self, record: &Record, at_ms: u64) {
        match record {
            Record::Began { run, .. } => (self.run, self.turn) = (*run, TurnNo(0)),
            Record::Opened { turn, last: _ } => {
                self.turn = *turn;
                self.calls.clear();
            }
            Record::Replied { reply, .. } => {
                self.calls.clear();
                self.calls.extend(reply.calls().map(|call| KnownCall {
                    id: call.id,
                    name: call.name.clone(),
                    args: Arc::clone(&call.args),
                    title: None,
                    launched_ms: None,
                    has_begun: false,
                }));
                self.calls.sort_by_key(|call| call.id);
            }
            Record::Admitted {
                call,
                admission: Admission::Allow { args, title, .. },
            } => {
                if let Some(known) = self.call(*call) {
                    known.args = Arc::clone(args);
                    known.title.clone_from(title);
                }
            }
            Record::Queued { item, content, .. } => {
                self.queued.insert(*item, Arc::new(content.clone()));
            }
            Record::Launched { calls } => {
                for id in calls {
                    if let Some(call) = self.call(*id) {
                        call.launched_ms = Some(at_ms);
                    }
                }
            }
            _ => {}
        }
    }

    fn kinds(&mut self, record: &Record, at_ms: u64, mut show: impl FnMut(EventKind)) {
        let added = |entry: &Entry| EventKind::EntryAdded {
            content: Arc::new(entry.clone()),
        };
        match record {
            Record::Began { prompts, .. } => {
                show(EventKind::RunStarted);
                prompts.iter().map(added).for_each(show);
            }
            Record::Appended { entries } => entries.iter().map(added).for_each(show),
            Record::Queued { .. } | Record::Withdrawn { .. } | Record::Placed { .. } => {
                self.queue(record, show)
            }
            Record::Opened { last, .. } => {
                last.iter().for_each(|limit| {
                    show(EventKind::LimitReached {
                        limit: limit.clone(),
                    })
                });
                show(EventKind::TurnStarted);
            }
            Record::Prepared { edits, reports, .. } => {
                append_events(edits, added).for_each(&mut show);
                reports.iter().map(report_event).for_each(show);
            }
            Record::Overflowed { .. } => show(EventKind::Overflowed),
            Record::Refused { reason, .. } => show(EventKind::MediaRefused {
                reason: Arc::clone(reason),
            }),
            Record::Replied { reply, cost, .. } => {
                show(EventKind::ReplyFinished {
                    reply: Arc::clone(reply),
                    cost: *cost,
                });
            }
            Record::Launched { calls } => calls
                .iter()
                .filter_map(|call| self.start(*call))
                .for_each(show),
            Record::Admitted {
                admission: Admission::Ask { pause, .. },
                ..
            }
            | Record::Paused { pause } => {
                show(EventKind::Paused {
                    pause: Arc::clone(pause),
                });
            }
            Record::Returned { call, result, .. }
            | Record::Admitted {
                call,
                admission: Admission::Refuse { result } | Admission::Supplied { result, .. },
            } => {
                self.start(*call).into_iter().for_each(&mut show);
                self.finish(*call, result, at_ms).into_iter().for_each(show);
            }
            Record::Answered { pause, answer } => show(answer_event(pause, answer)),
            Record::Resumed { answers, .. } => {
                show(EventKind::RunResumed);
                answers
                    .iter()
                    .map(|it| answer_event(&it.pause, &it.answer))
                    .for_each(show);
            }
            Record::ChildOpened { call, who, .. } => {
                show(EventKind::ChildOpened {
                    call: *call,
                    child: Arc::clone(who),
                });
            }
            Record::ChildEnded {
                call,
                thread,
                outcome,
                usage,
                ..
            } => {
                let outcome = Box::new(outcome.clone());
                show(EventKind::ChildEnded {
                    call: *call,
                    thread: thread.clone(),
                    outcome,
                    usage: *usage,
                });
            }
            Record::Denied {
                point,
                reason,
                call,
            } => {
                show(EventKind::Denied {
                    point: Arc::clone(point),
                    reason: Arc::clone(reason),
                    call: *call,
                });
            }
            Record::OutputChecked {
                verdict: OutputVerdict::Refused { reason, left },
                ..
            } => {
                show(EventKind::OutputRefused {
                    reason: Arc::clone(reason),
                    left: *left,
                });
            }
            Record::Settled { change, .. } => {
                append_events(&change.edits, added).for_each(&mut show);
                show(EventKind::TurnFinished);
            }
            Record::Exhausted { limit } => show(EventKind::LimitReached {
                limit: limit.clone(),
            }),
            Record::CancelAsked { by } => show(EventKind::CancelAsked { by: *by }),
            Record::Overruled { outcome, by, .. } => {
                show(EventKind::Overruled {
                    outcome: Box::new(outcome.clone()),
                    by: Arc::clone(by),
                });
            }
            Record::App {
                kind,
                version,
                data,
            } => {
                show(EventKind::App {
                    kind: Arc::clone(kind),
                    version: *version,
                    data: Box::new(data.clone()),
                });
            }
            Record::Seeded { .. }
            | Record::OutputChecked { .. }
            | Record::Configured { .. }
            | Record::Declared { .. }
            | Record::Heard { .. }
            | Record::Billed { .. }
            | Record::Heeded { .. }
            | Record::Admitted { .. }
            | Record::Retracted { .. }
            | Record::Begun { .. }
            | Record::Noted { .. }
            | Record::Spent { .. }
            | Record::Unanswered { .. }
            | Record::Suspended { .. }
            | Record::Broke { .. }
            | Record::Ended { .. } => {}
        }
    }

    fn queue(&mut self, record: &Record, mut show: impl FnMut(EventKind)) {
        match record {
            Record::Queued { item, lane, .. } => {
                let content = self.queued.get(item).cloned();
                content.into_iter().for_each(|content| {
                    show(EventKind::MessageQueued {
                        item: *item,
                        lane: *lane,
                        content,
                    });
                });
            }
            Record::Withdrawn { item } => {
                self.queued.remove(item);
                show(EventKind::MessageWithdrawn { item: *item });
            }
            Record::Placed { items, revised } => {
                for item in items {
                    show(EventKind::MessagePlaced { item: *item });
                    let revised = revised.iter().find(|revised| revised.item == *item);
                    let queued = self.queued.remove(item);
                    let content = revised
                        .map(|revised| Arc::new(revised.content.clone()))
                        .or(queued);
                    content
                        .into_iter()
                        .for_each(|content| show(EventKind::EntryAdded { content }));
                }
            }
            _ => {}
        }
    }

    /// A call of the open turn; they stand in the order of their ids.
    fn call(&mut self, id: CallId) -> Option<&mut KnownCall> {
        let at = self.calls.binary_search_by_key(&id, |call| call.id).ok()?;
        self.calls.get_mut(at)
    }

    fn start(&mut self, id: CallId) -> Option<EventKind> {
        let call = self.call(id)?;
        let is_first = !std::mem::replace(&mut call.has_begun, true);
        is_first.then(|| EventKind::ToolStarted {
            call: id,
            name: call.name.clone(),
            title: call.title.clone(),
            args: Arc::clone(&call.args),
        })
    }

    fn finish(&mut self, id: CallId, result: &Arc<CallResult>, at_ms: u64) -> Option<EventKind> {
        let call = self.call(id)?;
        let duration =
            Duration::from_millis(at_ms.saturating_sub(call.launched_ms.unwrap_or(at_ms)));
        Some(EventKind::ToolFinished {
            call: id,
            name: call.name.clone(),
            result: Arc::clone(result),
            duration,
        })
    }
}

fn append_events<'a>(
    edits: &'a [Edit],
    added: impl Fn(&Entry) -> EventKind + 'a,
) -> impl Iterator<Item = EventKind> + 'a {
    edits.iter().filter_map(move |edit| match edit {
        Edit::Append { entry } => Some(added(entry)),
        _ => None,
    })
}

fn report_event(report: &EffectReport) -> EventKind {
    EventKind::Report {
        by: Arc::clone(&report.by),
        data: Box::new(report.data.clone()),
    }
}

fn answer_event(pause: &PauseId, answer: &Answer) -> EventKind {
    EventKind::Answered {
        pause: pause.clone(),
        answer: Box::new(answer.clone()),
    }
}

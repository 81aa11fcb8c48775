//! The content of the log: closed facts and decisions. The rules by which a run decides may change; the meaning of a
//! record may not.

mod admission;
mod config;
mod heard;
mod make;
mod output;
mod parts;

use std::sync::Arc;

use adjutant_llm::{
    CallId, CallResult, Edit, Entry, ModelId, NanoUsd, Overflow, Reply, ThreadId, ToolName, Usage,
};
use adjutant_tool::{Answer, Identity};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use admission::Admission;
pub use config::{Config, Difference};
pub use heard::AcknowledgedPart;
pub use output::{OutputVerdict, OutputWish};
pub use parts::{EffectReport, Lane, Memo, Prefix, Revised, RunChange, Terms};

use crate::{
    activity::ActivityId,
    number::{PostNo, RunNo, TurnNo},
    options::Limits,
    outcome::{CancelBy, Failure, Limit, Outcome},
    pause::{Answered, Pause, PauseId},
};

/// A fact or a decision.
///
/// Invariant: a record means the same in every version of the program; new meanings are new records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Record {
    /// A conversation that existed before the log.
    Seeded {
        /// Its entries, oldest first.
        entries: Vec<Entry>,
    },
    /// Entries joined the conversation without a request.
    Appended {
        /// The entries, in order.
        entries: Vec<Entry>,
    },
    /// A run began.
    Began {
        /// The run.
        run: RunNo,
        /// The entries of its prompt; empty if it continues with the existing conversation.
        prompts: Vec<Entry>,
        /// Its limits.
        limits: Limits,
        /// Its other settings, if they differ from the previous run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        terms: Option<Box<Terms>>,
    },
    /// A message waits to be placed.
    Queued {
        /// Its number in the thread.
        item: u64,
        /// The queue.
        lane: Lane,
        /// The message.
        content: Entry,
    },
    /// A queued message was taken back.
    Withdrawn {
        /// Its number.
        item: u64,
    },
    /// Queued messages joined the conversation.
    Placed {
        /// Their numbers, in order.
        items: Vec<u64>,
        /// The entries that a hook revised, in order of their arrival.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        revised: Vec<Revised>,
    },
    /// A turn began.
    Opened {
        /// The turn.
        turn: TurnNo,
        /// The limit that was reached, if this is the last turn and may call no tools.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<Limit>,
    },
    /// The parts that requests are made with, from the next one on: the fingerprint that a later program is held
    /// against.
    Configured {
        /// The fingerprint.
        config: Arc<Config>,
    },
    /// The beginning of requests from now on, for models that refuse another one in the same conversation. Changes are
    /// appended to the conversation: see [`ToolChange`](adjutant_llm::ToolChange) for tools.
    Declared {
        /// The beginning.
        prefix: Arc<Prefix>,
    },
    /// A turn was prepared.
    Prepared {
        /// The turn.
        turn: TurnNo,
        /// The changes of the view before the request.
        edits: Vec<Edit>,
        /// The changes of this turn's request alone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        once: Vec<Edit>,
        /// The model for the next request.
        model: ModelId,
        /// The tools that are neither declared nor run in this turn.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hidden: Vec<ToolName>,
        /// The memos that effects keep.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        memos: Vec<Memo>,
        /// The reports of effects to observers.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        reports: Vec<EffectReport>,
        /// The usage of models by effects.
        #[serde(default, skip_serializing_if = "is_nothing")]
        spent: Usage,
        /// The cost of that, if the model has a price.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<NanoUsd>,
        /// The limit that an effect found reached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop: Option<Limit>,
    },
    /// The provider reported that the request does not fit; the turn is prepared again.
    Overflowed {
        /// The turn.
        turn: TurnNo,
        /// The amount, if the provider reported it.
        overflow: Overflow,
    },
    /// The provider refused media of the request; the turn is prepared again without them.
    Refused {
        /// The turn.
        turn: TurnNo,
        /// The changes of the view: a text in place of the media.
        edits: Vec<Edit>,
        /// The provider's message.
        reason: Arc<str>,
    },
    /// A part of a reply was acknowledged while it was on its way: it counts if the reply itself never comes.
    Heard {
        /// The turn.
        turn: TurnNo,
        /// The attempt.
        attempt: u32,
        /// The model that speaks.
        model: ModelId,
        /// The new parts of the reply since the last time, in order.
        parts: Vec<AcknowledgedPart>,
    },
    /// An attempt at a reply was void.
    Retracted {
        /// The turn.
        turn: TurnNo,
        /// The attempt.
        attempt: u32,
        /// The usage of the attempt.
        usage: Usage,
        /// The cost of the attempt, if the model has a price: it was billed all the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<NanoUsd>,
    },
    /// A reply came, whole or interrupted.
    Replied {
        /// The turn.
        turn: TurnNo,
        /// The reply, as it counts.
        reply: Arc<Reply>,
        /// The cost of the reply, if the model has a price.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<NanoUsd>,
        /// The model's original reply, if a hook revised it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        original: Option<Arc<Reply>>,
        /// The failure that a hook answered in the model's place.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        recovered: Option<adjutant_llm::Error>,
    },
    /// It was decided what happens to a call.
    Admitted {
        /// The call.
        call: CallId,
        /// The decision about it.
        admission: Admission,
    },
    /// Calls are about to run; durable before they do.
    Launched {
        /// The calls, in order.
        calls: Vec<CallId>,
    },
    /// A call has its result; whatever it waited for is closed.
    Returned {
        /// The call.
        call: CallId,
        /// Its result, whole.
        result: Arc<CallResult>,
        /// The part of it for the model, if that is less.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<Arc<CallResult>>,
    },
    /// A step of a resumable call began.
    Begun {
        /// The call.
        call: CallId,
        /// The step.
        key: Arc<str>,
    },
    /// A step of a resumable call ended.
    Noted {
        /// The call.
        call: CallId,
        /// The step.
        key: Arc<str>,
        /// The value that it came to.
        value: Value,
    },
    /// A call spent something on models, here or in another program.
    Spent {
        /// The call.
        call: CallId,
        /// The usage.
        usage: Usage,
        /// The cost, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<NanoUsd>,
        /// The number of requests that it made elsewhere.
        #[serde(default, skip_serializing_if = "is_zero")]
        requests: u64,
        /// The number of calls that it ran elsewhere.
        #[serde(default, skip_serializing_if = "is_zero")]
        tool_calls: u64,
    },
    /// A call, or the run itself, asks the outside a question.
    Paused {
        /// The pause, with its question.
        pause: Arc<Pause>,
    },
    /// No one here can answer a pause: the run parks as soon as nothing else can be done.
    Unanswered {
        /// The pause.
        pause: PauseId,
    },
    /// A resumable call was suspended because it waits; it is entered again with the answers.
    Suspended {
        /// The call.
        call: CallId,
        /// The pauses that it waits for, its children's included.
        pauses: Vec<Arc<Pause>>,
    },
    /// A pause was answered in the process. An answer to a pause that is no longer open has no effect.
    Answered {
        /// The pause.
        pause: PauseId,
        /// The answer.
        answer: Answer,
    },
    /// A parked run continues with these answers.
    Resumed {
        /// The answers, in the order in which they were given.
        answers: Vec<Answered>,
        /// The limits from here on, if they changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<Limits>,
        /// The other changed settings from here on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        terms: Option<Box<Terms>>,
    },
    /// A call opened a child agent.
    ChildOpened {
        /// The call.
        call: CallId,
        /// The key from the call.
        key: Arc<str>,
        /// The child's thread.
        thread: ThreadId,
        /// The identity of the child.
        who: Arc<Identity>,
    },
    /// A run of a call's agent ended.
    ChildEnded {
        /// The call.
        call: CallId,
        /// The child's thread.
        thread: ThreadId,
        /// The outcome of the run.
        outcome: Outcome,
        /// The usage of the child and everything under it.
        usage: Usage,
        /// Its cost, where prices are known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<NanoUsd>,
        /// The number of requests that they made.
        #[serde(default)]
        requests: u64,
        /// The number of calls that they ran.
        #[serde(default)]
        tool_calls: u64,
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
    /// The answer of a turn was checked against the requested output of the run.
    OutputChecked {
        /// The turn.
        turn: TurnNo,
        /// The judgement.
        verdict: OutputVerdict,
    },
    /// A turn is over.
    Settled {
        /// The turn.
        turn: TurnNo,
        /// True if the run should end here.
        stop: bool,
        /// The changes from the next turn on.
        #[serde(default, skip_serializing_if = "RunChange::is_none")]
        change: RunChange,
    },
    /// A limit was reached outside the loop's own counting.
    Exhausted {
        /// The limit.
        limit: Limit,
    },
    /// An activity failed in a way that ends the run.
    Broke {
        /// The activity.
        act: ActivityId,
        /// The failure.
        failure: Failure,
    },
    /// A caller requested to cancel the run.
    CancelAsked {
        /// The source of the request.
        by: CancelBy,
    },
    /// The run ended.
    Ended {
        /// The run.
        run: RunNo,
        /// The outcome of the run.
        outcome: Outcome,
    },
    /// A helper spent something on models on behalf of the newest run, also after its end.
    Billed {
        /// The helper.
        by: Arc<str>,
        /// The usage.
        usage: Usage,
        /// The cost of that, if the model has a price.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<NanoUsd>,
    },
    /// The posts of other processes up to this one were consumed; the same batch contains their result.
    ///
    /// In the thread of a subagent: that post was forwarded to it, and need not be forwarded again.
    Heeded {
        /// The newest of them.
        post: PostNo,
    },
    /// A middleware replaced the outcome of the run.
    Overruled {
        /// The run.
        run: RunNo,
        /// The outcome that counts for the run.
        outcome: Outcome,
        /// The name of the middleware.
        by: Arc<str>,
        /// The reply that later requests show in the place of the answer, if it was rejected; the history keeps both.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instead: Option<Arc<Reply>>,
    },
    /// A record of an upper crate or of the application, which the run does not interpret.
    App {
        /// The kind of the thing.
        kind: Arc<str>,
        /// The version of its content.
        version: u32,
        /// Its content.
        data: Value,
    },
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn is_nothing(usage: &Usage) -> bool {
    *usage == Usage::default()
}

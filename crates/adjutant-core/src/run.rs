//! The fold of one conversation's records. Pure: no clock, no chance, no I/O, no hooks.

mod ahead;
mod calls;
mod decide;
mod effect_input;
mod evolve;
mod explain;
mod frozen;
mod next;
mod output;
mod pauses;
mod request;
mod slots;
mod spent;
mod texts;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use adjutant_llm::{
    Block, Call, CallId, CallResult, Edit, Entry, EntryId, ModelId, NanoUsd, OpenTurn, Overflow,
    Reply, Terminate, ThreadId, ToolDecl, ToolName, Transcript, Usage, View,
};
use adjutant_tool::{Answer, Identity, Replay};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    activity::Activity,
    number::{PostNo, RunNo, Seq, TurnNo},
    options::Limits,
    outcome::{CancelBy, Failure, Limit, Outcome},
    pause::Pause,
    record::{AcknowledgedPart, Config, Lane, Prefix, Record, RunChange, Terms},
    report::{CallReport, RunResult},
};

pub use ahead::{Closed, NextStep, Tail, WaitView};
pub use calls::{CallsView, KnownState, KnownStep, OpenCall};
pub use effect_input::EffectInput;
pub use explain::{CallFate, ResumeAction, ResumeItem};
pub use frozen::Frozen;
pub use next::{Few, Next};
pub use request::RequestView;
use slots::Slots;
pub use spent::Tally;
pub use spent::{Ledger, Spend};

/// The fold of one conversation's records: history, view, and the state of the run.
///
/// `apply` **evolves** the state, and its meaning never changes. `next` **decides** and may change, because its
/// decisions are recorded. Cloning is cheap while the run's open turn is small.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    thread: Option<ThreadId>,
    history: Transcript,
    view: View,
    seq: Seq,
    runs: u64,
    turns: u64,
    /// The messages that are queued and not placed, by number.
    queue: BTreeMap<u64, (Lane, Entry)>,
    items: u64,
    memos: BTreeMap<Arc<str>, Value>,
    measured: Option<Measured>,
    /// The parts that requests are made with, as of the newest turn.
    config: Option<Arc<Config>>,
    /// The beginning of requests to models that check it.
    #[serde(skip_serializing_if = "Option::is_none")]
    prefix: Option<Arc<Prefix>>,
    /// The tools that messages of the conversation added, in order.
    added: Arc<[ToolDecl]>,
    /// The settings of the latest run; the system prompt is the latest of all runs.
    terms: Option<Box<Terms>>,
    /// The last consumed post.
    posts: PostNo,
    /// The entries before this one have been seen by the effects of an earlier turn.
    seen: EntryId,
    /// The usage of the runs before the newest one: the agent itself, and with everything under it.
    past: (Usage, Usage),
    current: Option<Current>,
}

/// A provider's count for a request, with the estimate that was made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Measured {
    tokens: u64,
    estimate: u64,
}

/// A record that cannot follow the folded ones: the log was not written by a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("record {seq} cannot follow: {why}")]
pub struct Illegal {
    /// The record.
    pub seq: Seq,
    /// The reason why it cannot follow.
    pub why: &'static str,
}

/// The newest run of the thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Current {
    run: RunNo,
    limits: Limits,
    first_entry: u64,
    began_ms: u64,
    ended_ms: u64,
    /// The time that it has been performed, without the times between a pause and its answers.
    active_ms: u64,
    /// The time when its newest record was made.
    heard_ms: u64,
    turns: u32,
    /// The number of calls that were allowed to run.
    allowed: u64,
    /// The number of requests that its children made.
    child_requests: u64,
    /// The number of calls that its children ran.
    child_calls: u64,
    usage: Usage,
    /// The usage of calls, children and effects.
    spent: Usage,
    cost: Option<NanoUsd>,
    spent_cost: Option<NanoUsd>,
    calls: Vec<CallReport>,
    turn: Option<Working>,
    pauses: Vec<RunPause>,
    approved: BTreeSet<ToolName>,
    /// The pauses that were approved for the rest of the run, with the arguments that were approved.
    #[serde(default)]
    approved_calls: Vec<Arc<Pause>>,
    change: RunChange,
    exhausted: Option<Limit>,
    /// The limit without its own number that was extended last, and the number of turns at that time.
    extended: Option<(Limit, u32)>,
    /// True if an approval to continue beyond a limit was denied.
    declined: bool,
    cancel: Option<CancelBy>,
    failure: Option<Failure>,
    outcome: Option<Outcome>,
    /// The number of times that the provider refused media of its requests.
    #[serde(default, skip_serializing_if = "is_zero")]
    refusals: u32,
    /// The requested answer, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output: Option<Box<output::Wanted>>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A pause of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct RunPause {
    pause: Arc<Pause>,
    answer: Option<Answer>,
    /// True if no one here could answer.
    waiting: bool,
}

/// The newest turn of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Working {
    no: TurnNo,
    /// The limit after which this turn is the last.
    last: Option<Limit>,
    attempt: u32,
    prepared: bool,
    /// The acknowledged parts of the attempt at hand.
    heard: Vec<AcknowledgedPart>,
    /// The model that wrote the acknowledged parts.
    speaker: Option<ModelId>,
    /// The amount by which the request did not fit, if the provider reported an overflow.
    overflowed: Option<Overflow>,
    hidden: Vec<ToolName>,
    /// The changes of this turn's request alone.
    once: Vec<Edit>,
    reply: Option<Arc<Reply>>,
    open: Option<OpenTurn>,
    /// One for each call of the reply, in order.
    slots: Slots,
    terminates: Terminate,
    settled: Option<bool>,
    /// True if messages were placed since the turn was settled.
    placed: bool,
    /// True if another model was chosen since the turn was prepared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    moved: bool,
}

/// The facts that are known about a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct CallSlot {
    call: CallId,
    /// The place of the pause that its admission waits for.
    asked: Option<u32>,
    admitted: Option<Admitted>,
    sequential: bool,
    launched_ms: Option<u64>,
    /// The places of the pauses that its body waits for.
    waits: Vec<u32>,
    shown: Option<Arc<CallResult>>,
    done: bool,
    /// In the order of the body's requests.
    steps: Vec<CallStep>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Admitted {
    args: Arc<str>,
    changed: bool,
    replay: Replay,
}

/// A request of a call's body under a key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct CallStep {
    key: Arc<str>,
    state: StepState,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum StepState {
    Begun,
    Noted(Value),
    /// The place of a pause.
    Asked(u32),
}

impl Run {
    /// The complete conversation, oldest first.
    pub fn history(&self) -> &Transcript {
        &self.history
    }

    /// Returns the view that the next request shows.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The newest record that was folded.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// True if a run has begun and not ended.
    pub fn is_open(&self) -> bool {
        self.current
            .as_ref()
            .is_some_and(|current| current.outcome.is_none())
    }

    /// The newest run's number.
    pub fn run(&self) -> RunNo {
        RunNo(self.runs)
    }

    /// The newest turn's number.
    pub fn turn(&self) -> TurnNo {
        TurnNo(self.turns)
    }

    /// Returns the outcome of the newest run.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.current.as_ref()?.outcome.as_ref()
    }

    /// The newest reply of the newest run.
    pub fn reply(&self) -> Option<&Arc<Reply>> {
        self.working()?.reply.as_ref()
    }

    /// Returns the result of the newest run, once it has ended; or its result so far, if it waits for the outside.
    pub fn result(&self, agent: &Arc<Identity>) -> Option<RunResult> {
        let current = self.current.as_ref()?;
        let waiting = || {
            let pauses: Vec<_> = self.pauses().cloned().collect();
            (!pauses.is_empty()).then_some(Outcome::Paused { pauses })
        };
        let first = usize::try_from(current.first_entry).unwrap_or(usize::MAX);
        Some(RunResult {
            run: current.run,
            agent: Arc::clone(agent),
            outcome: current.outcome.clone().or_else(waiting)?,
            reply: match &current.outcome {
                // A middleware may have put another answer in its place.
                Some(Outcome::Finished { reply, .. }) => Some(Arc::clone(reply)),
                _ => self.last_reply(first),
            },
            entries: self
                .history
                .iter_from(first)
                .map(|stored| stored.entry.clone())
                .collect(),
            calls: current.calls.clone(),
            usage: current.usage,
            total_usage: current.usage + current.spent,
            cost: current.cost,
            total_cost: NanoUsd::sum_known(current.cost, current.spent_cost),
            turns: current.turns,
            duration: Duration::from_millis(current.ended_ms.saturating_sub(current.began_ms)),
            output: current.answer(),
        })
    }

    /// The limits of the newest run.
    pub fn limits(&self) -> Option<&Limits> {
        self.current.as_ref().map(|current| &current.limits)
    }

    /// The settings of the latest run: from its start, or changed when it was resumed.
    pub fn terms(&self) -> Option<&Terms> {
        self.terms.as_deref()
    }

    /// Returns the memos that effects keep, by key.
    pub fn memos(&self) -> &BTreeMap<Arc<str>, Value> {
        &self.memos
    }

    /// Returns the number of tokens in the next request, system prompt and tools included.
    ///
    /// Computed from the provider's last count and estimates of later changes. `overhead` is the estimate for system
    /// prompt and tools, used until the provider has counted.
    pub fn context_tokens(&self, overhead: u64) -> u64 {
        Measured::scale(self.measured, self.view.items().tokens(), overhead)
    }

    /// Returns the usage of all runs of the thread: the agent itself, and with everything under it.
    pub fn usage(&self) -> (Usage, Usage) {
        let (own, total) = self.past;
        self.current.as_ref().map_or((own, total), |it| {
            (own + it.usage, total + it.usage + it.spent)
        })
    }

    /// Ends the newest run without its log: for the report of a run whose log failed.
    pub fn give_up(&mut self, outcome: Outcome) {
        if let Some(current) = &mut self.current {
            current.outcome.get_or_insert(outcome);
        }
    }

    /// Returns the parts that requests are made with, as of the newest turn.
    pub fn config(&self) -> Option<&Arc<Config>> {
        self.config.as_ref()
    }

    /// Returns the beginning of requests to models that refuse another one; `None` before the first such request.
    pub fn prefix(&self) -> Option<&Arc<Prefix>> {
        self.prefix.as_ref()
    }

    /// Returns the tools that messages of the conversation added, in order.
    pub fn extra_tools(&self) -> &Arc<[ToolDecl]> {
        &self.added
    }

    /// The last consumed post of another process.
    pub fn last_consumed(&self) -> PostNo {
        self.posts
    }

    /// Returns the acknowledged parts of the reply that is on its way, or was when the program before this one ended.
    pub fn partial_reply(&self) -> &[AcknowledgedPart] {
        self.working()
            .map(|working| &working.heard[..])
            .unwrap_or_default()
    }

    /// Returns the record that must be durable before `acts` begin, if there is one.
    pub fn intent(&self, acts: &[Activity]) -> Option<Record> {
        let fresh = |act: &Activity| match act {
            Activity::Call {
                call, again: false, ..
            } => Some(*call),
            _ => None,
        };
        let calls: Vec<CallId> = acts.iter().filter_map(fresh).collect();
        (!calls.is_empty()).then_some(Record::Launched { calls })
    }

    /// Returns the unanswered pauses of the run.
    fn open_pauses(&self) -> impl Iterator<Item = &RunPause> {
        let asked = self
            .current
            .iter()
            .filter(|current| current.outcome.is_none())
            .flat_map(|it| &it.pauses);
        asked.filter(|asked| asked.answer.is_none())
    }

    fn working(&self) -> Option<&Working> {
        self.current.as_ref()?.turn.as_ref()
    }

    fn last_reply(&self, first: usize) -> Option<Arc<Reply>> {
        let newest = self.history.len().checked_sub(first)?;
        let replies =
            self.history
                .iter()
                .rev()
                .take(newest)
                .filter_map(|stored| match &stored.entry {
                    Entry::Turn(turn) => Some(Arc::clone(turn.reply())),
                    _ => None,
                });
        replies.into_iter().next()
    }
}

impl Working {
    fn slot(&self, call: CallId) -> Option<&CallSlot> {
        self.slots.get(call)
    }

    /// A call of the reply; its id names the block, unless the reply was changed since.
    fn call(&self, id: CallId) -> Option<&Call> {
        let reply = self.reply.as_ref()?;
        match reply.blocks.get(id.block as usize).map(Arc::as_ref) {
            Some(Block::Call(call)) if call.id == id => Some(call),
            _ => reply.calls().find(|call| call.id == id),
        }
    }
}

impl CallSlot {
    fn new(call: CallId) -> Self {
        Self {
            call,
            asked: None,
            admitted: None,
            sequential: false,
            launched_ms: None,
            waits: Vec::new(),
            shown: None,
            done: false,
            steps: Vec::new(),
        }
    }
}

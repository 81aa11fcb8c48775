//! The fold of one conversation's records. Pure: no clock, no chance, no I/O, no hooks.

mod decide;
mod evolve;
mod texts;

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use adjutant_llm::{Call, CallId, NanoUsd, OpenTurn, Reply, Transcript, Usage, View};
use adjutant_tool::{Identity, Replay};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Act, CallReport, CancelBy, Failure, Limits, Outcome, Record, RunNo, RunResult, Seq, TurnNo};

/// The fold of one conversation's records: history, view, and where the run stands.
///
/// `apply` **evolves** and means the same for ever; `next` **decides** and may change, because what it decides is
/// recorded. Cloning is cheap as long as the run's open turn is small.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    history: Transcript,
    view: View,
    seq: Seq,
    runs: u64,
    turns: u64,
    current: Option<Current>,
}

/// A record that cannot follow what was folded before: the log was not written by a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Illegal {
    /// The record.
    pub seq: Seq,
    /// Why it cannot follow.
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
    turns: u32,
    usage: Usage,
    spent: Usage,
    cost: Option<NanoUsd>,
    calls: Vec<CallReport>,
    turn: Option<Working>,
    cancel: Option<CancelBy>,
    failure: Option<Failure>,
    outcome: Option<Outcome>,
}

/// The newest turn of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Working {
    no: TurnNo,
    attempt: u32,
    prepared: bool,
    reply: Option<Arc<Reply>>,
    open: Option<OpenTurn>,
    /// One for each call of the reply, in order.
    slots: Vec<Slot>,
    /// Whether the results say that the run should end.
    terminated: bool,
    settled: Option<bool>,
}

/// What is known of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Slot {
    call: CallId,
    admitted: Option<Admitted>,
    launched_ms: Option<u64>,
    done: bool,
    steps: BTreeMap<Arc<str>, Step>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Admitted {
    args: Arc<str>,
    changed: bool,
    replay: Replay,
    sequential: bool,
}

/// What is known of a step of a resumable call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Step {
    Begun,
    Noted(Value),
}

impl Run {
    /// The fold of no records.
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything that was ever said, oldest first.
    pub fn history(&self) -> &Transcript {
        &self.history
    }

    /// What the next request shows.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The newest record that was folded.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// Whether a run has begun and not ended.
    pub fn is_open(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.outcome.is_none())
    }

    /// The newest run's number.
    pub fn run(&self) -> RunNo {
        RunNo(self.runs)
    }

    /// The newest turn's number.
    pub fn turn(&self) -> TurnNo {
        TurnNo(self.turns)
    }

    /// The number that the next run gets.
    pub fn next_run(&self) -> RunNo {
        RunNo(self.runs + 1)
    }

    /// How the newest run ended.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.current.as_ref()?.outcome.as_ref()
    }

    /// The newest reply of the newest run.
    pub fn reply(&self) -> Option<&Arc<Reply>> {
        self.working()?.reply.as_ref()
    }

    /// What the newest run came to, once it has ended.
    pub fn result(&self, agent: &Arc<Identity>) -> Option<RunResult> {
        let current = self.current.as_ref()?;
        let first = usize::try_from(current.first_entry).unwrap_or(usize::MAX);
        Some(RunResult {
            run: current.run,
            agent: Arc::clone(agent),
            outcome: current.outcome.clone()?,
            reply: self.last_reply(first),
            entries: self.history.iter_from(first).map(|stored| stored.entry.clone()).collect(),
            calls: current.calls.clone(),
            usage: current.usage,
            total_usage: current.usage + current.spent,
            cost: current.cost,
            turns: current.turns,
            duration: Duration::from_millis(current.ended_ms.saturating_sub(current.began_ms)),
        })
    }

    /// Ends the newest run without its log: for the report of a run whose log gave up.
    pub(crate) fn give_up(&mut self, outcome: Outcome) {
        if let Some(current) = &mut self.current {
            current.outcome.get_or_insert(outcome);
        }
    }

    /// The records that must be durable before `acts` begin.
    pub fn intent(&self, acts: &[Act]) -> Vec<Record> {
        let fresh = |act: &Act| match act {
            Act::Call { call, again: false, .. } => Some(*call),
            _ => None,
        };
        let calls: Vec<CallId> = acts.iter().filter_map(fresh).collect();
        if calls.is_empty() { Vec::new() } else { vec![Record::Launched { calls }] }
    }

    /// A call of the open turn, with the arguments it was admitted with and whether they were changed.
    pub(crate) fn admitted(&self, id: CallId) -> Option<(&Call, &Arc<str>, bool)> {
        let working = self.working()?;
        let admitted = working.slot(id)?.admitted.as_ref()?;
        let call = working.reply.as_ref()?.calls().find(|call| call.id == id)?;
        Some((call, &admitted.args, admitted.changed))
    }

    /// A call of the open turn.
    pub(crate) fn call(&self, id: CallId) -> Option<&Call> {
        self.working()?.reply.as_ref()?.calls().find(|call| call.id == id)
    }

    /// Whether calls of the open turn may run together.
    pub(crate) fn is_parallel(&self) -> bool {
        let current = self.current.as_ref().filter(|current| !current.limits.sequential);
        let slots = current.and_then(|current| Some(&current.turn.as_ref()?.slots));
        let sequential = |slot: &Slot| slot.admitted.as_ref().is_some_and(|admitted| admitted.sequential);
        slots.is_some_and(|slots| slots.len() > 1 && !slots.iter().any(sequential))
    }

    /// What is known of the steps of a call.
    pub(crate) fn steps(&self, id: CallId) -> BTreeMap<Arc<str>, Step> {
        self.working().and_then(|working| working.slot(id)).map(|slot| slot.steps.clone()).unwrap_or_default()
    }

    fn working(&self) -> Option<&Working> {
        self.current.as_ref()?.turn.as_ref()
    }

    fn last_reply(&self, first: usize) -> Option<Arc<Reply>> {
        let newest = self.history.len().checked_sub(first)?;
        let replies = self.history.iter().rev().take(newest).filter_map(|stored| match &stored.entry {
            adjutant_llm::Entry::Turn(turn) => Some(Arc::clone(turn.reply())),
            _ => None,
        });
        replies.into_iter().next()
    }
}

impl Working {
    fn slot(&self, call: CallId) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.call == call)
    }
}

impl Slot {
    fn new(call: CallId) -> Self {
        Self { call, admitted: None, launched_ms: None, done: false, steps: BTreeMap::new() }
    }
}

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {} cannot follow: {}", self.seq, self.why)
    }
}

impl std::error::Error for Illegal {}

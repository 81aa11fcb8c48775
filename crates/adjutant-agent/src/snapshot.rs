//! The view of a session while it runs: a separate fold, created on first use.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use adjutant_core::{Outcome, Pause, Run, Seq, Stamped};
use adjutant_llm::{CallId, Effort, Estimate, ModelId, Reply, ToolName, Transcript, Usage};
use adjutant_tool::Toolset;

use crate::{
    floor::FloorMemo,
    partial_reply::{PartialReply, lock},
    setup::Setup,
};

/// The number of unread records after which the run itself is copied instead.
const MANY_RECENT: usize = 256;
/// The largest number of records that wait within one turn, before they are folded anyway.
const MAX_RECENT: usize = 65_536;

/// The state and the work of an agent at one moment; it does not change when the agent continues.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The complete conversation, up to the last record.
    pub entries: Transcript,
    /// The model.
    pub model: ModelId,
    /// The model's thinking effort.
    pub thinking: Option<Effort>,
    /// The system prompt of the latest drive; before the first one, the agent's, if it is known.
    pub system: Arc<str>,
    /// The tools, in order: those of the latest turn, or the agent's own before the first one.
    pub tools: Vec<ToolName>,
    /// True if a drive is running.
    pub is_running: bool,
    /// The part of an unfinished reply that the model has given so far.
    pub partial: Option<Reply>,
    /// The running calls, in order of their start.
    pub calls: Vec<CallId>,
    /// The usage of the agent itself in all its runs.
    pub usage: Usage,
    /// The usage of the agent and everything under it, in all its runs.
    pub total_usage: Usage,
    /// The fill of the model's context window.
    pub context: ContextUse,
    /// The failure of the newest run, if it failed.
    pub error: Option<Arc<str>>,
    /// The pauses that a run waits for.
    pub pauses: Vec<Arc<Pause>>,
    /// The number of messages that are queued and recorded, and not yet placed.
    pub queued: usize,
}

/// The fill of a context window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextUse {
    /// The number of tokens in the newest request, as its provider counted; an estimate of the next one before that.
    pub used: u64,
    /// The number of tokens that the model takes; 0 if that is not known.
    pub window: u64,
    /// The used share of the window in percent, rounded, at most 100; 0 as long as no provider has counted.
    pub percent: u8,
}

/// The state that a session shares with its observers.
#[derive(Default)]
pub(crate) struct SessionView {
    state: Mutex<State>,
    /// Made with the first request: agents that never run are many.
    partial: OnceLock<Arc<Mutex<PartialReply>>>,
    pub(crate) running: AtomicBool,
}

#[derive(Default)]
struct State {
    /// None before anything was folded: agents that never run are many.
    run: Option<Box<Run>>,
    /// Records after the folded ones.
    recent: Vec<Arc<Stamped>>,
    tools: Option<Toolset>,
    system: Option<Arc<str>>,
}

impl SessionView {
    /// Takes note of records that were committed.
    pub(crate) fn note(&self, batch: &[Arc<Stamped>]) {
        let mut state = self.state();
        state.recent.extend(batch.iter().cloned());
        if state.recent.len() >= MAX_RECENT {
            state.fold();
        }
    }

    /// Copies the state of the run that folds the same records, if many are pending: they need not be folded twice.
    ///
    /// A copy costs something for each entry of the run, so the longer it is, the more records wait for one.
    pub(crate) fn relieve(&self, run: &Run) {
        let mut state = self.state();
        let many = state.recent.len() >= MANY_RECENT.max(run.history().len());
        if many
            && state
                .recent
                .last()
                .is_some_and(|newest| newest.seq == run.seq())
        {
            state.stand(run);
        }
    }

    /// Copies the state of a run that was folded elsewhere.
    pub(crate) fn catch_up(&self, run: &Run) {
        let mut state = self.state();
        if state.newest() != run.seq() {
            state.stand(run);
        }
    }

    /// The tools of a turn.
    pub(crate) fn offer(&self, tools: &Toolset) {
        self.state().tools = Some(tools.clone());
    }

    /// The system prompt of a drive.
    pub(crate) fn instruct(&self, system: &Arc<str>) {
        self.state().system = Some(Arc::clone(system));
    }

    /// Returns the collector of replies, shared by all observers.
    pub(crate) fn reply(&self) -> &Arc<Mutex<PartialReply>> {
        self.partial.get_or_init(Arc::default)
    }

    /// Returns the run as of the committed records.
    pub(crate) fn run(&self) -> Run {
        let mut state = self.state();
        state.fold();
        state.run().clone()
    }

    /// Returns the snapshot for an agent with this setup.
    pub(crate) fn snapshot(&self, setup: &Setup) -> Snapshot {
        let run = self.run();
        let (tools, system) = {
            let state = self.state();
            (state.tools.clone(), state.system.clone())
        };
        // Read after the records, so that a reply never counts twice: a recorded reply is not partial.
        let partial = self.partial.get().and_then(|it| lock(it).so_far());
        let system = system
            .filter(|_| !setup.is_instructed())
            .unwrap_or_else(|| Arc::clone(&setup.system));
        let tools = tools
            .as_ref()
            .filter(|_| !setup.toolboxes.is_empty())
            .unwrap_or(setup.tools.toolset());
        let (usage, total_usage) = run.usage();
        let window = FloorMemo::read(run.memos()).window(setup.model.info());
        Snapshot {
            entries: run.history().clone(),
            model: run
                .request()
                .chosen_model()
                .filter(|_| run.is_open())
                .unwrap_or(&setup.model.info().id)
                .clone(),
            thinking: run
                .request()
                .chosen_thinking()
                .filter(|_| run.is_open())
                .or(setup.options.thinking),
            is_running: self.running.load(Ordering::Acquire),
            partial,
            calls: run.calls().at_work(),
            usage,
            total_usage,
            context: ContextUse::from_run(&run, window.unwrap_or_default(), || {
                Estimate.count(&system).saturating_add(tools.tokens())
            }),
            error: failure(&run),
            pauses: run.pauses().cloned().collect(),
            queued: run.waiting().pending_messages().count(),
            tools: tools
                .iter()
                .map(|tool| tool.spec().name().clone())
                .collect(),
            system,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn run(&mut self) -> &mut Run {
        self.run.get_or_insert_default()
    }

    fn newest(&self) -> Seq {
        let folded = || self.run.as_ref().map_or(Seq(0), |run| run.seq());
        self.recent
            .last()
            .map_or_else(folded, |stamped| stamped.seq)
    }

    fn stand(&mut self, run: &Run) {
        self.recent.clear();
        *self.run() = run.clone();
    }

    fn fold(&mut self) {
        for stamped in std::mem::take(&mut self.recent) {
            // The run itself has folded it, or will fail to; no error is reported here.
            let _ = self.run().apply(&stamped);
        }
    }
}

impl ContextUse {
    fn from_run(run: &Run, window: u64, overhead: impl FnOnce() -> u64) -> Self {
        let Some(used) = run.request().token_count() else {
            return Self {
                used: run.view().items().tokens().saturating_add(overhead()),
                window,
                percent: 0,
            };
        };
        let rounded = |window| (u128::from(used) * 200 + window) / (window * 2);
        let percent = if window == 0 {
            0
        } else {
            rounded(u128::from(window)).min(100)
        };
        Self {
            used,
            window,
            percent: u8::try_from(percent).unwrap_or(100),
        }
    }
}

fn failure(run: &Run) -> Option<Arc<str>> {
    match run.outcome()? {
        Outcome::Failed { failure } => Some(failure.to_string().into()),
        _ => None,
    }
}

impl fmt::Debug for SessionView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seen")
            .field("running", &self.running)
            .finish_non_exhaustive()
    }
}

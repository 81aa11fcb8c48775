//! Runs without a prompt, what joins a conversation without a run, and what an agent decides between two turns.

use std::sync::Arc;

use adjutant_core::{CancelBy, Error, RunChange, RunOptions, RunResult};
use adjutant_llm::{Effort, Entry, Options};
use adjutant_tool::Tools;

use super::Agent;
use crate::{
    begin::Begin,
    hooks::{HookContext, Verdict},
    points::{AfterTurn, NextTurn},
    running::Running,
    session::{Session, Start, append},
    setup::Setup,
};

/// Going on, and beginning elsewhere.
impl Agent {
    /// Runs the agent without a prompt, on what is there.
    ///
    /// After a message of the user, or results, the model answers those. After an answer, the steering that waits is
    /// the prompt, or else a follow-up. Custom entries at the end are passed over.
    ///
    /// # Errors
    /// `Prompt` if nothing was said yet, or the conversation ends with an answer and nothing waits; `Paused` if a run
    /// waits for answers; and like [`run`](Agent::run).
    pub async fn continue_run(&self) -> Result<RunResult, Error> {
        self.continue_stream()?.finish().await
    }

    /// Runs the agent without a prompt, as a stream of events.
    ///
    /// # Errors
    /// `Busy` if the session is running. The other errors of [`continue_run`](Agent::continue_run) fail the stream:
    /// the log is read first.
    pub fn continue_stream(&self) -> Result<Running, Error> {
        self.continue_with(RunOptions::new())
    }

    /// Runs the agent without a prompt, as a stream of events, with options of this run.
    ///
    /// # Errors
    /// Like [`continue_stream`](Agent::continue_stream).
    pub fn continue_with(&self, options: RunOptions) -> Result<Running, Error> {
        self.begin(Vec::new(), options)
    }

    /// Adds entries to the conversation; no model is asked.
    ///
    /// Cancel: the entries are in the log or not.
    ///
    /// # Errors
    /// `Busy` if the session is running, `Paused` if a run waits for answers, `Prompt` if one is a summary, `Journal` if
    /// the log could not be used.
    pub async fn append(&self, entries: Vec<Entry>) -> Result<(), Error> {
        if entries.iter().any(|entry| matches!(entry, Entry::Summary(_))) {
            return Err(Error::prompt("a summary belongs to a view, not to a history"));
        }
        let claim = self.session.claim()?;
        if entries.is_empty() {
            self.session.give_back(claim);
            return Ok(());
        }
        let (setup, session) = (Arc::clone(&self.setup), Arc::clone(&self.session));
        let begin = Begin::Run { prompts: Vec::new(), limits: self.limits.clone() };
        append(Start { setup, session, begin, cancel: None }, claim, entries).await
    }

    /// The same agent in a new session that begins with these entries.
    ///
    /// An [`OpenTurn`](adjutant_llm::OpenTurn) becomes an entry whose open calls have results that say they did not run.
    #[must_use]
    pub fn start_from(&self, entries: Vec<Entry>) -> Self {
        let agent = self.new_session();
        let (id, journal) = (agent.session.id().clone(), Arc::clone(agent.session.journal()));
        Self { session: Arc::new(Session::new(id, journal).seeded(entries)), ..agent }
    }

    /// Begins a new session with the same configuration; what waits in the queues of the old one is taken back.
    ///
    /// Clones that were made before stay in the old session.
    ///
    /// # Errors
    /// `Busy` if the session is running; nothing changes then.
    pub fn reset(&mut self) -> Result<(), Error> {
        let claim = self.session.claim()?;
        drop(self.clear_queues());
        self.session.give_back(claim);
        *self = self.new_session();
        Ok(())
    }

    /// Stops the run of the session, whoever reads it; says whether there was one.
    #[must_use]
    pub fn abort(&self) -> bool {
        let live = self.session.live();
        live.inspect(|stopper| stopper.stop(CancelBy::User)).is_some()
    }

    /// Whether a run of the session is at work, or one that was left behind closes its turn.
    pub fn is_running(&self) -> bool {
        self.session.live().is_some()
    }
}

/// What later runs do, and what a run does between two turns.
impl Agent {
    /// Sets how much the model thinks, in later runs.
    #[must_use]
    pub fn thinking(self, effort: Effort) -> Self {
        self.with(|setup| {
            let mut options = Options::clone(&setup.options);
            options.thinking = Some(effort);
            setup.options(options)
        })
    }

    /// Sets the single tools of later runs; toolboxes stay.
    #[must_use]
    pub fn tools(self, tools: Tools) -> Self {
        self.with(|setup| Setup { tools, ..setup })
    }

    /// Makes the calls of later runs run one after the other, whatever their tools say.
    #[must_use]
    pub fn sequential_tools(mut self) -> Self {
        self.limits.sequential = true;
        self
    }

    /// Lets the calls of later runs run together, unless a tool that is called says otherwise.
    #[must_use]
    pub fn parallel_tools(mut self) -> Self {
        self.limits.sequential = false;
        self
    }

    /// Adds a function that is asked after each turn what is different from the next one on; `None` for nothing.
    ///
    /// A hook of [`NextTurn`]: its panic fails the run.
    #[must_use]
    pub fn prepare_next_turn(self, prepare: impl Fn(&NextTurn) -> Option<RunChange> + Send + Sync + 'static) -> Self {
        self.on(move |_: HookContext, mut turn: NextTurn| {
            if let Some(change) = prepare(&turn) {
                turn.change = turn.change.then(change);
            }
            std::future::ready(Verdict::Pass(turn))
        })
    }

    /// Adds a function that is asked after each turn whether the run ends there.
    ///
    /// A hook of [`AfterTurn`]: its panic fails the run.
    #[must_use]
    pub fn stop_after_turn(self, stop: impl Fn(&AfterTurn) -> bool + Send + Sync + 'static) -> Self {
        self.on(move |_: HookContext, mut turn: AfterTurn| {
            turn.stop |= stop(&turn);
            std::future::ready(Verdict::Pass(turn))
        })
    }
}

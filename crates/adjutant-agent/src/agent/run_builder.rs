//! The start of a run: its own settings, and the caller that waits for its end or reads its events.

use std::{
    fmt, mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use adjutant_core::{Answered, Error, RunResult, Terms};
use adjutant_llm::Model;
use adjutant_tool::Cancel;
use serde_json::Value;

use super::Agent;
use crate::{
    begin::{Begin, Bounds},
    output::Goal,
    prompt::Prompt,
    running::Running,
    session::{Session, Start},
    setup::Setup,
};

/// A run that has not started: await it for its result, or read its events with [`stream`](RunBuilder::stream).
///
/// The agent's settings apply by default.
///
/// Cancel: a started run is cancelled; its turn is closed in the background.
///
/// # Errors
/// `Busy` if the session is running, `Prompt` if the prompt is empty or no conversation exists to continue, `Paused`
/// if a run waits for answers, `Answers` if they do not match the pauses of the run, `Failed` if the run failed (the
/// error contains its result), `Journal` if the log could not be used. Limits and cancels are outcomes, not errors.
#[must_use = "a run begins when it is awaited or streamed"]
pub struct RunBuilder {
    state: State,
}

enum State {
    Idle(Idle),
    Live(Running),
    Over,
}

struct Idle {
    setup: Arc<Setup>,
    session: Arc<Session>,
    begin: Result<Begin, Error>,
    max_turns: Option<Option<u32>>,
    deadline: Option<Duration>,
    terms: Option<Box<Terms>>,
    cancel: Option<Cancel>,
}

impl Agent {
    /// Runs the agent on a prompt; with [`Continue`](crate::Continue) on the existing conversation.
    pub fn run(&self, prompt: impl Into<Prompt>) -> RunBuilder {
        let prompts = prompt.into().into_entries();
        RunBuilder::new(
            self,
            prompts.map(|prompts| Begin::run(prompts, self.limits.clone())),
        )
    }

    /// Resumes a run that waits for answers, or that a previous program left open.
    ///
    /// Every pause that no one here could answer needs an answer, except expired ones. A run that was left open
    /// without such a pause needs none. Posted answers count too, unless another one is given here; if a cancellation
    /// was posted, the run ends instead. If the answers do not match the pauses of the run, nothing is lost. Turns
    /// set here count from the run's first one.
    ///
    /// The run continues with its original settings, in any process: its resolved instructions, its state, its chosen
    /// model and its limits. Settings made here apply from here on, and after the next crash too.
    ///
    /// # Errors
    /// In addition to the errors of a run, `Model` if this agent does not know the run's model: pass it, or another
    /// one to continue with, by [`model`](RunBuilder::model).
    pub fn resume(&self, answers: Vec<Answered>) -> RunBuilder {
        RunBuilder::new(self, Ok(Begin::resume(answers)))
    }

    /// Ends a run that waits for answers: its calls are closed, and it counts as cancelled by the user.
    ///
    /// # Errors
    /// `Answers` if no run is open, `Busy` if the session is running, `Journal` if the log could not be used.
    pub async fn cancel_paused(&self) -> Result<RunResult, Error> {
        RunBuilder::new(self, Ok(Begin::Cancel)).await
    }
}

impl RunBuilder {
    fn new(agent: &Agent, begin: Result<Begin, Error>) -> Self {
        let (setup, session) = (Arc::clone(&agent.setup), Arc::clone(&agent.session));
        let idle = Idle {
            setup,
            session,
            begin,
            max_turns: None,
            deadline: None,
            terms: None,
            cancel: None,
        };
        Self {
            state: State::Idle(idle),
        }
    }

    /// Sets how many requests this run may make; any number with `None`. By default as many as the agent may.
    pub fn max_turns(self, turns: impl Into<Option<u32>>) -> Self {
        let turns = turns.into();
        self.with(|idle| idle.max_turns = Some(turns))
    }

    /// Sets how long this run may take from now on.
    pub fn deadline(self, within: Duration) -> Self {
        self.with(|idle| idle.deadline = Some(within))
    }

    /// Sets the model of this run; for a resumed run, the model to continue with.
    ///
    /// The run's log contains its id: to resume the run, know a model of this id, or pass one.
    pub fn model(self, model: impl Model + 'static) -> Self {
        self.with(|idle| {
            idle.terms().model = Some(model.info().id.clone());
            Arc::make_mut(&mut idle.setup).model = Arc::new(model);
        })
    }

    /// Sets a value that instructions and sections can read by name in this run; it overrides the agent's value.
    ///
    /// It is in the run's log. If a resumed run gets new state, its instructions are resolved again.
    pub fn state(self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.with(|idle| {
            idle.terms().state.insert(name.into(), value.into());
        })
    }

    /// Resolves the instructions of a resumed run and its sub-agents again: those in its log are ignored, and so are
    /// the state and the requested output in it. Use it for a log of untrusted origin, and after a change of the
    /// agent that open runs should follow.
    pub fn instruct_anew(self) -> Self {
        self.with(|idle| Arc::make_mut(&mut idle.setup).anew = true)
    }

    /// Leaves the session queued when the run has ended, until its log is marked idle, so that its waiter is notified
    /// in spite of any crash. Set it again to resume the run.
    pub fn keep_queued(self) -> Self {
        self.with(|idle| Arc::make_mut(&mut idle.setup).awaited = true)
    }

    /// Cancels this run when this token is cancelled.
    pub fn cancel(self, cancel: Cancel) -> Self {
        self.with(|idle| idle.cancel = Some(cancel))
    }

    /// Starts the run as a stream of its events; errors that are not found immediately are in its last event.
    ///
    /// # Errors
    /// `Busy` if the session is running, `Prompt` if the prompt is empty.
    pub fn stream(self) -> Result<Running, Error> {
        match self.state {
            State::Idle(idle) => idle.begin(),
            State::Live(running) => Ok(running),
            State::Over => Err(Error::Stuck),
        }
    }

    /// Sets the requested answer of the run.
    pub(crate) fn wanting(self, goal: Arc<Goal>) -> Self {
        self.with(|idle| Arc::make_mut(&mut idle.setup).goal = Some(goal))
    }

    fn with(mut self, change: impl FnOnce(&mut Idle)) -> Self {
        if let State::Idle(idle) = &mut self.state {
            change(idle);
        }
        self
    }
}

impl Idle {
    fn terms(&mut self) -> &mut Terms {
        self.terms.get_or_insert_default()
    }

    fn begin(self) -> Result<Running, Error> {
        let mut begin = self.begin?;
        let claim = self.session.claim()?;
        let at = |within: Duration| {
            let within = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
            self.setup.world.now_ms().saturating_add(within)
        };
        let set = Bounds {
            max_turns: self.max_turns,
            deadline_ms: self.deadline.map(at),
        };
        match &mut begin {
            Begin::Run { limits, terms, .. } => {
                set.narrow(limits);
                *terms = self.terms;
            }
            Begin::Resume { bounds, terms, .. } => (*bounds, *terms) = (set, self.terms),
            Begin::Cancel => {}
        }
        let start = Start {
            setup: self.setup,
            session: self.session,
            begin,
            cancel: self.cancel,
        };
        Ok(Running::new(start, claim))
    }
}

// Not an async block: its future would hold the run twice, and thousands of agents may wait in one.
impl Future for RunBuilder {
    type Output = Result<RunResult, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if matches!(self.state, State::Idle(_))
            && let State::Idle(idle) = mem::replace(&mut self.state, State::Over)
        {
            self.state = State::Live(idle.begin()?.unheard());
        }
        let State::Live(running) = &mut self.state else {
            return Poll::Ready(Err(Error::Stuck));
        };
        let result = ready!(running.poll_end(cx));
        self.state = State::Over;
        Poll::Ready(result)
    }
}

impl fmt::Debug for RunBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Idle(_) => "idle",
            State::Live(_) => "live",
            State::Over => "over",
        };
        f.debug_struct("RunBuilder")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}

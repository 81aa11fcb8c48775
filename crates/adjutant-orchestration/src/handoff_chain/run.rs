//! One prompt on its way through a handoff chain: the runs of all who get the conversation, one after the other.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use adjutant_agent::{
    Agent, Answered, Completion, Continue, Event, Outcome, Prompt, RunResult, Running,
};
use adjutant_llm::Usage;
use futures_core::Stream;

use super::{
    HandoffChain, active, convert_error,
    filter::Filtered,
    transfer::{self, HandoffRun},
};
use crate::{Error, ErrorKind};

/// The start of a handoff chain's run.
pub(super) enum Begin {
    Prompt(Prompt),
    Resume(Vec<Answered>),
}

/// A prompt on its way through a handoff chain: the stream of the events of all who get the conversation.
///
/// It is driven while it is read. Dropping it cancels the active run.
#[must_use = "nothing happens until it is read"]
pub struct HandoffChainRun {
    chain: HandoffChain,
    state: State,
    runs: Vec<RunResult>,
    /// True if it was requested to stop: a run that ends then can still hand over.
    is_cancelled: AtomicBool,
    /// True if events wait until their records are in the log.
    is_saved: bool,
}

/// The result of a prompt.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HandoffChainResult {
    /// The run of the last agent.
    pub last: RunResult,
    /// The runs before it, in order, each of which ended with a handoff.
    pub handed_over: Vec<RunResult>,
}

enum State {
    /// The current agent is looked up.
    Finding(
        Pin<Box<dyn Future<Output = Result<usize, Error>> + Send>>,
        Option<Begin>,
    ),
    /// An agent is running.
    Running(Box<Running>),
    Ended(Option<Error>),
}

impl HandoffChainRun {
    pub(super) fn new(chain: HandoffChain, begin: Begin) -> Self {
        let found = chain.clone();
        let finding = Box::pin(async move { found.find_active().await });
        let state = State::Finding(finding, Some(begin));
        Self {
            chain,
            state,
            runs: Vec::new(),
            is_cancelled: AtomicBool::new(false),
            is_saved: false,
        }
    }

    /// Gives no event before the log holds its record, as [`Running::only_saved`].
    pub fn only_saved(mut self) -> Self {
        self.is_saved = true;
        self
    }

    /// The next event; `None` after the last one.
    ///
    /// Cancel: nothing is lost.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|cx| self.poll_event(cx)).await
    }

    /// Follows the conversation until one answers.
    ///
    /// Cancel: the active run is cancelled.
    ///
    /// # Errors
    /// `Agent`, with the agent's error as its source.
    pub async fn finish(mut self) -> Result<HandoffChainResult, Error> {
        while self.next().await.is_some() {}
        if let State::Ended(Some(error)) = self.state {
            return Err(error);
        }
        let last = self.runs.pop();
        let last = last.ok_or_else(|| {
            Error::new(ErrorKind::Agent, "the conversation ended without a result")
        })?;
        let last = adjutant_agent::Error::check_result(last).map_err(convert_error)?;
        Ok(HandoffChainResult {
            last,
            handed_over: self.runs,
        })
    }

    /// Requests the running agent to stop; between two runs, the next agent.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
        if let State::Running(running) = &self.state {
            running.cancel();
        }
    }

    /// Leaves the conversation as it is, as the end of the program would: nothing is closed, and it can be resumed.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn leave(self) {
        if let State::Running(running) = self.state {
            running.detach().abort();
        }
    }

    /// The handle to stop the running agent, or to queue messages for it; `None` between two runs.
    pub fn running(&self) -> Option<&Running> {
        match &self.state {
            State::Running(running) => Some(running),
            _ => None,
        }
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        loop {
            let next = match &mut self.state {
                State::Ended(_) => return Poll::Ready(None),
                State::Finding(finding, begin) => {
                    let found = ready!(finding.as_mut().poll(cx));
                    let begin = begin.take();
                    found.and_then(|at| self.begin(at, begin))
                }
                State::Running(running) => match ready!(Pin::new(&mut **running).poll_next(cx)) {
                    Some(event) => return Poll::Ready(Some(event)),
                    None => {
                        let result = match running.result() {
                            Some(Ok(result)) => Ok(result.clone()),
                            Some(Err(error)) => Err(convert_error(error.clone())),
                            None => {
                                Err(Error::new(ErrorKind::Agent, "a run ended without a result"))
                            }
                        };
                        result.and_then(|result| self.go_on(result))
                    }
                },
            };
            self.state = next.unwrap_or_else(|error| State::Ended(Some(error)));
            if self.is_cancelled.load(Ordering::Acquire) {
                self.cancel();
            }
        }
    }

    fn perform(&self, running: Running) -> State {
        State::Running(Box::new(if self.is_saved {
            running.only_saved()
        } else {
            running
        }))
    }

    /// Starts with the current agent.
    fn begin(&self, at: usize, begin: Option<Begin>) -> Result<State, Error> {
        let history = self.chain.transcript();
        let running = match begin {
            Some(Begin::Prompt(prompt)) => self.agent_at(at, 0).run(prompt).stream(),
            // A crash came between two handoff runs: the run before has ended.
            Some(Begin::Resume(_))
                if !self.chain.has_open_run() && active::is_handed_over(&history) =>
            {
                self.agent_at(at, active::handoffs(&history))
                    .run(Continue)
                    .stream()
            }
            Some(Begin::Resume(answers)) => self
                .agent_at(at, active::handoffs(&history))
                .resume(answers)
                .stream(),
            None => return Ok(State::Ended(None)),
        };
        Ok(self.perform(running.map_err(convert_error)?))
    }

    /// A run has ended: after a handoff, the next agent continues.
    fn go_on(&mut self, result: RunResult) -> Result<State, Error> {
        let terminated = matches!(
            result.outcome,
            Outcome::Finished {
                why: Completion::Terminated,
                ..
            }
        );
        let to = terminated
            .then(|| {
                result
                    .calls
                    .iter()
                    .find_map(|call| active::find_target(&call.result))
            })
            .flatten();
        let to = to.and_then(|to| {
            self.chain
                .targets
                .iter()
                .position(|target| &*target.name == to)
        });
        self.runs.push(result);
        let Some(to) = to else {
            return Ok(State::Ended(None));
        };
        let handoffs = active::handoffs(&self.chain.transcript());
        let running = self
            .agent_at(to, handoffs)
            .run(Continue)
            .stream()
            .map_err(convert_error)?;
        Ok(self.perform(running))
    }

    /// An agent with the tools to hand the conversation over, after this number of handoffs.
    fn agent_at(&self, at: usize, handoffs: usize) -> Agent {
        let target = self.chain.target(at);
        let handoff_run = HandoffRun::new(self.chain.max_handoffs.saturating_sub(handoffs));
        let others = self
            .chain
            .targets
            .iter()
            .filter(|other| target.may_hand_to(&other.name));
        let agent = others.fold(target.agent.clone(), |agent, other| {
            agent.tool(transfer::tool(other, &handoff_run))
        });
        match &target.filter {
            Some(filter) => agent.effect(Filtered {
                name: Arc::clone(&target.name),
                filter: Arc::clone(filter),
            }),
            None => agent,
        }
    }
}

impl HandoffChainResult {
    /// The text of the answer; empty if none came.
    pub fn text(&self) -> String {
        self.last.text()
    }

    /// Returns the usage of all agents of the run, with everything under them.
    pub fn total_usage(&self) -> Usage {
        self.handed_over
            .iter()
            .chain([&self.last])
            .fold(Usage::default(), |mut sum, result| {
                sum += result.total_usage;
                sum
            })
    }

    /// Returns the number of requests that were made.
    pub fn turns(&self) -> u32 {
        self.handed_over
            .iter()
            .chain([&self.last])
            .map(|result| result.turns)
            .sum()
    }
}

impl Stream for HandoffChainRun {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.poll_event(cx)
    }
}

impl fmt::Debug for HandoffChainRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ended = matches!(self.state, State::Ended(_));
        f.debug_struct("HandoffChainRun")
            .field("runs", &self.runs.len())
            .field("ended", &ended)
            .finish_non_exhaustive()
    }
}

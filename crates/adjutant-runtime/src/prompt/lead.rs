//! The receiver of prompts: one agent, or a handoff chain; and one run of it.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use adjutant_agent::{
    Agent, Answered, CancelBy, Event, EventKind, Output, Pause, Prompt, RunBuilder, RunResult,
    Running,
};
use adjutant_llm::{CallId, Entry, Model, Origin, ThreadId, UserMessage};
use adjutant_orchestration::{HandoffChain, HandoffChainRun};
use futures_core::Stream;
use futures_util::FutureExt;
use serde_json::Value;

use super::{PeerCall, told};
use crate::error::{Error, ErrorKind};

/// The separator of agents that called one another, in the path of an agent.
pub(crate) const CALLED: &str = ">";

/// The agent or agents that answer prompts.
#[derive(Debug, Clone)]
pub enum Lead {
    /// One agent.
    Agent(Agent),
    /// Agents that hand the conversation to each other.
    HandoffChain(HandoffChain),
}

/// One run of the lead: its events, each after its record is stored, and its result.
pub(super) struct LeadRun {
    run: Kind,
    /// The result of the latest run of an agent; a handoff chain may have several.
    result: Option<Arc<RunResult>>,
    /// The error that ended it without a final event.
    failure: Option<Error>,
}

enum Kind {
    Agent(Box<Running>),
    HandoffChain(Box<HandoffChainRun>),
    Ended,
}

impl Lead {
    /// Starts a run with a prompt, optionally with this model.
    pub(super) fn prompt(
        &self,
        prompt: impl Into<Prompt>,
        model: Option<Arc<dyn Model>>,
    ) -> Result<LeadRun, Error> {
        Ok(LeadRun::new(match self {
            Lead::Agent(agent) => {
                let run = model.into_iter().fold(agent.run(prompt), RunBuilder::model);
                Kind::Agent(Box::new(
                    run.stream().map_err(told::agent_error)?.only_saved(),
                ))
            }
            Lead::HandoffChain(_) if model.is_some() => return Err(several()),
            Lead::HandoffChain(chain) => {
                Kind::HandoffChain(Box::new(chain.stream(prompt).only_saved()))
            }
        }))
    }

    /// Starts a run for a call of another agent, within its limits.
    pub(super) fn called(
        &self,
        prompt: &str,
        call: &PeerCall,
        time: Option<Duration>,
    ) -> Result<LeadRun, Error> {
        let from = call.path.join(CALLED);
        let lead = self.below(&from).each(|agent| agent.cap(call.caps));
        let message = UserMessage {
            origin: Origin::Peer { from: from.into() },
            ..UserMessage::text(prompt)
        };
        Ok(LeadRun::new(match lead {
            Lead::Agent(agent) => {
                let run = agent.run(message);
                let run = time.into_iter().fold(run, RunBuilder::deadline);
                Kind::Agent(Box::new(
                    run.stream().map_err(told::agent_error)?.only_saved(),
                ))
            }
            Lead::HandoffChain(chain) => {
                Kind::HandoffChain(Box::new(chain.stream(message).only_saved()))
            }
        }))
    }

    /// Returns the same agents with the path of a call from agent to agent.
    fn below(&self, from: &str) -> Self {
        self.each(|agent| {
            agent.identify(|who| who.path = format!("{from}{CALLED}{}", who.name).into())
        })
    }

    fn each(&self, change: impl Fn(Agent) -> Agent) -> Self {
        match self {
            Lead::Agent(agent) => Lead::Agent(change(agent.clone())),
            Lead::HandoffChain(chain) => Lead::HandoffChain(chain.each(change)),
        }
    }

    /// Returns the path that led to the open run, if another agent called it, from its first entries.
    fn from(&self) -> Option<ThreadId> {
        let said = match self {
            Lead::Agent(agent) => agent.log().transcript(),
            Lead::HandoffChain(chain) => chain.transcript(),
        };
        match &said.iter().next()?.entry {
            Entry::User(UserMessage {
                origin: Origin::Peer { from },
                ..
            }) => Some(from.clone()),
            _ => None,
        }
    }

    /// Starts a run that returns an object.
    pub(super) fn object(&self, prompt: &str, output: Output<Value>) -> Result<LeadRun, Error> {
        match self {
            Lead::Agent(agent) => Lead::Agent(agent.clone().output(output)).prompt(prompt, None),
            Lead::HandoffChain(_) => {
                let message = "agents that hand a conversation over give no object in a session";
                Err(Error::new(ErrorKind::Invalid, message))
            }
        }
    }

    /// Continues the waiting run, optionally with this model.
    pub(super) async fn resume(
        &self,
        answers: Vec<Answered>,
        model: Option<Arc<dyn Model>>,
    ) -> Result<LeadRun, Error> {
        if !self.waits(&answers).await? {
            return Err(Error::new(
                ErrorKind::Conflict,
                "no run of the session waits for an answer",
            ));
        }
        let called = self.from().map(|from| self.below(from.as_str()));
        Ok(LeadRun::new(match called.as_ref().unwrap_or(self) {
            Lead::Agent(agent) => {
                let run = model
                    .into_iter()
                    .fold(agent.resume(answers), RunBuilder::model);
                Kind::Agent(Box::new(
                    run.stream().map_err(told::agent_error)?.only_saved(),
                ))
            }
            Lead::HandoffChain(_) if model.is_some() => return Err(several()),
            Lead::HandoffChain(chain) => {
                Kind::HandoffChain(Box::new(chain.resume_stream(answers).only_saved()))
            }
        }))
    }

    /// Returns the agent whose turn it is in the session.
    pub(super) async fn active(&self) -> Result<Option<&Agent>, Error> {
        Ok(match self {
            Lead::Agent(agent) => Some(agent),
            Lead::HandoffChain(chain) => {
                chain.agent(&chain.active().await.map_err(told::chain_error)?)
            }
        })
    }

    /// Closes an interrupted run.
    pub(super) async fn close(&self) -> Result<(), Error> {
        match self.active().await? {
            Some(agent) => agent.log().close().await.map_err(told::agent_error),
            None => Ok(()),
        }
    }

    /// True if a run of the session is unfinished.
    pub(super) async fn is_open(&self) -> Result<bool, Error> {
        match self.active().await? {
            Some(agent) => opened(agent).await,
            None => Ok(false),
        }
    }

    /// Returns the open pauses of the session.
    pub(super) async fn pauses(&self) -> Result<Vec<Arc<Pause>>, Error> {
        let Some(agent) = self.active().await? else {
            return Ok(Vec::new());
        };
        let is_open = opened(agent).await?;
        Ok(if is_open {
            agent.log().pauses()
        } else {
            Vec::new()
        })
    }

    /// True if there is a run to continue, which waits, or was interrupted by a crash.
    pub(super) async fn waits(&self, answers: &[Answered]) -> Result<bool, Error> {
        match self {
            Lead::Agent(agent) => opened(agent).await,
            Lead::HandoffChain(chain) => {
                let active = chain.active().await.map_err(told::chain_error)?;
                // Without answers, a crash may have come between two agents, of which none has an open run.
                match chain.agent(&active) {
                    Some(agent) => Ok(answers.is_empty() || opened(agent).await?),
                    None => Ok(true),
                }
            }
        }
    }
}

/// Returns the error that no model can be chosen for a handoff chain, because each agent has its own.
fn several() -> Error {
    Error::new(
        ErrorKind::Invalid,
        "agents that hand a conversation over go on with their own models",
    )
}

/// True if a run of the session is unfinished.
async fn opened(agent: &Agent) -> Result<bool, Error> {
    agent.log().open().await.map_err(told::agent_error)?;
    Ok(agent.log().has_open_run())
}

impl LeadRun {
    fn new(run: Kind) -> Self {
        Self {
            run,
            result: None,
            failure: None,
        }
    }

    /// Requests a stop; the events report the end.
    pub(super) fn stop(&self, by: CancelBy) {
        match &self.run {
            Kind::Agent(running) => running.stopper().stop(by),
            Kind::HandoffChain(chain) => {
                if let Some(running) = chain.running() {
                    running.stopper().stop(by);
                }
                // The next agent of the chain is not started.
                chain.cancel();
            }
            Kind::Ended => {}
        }
    }

    /// Abandons the run like a crash: nothing is closed, and it can be resumed.
    pub(super) fn leave(self) {
        match self.run {
            Kind::Agent(running) => running.detach().abort(),
            Kind::HandoffChain(chain) => chain.leave(),
            Kind::Ended => {}
        }
    }

    /// Requests one call to stop.
    pub(super) fn stop_call(&self, call: CallId) {
        match &self.run {
            Kind::Agent(running) => running.stopper().stop_call(call),
            Kind::HandoffChain(chain) => {
                chain
                    .running()
                    .into_iter()
                    .for_each(|running| running.stopper().stop_call(call));
            }
            Kind::Ended => {}
        }
    }

    /// Polls the next event; `None` after the last one.
    pub(super) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let next = match &mut self.run {
            Kind::Agent(running) => Pin::new(&mut **running).poll_next(cx),
            Kind::HandoffChain(chain) => Pin::new(&mut **chain).poll_next(cx),
            Kind::Ended => Poll::Ready(None),
        };
        match &next {
            Poll::Ready(Some(event)) => self.note(event),
            Poll::Ready(None) => self.end(),
            Poll::Pending => {}
        }
        next
    }

    /// Returns the result of the run; an error if it ended before it started, or without an end in its log.
    pub(super) fn ended(&self) -> Result<Arc<RunResult>, Error> {
        match (&self.failure, &self.result) {
            (Some(error), _) => Err(error.clone()),
            (None, Some(result)) => Ok(Arc::clone(result)),
            (None, None) => Err(Error::new(
                ErrorKind::Agent,
                "the run ended without a result",
            )),
        }
    }

    fn note(&mut self, event: &Event) {
        match &event.kind {
            EventKind::RunFinished { result } | EventKind::RunPaused { result }
                if event.who.depth == 0 =>
            {
                self.result = Some(Arc::clone(result));
            }
            EventKind::RunStarted | EventKind::RunResumed if event.who.depth == 0 => {
                self.result = None
            }
            _ => {}
        }
    }

    /// Ends the run. Its last event contains the failure; an error here means that it never started, or that its log is
    /// lost.
    fn end(&mut self) {
        self.failure = match std::mem::replace(&mut self.run, Kind::Ended) {
            Kind::Agent(running) => running
                .result()
                .and_then(Result::err)
                .cloned()
                .map(told::agent_error),
            Kind::HandoffChain(chain) => chain
                .finish()
                .now_or_never()
                .and_then(Result::err)
                .and_then(told::filter_chain_error),
            Kind::Ended => self.failure.take(),
        };
    }
}

//! One way to open agents for code that does not know where it runs: as first ones, or under a call.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use adjutant_core::{CancelBy, Error, ErrorKind, Event, RunResult};
use adjutant_llm::Model;
use adjutant_tool::{CallContext, Identity, ToolError, ToolErrorKind};
use futures_core::Stream;

use super::Agent;
use crate::{
    prompt::Prompt,
    running::Running,
    scope::{Child, ChildRun, Spawn, child_failed},
};

/// Opens agents: first ones, each in a separate session, or children of a call.
#[derive(Clone)]
pub struct AgentFactory {
    spawn: Option<Arc<dyn Spawn>>,
    /// The model of first agents that have none of their own.
    model: Option<Arc<dyn Model>>,
}

/// An agent that a factory has opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenedAgent {
    /// A first agent.
    Root(Agent),
    /// A child of a call.
    Child(Child),
}

/// An answer of a [`OpenedAgent`] on its way: the stream of its events.
#[derive(Debug)]
#[must_use = "a run may do nothing until its events are read"]
#[non_exhaustive]
pub enum MemberRun {
    /// Of a first agent.
    Root(Running),
    /// Of a child.
    Child(ChildRun),
}

impl AgentFactory {
    /// Opens first agents.
    pub fn root() -> Self {
        Self {
            spawn: None,
            model: None,
        }
    }

    /// Sets the model of first agents that [inherit](Agent::inheriting) theirs, from a package or a runtime.
    ///
    /// Children have the model of the agent that opens them.
    #[must_use]
    pub fn model(self, model: impl Model + 'static) -> Self {
        Self {
            model: Some(Arc::new(model)),
            ..self
        }
    }

    /// Opens children of a call.
    ///
    /// # Errors
    /// `Failed` if the context does not belong to a call of a run.
    pub fn from_context(cx: &CallContext) -> Result<Self, ToolError> {
        let spawn = cx.get::<dyn Spawn>();
        let spawn = spawn
            .ok_or_else(|| ToolError::failed("agents are opened only within a call of a run"))?;
        Ok(Self {
            spawn: Some(spawn),
            model: None,
        })
    }

    /// Opens an agent; a child by this key, a first agent in a new session.
    ///
    /// # Errors
    /// Like [`Spawn::open`]; a first agent is always opened.
    pub async fn create(&self, key: &str, agent: Agent) -> Result<OpenedAgent, ToolError> {
        match &self.spawn {
            Some(spawn) => Ok(OpenedAgent::Child(spawn.open(key, agent.into()).await?)),
            None => Ok(OpenedAgent::Root(
                agent.or_model(self.model.as_ref()).new_session(),
            )),
        }
    }
}

impl OpenedAgent {
    /// Returns the identity of the agent.
    pub fn identity(&self) -> &Identity {
        match self {
            Self::Root(agent) => agent.identity(),
            Self::Child(child) => child.identity(),
        }
    }

    /// Prompts it and waits for its answer.
    ///
    /// Cancel: its run is cancelled.
    ///
    /// # Errors
    /// Like [`Child::run`].
    pub async fn run(&self, prompt: impl Into<Prompt> + Send) -> Result<RunResult, ToolError> {
        match self {
            Self::Root(agent) => agent.run(prompt).await.map_err(to_tool_error),
            Self::Child(child) => child.run(prompt).await,
        }
    }

    /// Prompts it; its events can be read.
    ///
    /// # Errors
    /// Like [`Child::stream`].
    pub fn stream(&self, prompt: impl Into<Prompt>) -> Result<MemberRun, ToolError> {
        match self {
            Self::Root(agent) => Ok(MemberRun::Root(
                agent.run(prompt).stream().map_err(to_tool_error)?,
            )),
            Self::Child(child) => Ok(MemberRun::Child(child.stream(prompt)?)),
        }
    }
}

impl MemberRun {
    /// Waits for the answer without looking at further events.
    ///
    /// # Errors
    /// Like [`Child::run`].
    pub async fn finish(self) -> Result<RunResult, ToolError> {
        match self {
            Self::Root(running) => running.finish().await.map_err(to_tool_error),
            Self::Child(run) => run.finish().await,
        }
    }

    /// Cancels it.
    pub fn cancel(&self) {
        match self {
            Self::Root(running) => running.stopper().stop(CancelBy::User),
            Self::Child(run) => run.cancel(),
        }
    }
}

impl Stream for MemberRun {
    type Item = Event;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        match self.get_mut() {
            Self::Root(running) => Pin::new(running).poll_next(cx),
            Self::Child(run) => Pin::new(run).poll_next(cx),
        }
    }
}

fn to_tool_error(error: Error) -> ToolError {
    let kind = match error.kind() {
        ErrorKind::Prompt => ToolErrorKind::InvalidArguments,
        _ => ToolErrorKind::Failed,
    };
    let mut failed = child_failed("the agent failed", error);
    failed.kind = kind;
    failed
}

impl fmt::Debug for AgentFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentFactory")
            .field("children", &self.spawn.is_some())
            .finish()
    }
}

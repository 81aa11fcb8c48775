//! Scopes: the agents that a call opens, which end before it does.

mod call;
mod child;
mod line;
mod session;
mod start;
mod threads;

use std::sync::Arc;

use adjutant_core::Limits;
use adjutant_llm::{ThreadId, Transcript};
use adjutant_tool::{Identity, ToolError, Toolset};
use async_trait::async_trait;

use crate::setup::Setup;

pub(crate) use call::{CallParts, CallScope, RunScopes, opener};
pub(crate) use child::child_failed;
pub use child::{Child, ChildRun};
pub use line::{Loan, RunLine};
pub(crate) use session::{ChildDrive, ChildSession};
pub(crate) use start::start;
pub(crate) use threads::{KEPT, RecordedThread, SessionWriter, Threads};

/// Opens agents under a call; a tool gets it from its context, with `cx.get::<dyn Spawn>()`.
///
/// A child lives in a thread of the same log, named after the call and the key: the same key is the same child, also
/// when the call is entered again in another program. It runs while it answers a prompt, and ends with the call at
/// the latest. An [`Agent`](crate::Agent) converts into its configuration: `agent.into()`.
#[async_trait]
pub trait Spawn: Send + Sync {
    /// Opens the child of a key: a new one, or the one that this call has already opened.
    ///
    /// # Errors
    /// `Cancelled` if the call has ended, `InvalidArguments` if the key is empty, long or has a slash, `Denied` if the
    /// limit of depth is reached, `Failed` if a child of this key is open.
    async fn open(&self, key: &str, agent: AgentConfig) -> Result<Child, ToolError>;

    /// Opens a child with these entries at the start of its conversation.
    ///
    /// # Errors
    /// Like [`open`](Spawn::open).
    async fn open_with(
        &self,
        key: &str,
        agent: AgentConfig,
        history: Transcript,
    ) -> Result<Child, ToolError>;

    /// Returns the parts of the calling agent that a child may be given.
    fn parent(&self) -> Parent;

    /// Opens a child that belongs to the run of the call: it continues after the call has ended, and ends with the
    /// run.
    ///
    /// The same key in another call is another child. It is unattended: its questions are not sent outside. While it
    /// is running, a run does not park. After a crash it is open again if its call is entered again, or if
    /// [`Middleware::on_start`](crate::Middleware::on_start) continues it.
    ///
    /// # Errors
    /// Like [`open`](Spawn::open), and `Failed` where nothing outlives a call.
    async fn keep(&self, key: &str, agent: AgentConfig) -> Result<Child, ToolError> {
        let _ = agent;
        Err(ToolError::failed(format!(
            "no agent outlives its call here: {key:?}"
        )))
    }

    /// Reopens a child that a run of this agent [kept](Spawn::keep), in its conversation: after a crash, or in a
    /// later run. `thread` is its own thread, and `heard` the number of its known answers.
    ///
    /// The next prompt returns the first unknown answer: from the log, if it is there; an incomplete answer
    /// continues, and the prompt is ignored. An incomplete answer that is already known is discarded first. An agent
    /// that died before its thread was in the log starts from scratch.
    ///
    /// # Errors
    /// Like [`keep`](Spawn::keep), `InvalidArguments` if no call of this agent kept it, `Failed` if the log cannot be read.
    async fn reopen(
        &self,
        thread: &ThreadId,
        agent: AgentConfig,
        heard: usize,
    ) -> Result<Child, ToolError> {
        let _ = (agent, heard);
        Err(ToolError::failed(format!(
            "no agent can be reopened here: {thread}"
        )))
    }
}

/// The configuration of an agent, without a session: setup and limits.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    pub(crate) setup: Arc<Setup>,
    pub(crate) limits: Limits,
}

/// The parts of the calling agent that a child may get; none is inherited automatically.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Parent {
    /// The identity of the agent that calls.
    pub who: Arc<Identity>,
    /// Its configuration.
    pub agent: AgentConfig,
    /// The conversation before the turn of the call.
    pub history: Transcript,
    /// The tools of the turn.
    pub tools: Toolset,
}

//! The identity of an agent: its thread, and its place among other agents.

use std::sync::Arc;

use adjutant_llm::{CallId, ThreadId};
use serde::{Deserialize, Serialize};

/// The identity of an agent that does something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Identity {
    /// The conversation.
    pub thread: ThreadId,
    /// The agent's id, permanently unique.
    pub agent_id: Arc<str>,
    /// The agent's name; of several instances, each has its own.
    pub name: Arc<str>,
    /// The name that the agent was configured under.
    pub config_name: Arc<str>,
    /// The names from the root agent to this one, joined by slashes. If agents of other processes requested the run,
    /// their names come first, each followed by `>`.
    pub path: Arc<str>,
    /// The thread of the agent that opened this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ThreadId>,
    /// The number of agents above this one.
    #[serde(default)]
    pub depth: u16,
    /// The task that this agent was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Arc<str>>,
    /// The call that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// A short prefix in front of the agent's output lines.
    #[serde(default)]
    pub prefix: Arc<str>,
}

impl Identity {
    /// A root agent: its path is its name.
    pub fn root(
        thread: ThreadId,
        agent_id: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
    ) -> Self {
        let name = name.into();
        Self {
            thread,
            agent_id: agent_id.into(),
            config_name: Arc::clone(&name),
            path: Arc::clone(&name),
            name,
            parent: None,
            depth: 0,
            task: None,
            call: None,
            prefix: Arc::default(),
        }
    }

    /// The same agent, within a call.
    #[must_use]
    pub fn within(&self, call: CallId) -> Self {
        Self {
            call: Some(call),
            ..self.clone()
        }
    }
}

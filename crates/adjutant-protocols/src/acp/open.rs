//! What an editor wants opened, and a session that was: its agent, its modes, and what an approval for good means.

use std::{fmt, path::PathBuf, sync::Arc};

use adjutant_agent::Agent;
use adjutant_core::{LogId, Pause};
use adjutant_tool::Answer;
use serde_json::{Value, json};

/// The wish of an editor for a session.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SessionWish {
    /// The session that is gone on with; none for a new one.
    pub session: Option<LogId>,
    /// The folder that is worked in: an absolute path.
    pub cwd: PathBuf,
    /// The servers of the Model Context Protocol that the editor knows. Shape: `mcpServers` of `session/new`.
    pub mcp_servers: Vec<Value>,
}

impl SessionWish {
    pub(super) fn new(session: Option<LogId>, cwd: PathBuf, mcp_servers: Vec<Value>) -> Self {
        Self { session, cwd, mcp_servers }
    }
}

/// A session for an editor.
#[derive(Clone)]
#[non_exhaustive]
pub struct OpenSession {
    /// The folder that the paths of calls are told from, if it is not the one that the editor has open.
    pub root: Option<PathBuf>,
    /// What is done when a prompt was answered; nothing by default.
    pub rest: Arc<dyn Fn() + Send + Sync>,
    pub(super) agent: Agent,
    pub(super) modes: Vec<Value>,
    pub(super) mode: Arc<dyn Fn() -> String + Send + Sync>,
    pub(super) set_mode: Arc<dyn Fn(&str) + Send + Sync>,
    pub(super) always: Option<Arc<Always>>,
}

pub(super) type Always = dyn Fn(&Pause) -> Answer + Send + Sync;

impl OpenSession {
    /// The session of this agent, without modes. What a run of it waits for is asked in the editor.
    pub fn new(agent: Agent) -> Self {
        let (mode, set_mode) = (Arc::new(String::new), Arc::new(|_: &str| {}));
        Self { root: None, rest: Arc::new(|| {}), agent, modes: Vec::new(), mode, set_mode, always: None }
    }

    /// Sets the modes, each by its id, its name and what it is; how the id of the present one is known, and what changes it.
    #[must_use]
    pub fn modes<'a>(
        mut self,
        modes: impl IntoIterator<Item = [&'a str; 3]>,
        current: impl Fn() -> String + Send + Sync + 'static,
        set: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        let told = |[id, name, description]: [&str; 3]| json!({"id": id, "name": name, "description": description});
        self.modes = modes.into_iter().map(told).collect();
        (self.mode, self.set_mode) = (Arc::new(current), Arc::new(set));
        self
    }

    /// Offers approval for good too, and makes the answer of it, after what it is about was allowed.
    #[must_use]
    pub fn on_always(mut self, always: impl Fn(&Pause) -> Answer + Send + Sync + 'static) -> Self {
        self.always = Some(Arc::new(always));
        self
    }

    /// Puts the modes, if there are some, into an answer.
    pub(super) fn told(&self, mut answer: Value) -> Value {
        if !self.modes.is_empty() {
            answer["modes"] = json!({"currentModeId": (self.mode)(), "availableModes": self.modes});
        }
        answer
    }
}

impl fmt::Debug for OpenSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenSession").field("agent", &self.agent).field("modes", &self.modes).finish_non_exhaustive()
    }
}

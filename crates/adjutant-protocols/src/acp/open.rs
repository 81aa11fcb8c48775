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
pub struct OpenSession {
    pub(super) agent: Agent,
    /// The folder that its tools work in, if it is not the editor's.
    pub(super) root: Option<PathBuf>,
    pub(super) modes: Vec<Value>,
    pub(super) mode: Arc<dyn Fn() -> String + Send + Sync>,
    pub(super) set_mode: Arc<dyn Fn(&str) + Send + Sync>,
    pub(super) always: Option<Arc<Always>>,
    pub(super) rest: Arc<dyn Fn() + Send + Sync>,
}

pub(super) type Always = dyn Fn(&Pause) -> Answer + Send + Sync;

impl OpenSession {
    /// The session of this agent, without modes. What a run of it waits for is asked in the editor.
    pub fn new(agent: Agent) -> Self {
        let (mode, set_mode) = (Arc::new(String::new), Arc::new(|_: &str| {}));
        Self { agent, root: None, modes: Vec::new(), mode, set_mode, always: None, rest: Arc::new(|| {}) }
    }

    /// Sets the folder that the paths of its calls are told from; the one that the editor has open without it.
    #[must_use]
    pub fn root(mut self, root: impl Into<PathBuf>) -> Self {
        self.root = Some(root.into());
        self
    }

    /// Adds a mode that can be chosen.
    #[must_use]
    pub fn mode(mut self, id: &str, name: &str, description: &str) -> Self {
        self.modes.push(json!({"id": id, "name": name, "description": description}));
        self
    }

    /// Sets how the id of the present mode is known, and what changes it; it is asked for modes that were added alone.
    #[must_use]
    pub fn on_mode(
        mut self,
        current: impl Fn() -> String + Send + Sync + 'static,
        set: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        (self.mode, self.set_mode) = (Arc::new(current), Arc::new(set));
        self
    }

    /// Offers approval for good too, and makes the answer of it, after what it is about was allowed.
    #[must_use]
    pub fn on_always(mut self, always: impl Fn(&Pause) -> Answer + Send + Sync + 'static) -> Self {
        self.always = Some(Arc::new(always));
        self
    }

    /// Sets what is done when a prompt was answered.
    #[must_use]
    pub fn on_rest(mut self, rest: impl Fn() + Send + Sync + 'static) -> Self {
        self.rest = Arc::new(rest);
        self
    }

    /// The modes as answers hold them; `null` without any.
    pub(super) fn told(&self) -> Value {
        let modes = json!({"currentModeId": (self.mode)(), "availableModes": self.modes});
        if self.modes.is_empty() { Value::Null } else { modes }
    }
}

impl fmt::Debug for OpenSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenSession").field("agent", &self.agent).field("modes", &self.modes).finish_non_exhaustive()
    }
}

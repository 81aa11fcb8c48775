//! What an editor wants opened, and a session that was: its agent, its modes, and what an approval for good means.

use std::{
    collections::HashSet,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant_agent::Agent;
use adjutant_core::{LogId, Pause};
use adjutant_tool::{Answer, Tools};
use adjutant_toolkit::TextFiles;
use futures_util::{FutureExt, future::BoxFuture};
use serde_json::{Value, json};

use super::link::RpcFault;

/// The wish of an editor for a session.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionWish {
    /// The session that is gone on with; none for a new one.
    pub session: Option<LogId>,
    /// The folder that is worked in: an absolute path.
    pub cwd: PathBuf,
    /// The servers of the Model Context Protocol that the editor knows, each with a name of its own, and by command or
    /// over HTTP. Shape: `mcpServers` of `session/new`.
    pub mcp_servers: Vec<Value>,
    /// The files of the editor below `cwd`, with what is not saved, if it lends some: for `Files::lent_by` of the toolkit.
    pub files: Option<Arc<dyn TextFiles>>,
    /// The toolbox `terminal`, if the editor has terminals: `run_in_terminal`, whose commands no sandbox holds, and which asks each time.
    pub terminal: Option<Tools>,
}

impl SessionWish {
    pub(super) fn read(session: Option<LogId>, params: &Value) -> Result<Self, RpcFault> {
        let cwd = absolute(&params["cwd"])
            .ok_or_else(|| RpcFault::params("`cwd` is an absolute path"))?
            .to_owned();
        let mcp_servers = match &params["mcpServers"] {
            Value::Array(servers) => servers.clone(),
            Value::Null => Vec::new(),
            _ => return Err(RpcFault::params("`mcpServers` is a list")),
        };
        let mut names = HashSet::new();
        for server in &mcp_servers {
            let name = server["name"].as_str().filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| RpcFault::params("a server of MCP needs its `name`"))?;
            let wrong = if names.insert(name) {
                wrong(server)
            } else {
                Some("there are two of this name")
            };
            if let Some(wrong) = wrong {
                return Err(RpcFault::params(format!(
                    "the server of MCP {name:?}: {wrong}"
                )));
            }
        }
        Ok(Self {
            session,
            cwd,
            mcp_servers,
            files: None,
            terminal: None,
        })
    }
}

fn absolute(value: &Value) -> Option<&Path> {
    value
        .as_str()
        .map(Path::new)
        .filter(|path| path.is_absolute())
}

/// The reason why a server cannot be used, if there is one.
fn wrong(server: &Value) -> Option<&'static str> {
    let all = |list: &Value, fits: fn(&Value) -> bool| match list {
        Value::Array(list) => list.iter().all(fits),
        other => other.is_null(),
    };
    let is_pair = |it: &Value| it["name"].is_string() && it["value"].is_string();
    let url = server["url"].as_str().unwrap_or_default();
    match server.get("type").map(Value::as_str) {
        None | Some(Some("stdio")) if absolute(&server["command"]).is_none() => {
            Some("`command` is an absolute path")
        }
        None | Some(Some("stdio")) if !all(&server["args"], Value::is_string) => {
            Some("`args` is a list of texts")
        }
        None | Some(Some("stdio")) if !all(&server["env"], is_pair) => {
            Some("`env` is a list of names and values")
        }
        None | Some(Some("stdio")) => None,
        Some(Some("http")) if !["http://", "https://"].iter().any(|it| url.starts_with(it)) => {
            Some("`url` is an address over HTTP")
        }
        Some(Some("http")) if !all(&server["headers"], is_pair) => {
            Some("`headers` is a list of names and values")
        }
        Some(Some("http")) => None,
        Some(_) => Some("of transports, `stdio` and `http` are spoken here"),
    }
}

/// The wish of an editor for a list of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListWish {
    /// The folder whose sessions are wanted: an absolute path; none for those of all.
    pub cwd: Option<PathBuf>,
    /// Where the page before ended, as [`SessionPage::next`] told it.
    pub cursor: Option<String>,
}

/// Some sessions, those that changed last first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionPage {
    /// Shape: `sessions` of the answer of `session/list`.
    pub sessions: Vec<Value>,
    /// Where the next page begins, if there is one.
    pub next: Option<String>,
}

impl ListWish {
    pub(super) fn read(params: &Value) -> Result<Self, RpcFault> {
        let cwd = Some(&params["cwd"]).filter(|cwd| !cwd.is_null());
        let cwd = cwd.map(|cwd| {
            absolute(cwd)
                .map(Path::to_owned)
                .ok_or_else(|| RpcFault::params("`cwd` is an absolute path"))
        });
        let cursor = match &params["cursor"] {
            Value::Null => None,
            cursor => Some(
                cursor
                    .as_str()
                    .ok_or_else(|| RpcFault::params("`cursor` is a text"))?
                    .to_owned(),
            ),
        };
        Ok(Self {
            cwd: cwd.transpose()?,
            cursor,
        })
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
    pub(super) set_mode: Arc<SetMode>,
    pub(super) always: Option<Arc<Always>>,
}

type SetMode = dyn Fn(&str) -> BoxFuture<'static, Result<(), RpcFault>> + Send + Sync;
pub(super) type Always = dyn Fn(&Pause) -> Answer + Send + Sync;

impl OpenSession {
    /// The session of this agent, without modes. What a run of it waits for is asked in the editor.
    pub fn new(agent: Agent) -> Self {
        let (mode, set_mode) = (
            Arc::new(String::new),
            Arc::new(|_: &str| std::future::ready(Ok(())).boxed()),
        );
        Self {
            root: None,
            rest: Arc::new(|| {}),
            agent,
            modes: Vec::new(),
            mode,
            set_mode,
            always: None,
        }
    }

    /// Sets the modes, each by its id, its name and what it is; how the id of the present one is known, and what changes it.
    ///
    /// Whoever loads the session again is told the mode as `current` knows it then: `set` should keep it with the session.
    #[must_use]
    pub fn modes<'a, Set, E>(
        mut self,
        modes: impl IntoIterator<Item = [&'a str; 3]>,
        current: impl Fn() -> String + Send + Sync + 'static,
        set: impl Fn(&str) -> Set + Send + Sync + 'static,
    ) -> Self
    where
        Set: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        let told = |[id, name, description]: [&str; 3]| json!({"id": id, "name": name, "description": description});
        self.modes = modes.into_iter().map(told).collect();
        let set = move |mode: &str| {
            let set = set(mode);
            async move {
                set.await
                    .map_err(|error| RpcFault(RpcFault::INTERNAL, error.to_string()))
            }
            .boxed()
        };
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
        f.debug_struct("OpenSession")
            .field("agent", &self.agent)
            .field("modes", &self.modes)
            .finish_non_exhaustive()
    }
}

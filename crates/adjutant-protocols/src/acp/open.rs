//! A request of an editor for a session, and an open session: its agent, its modes, and the effect of a permanent
//! approval.

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

/// A request of an editor for a session.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionWish {
    /// The session to continue; `None` for a new one.
    pub session: Option<LogId>,
    /// The folder that is worked in: an absolute path.
    pub cwd: PathBuf,
    /// The MCP servers that the editor knows, each with a unique name, by command or over HTTP. Format: `mcpServers`
    /// of `session/new`.
    pub mcp_servers: Vec<Value>,
    /// The editor's files below `cwd` with unsaved changes, if it offers them: for `Files::lent_by` of the toolkit.
    pub files: Option<Arc<dyn TextFiles>>,
    /// The toolbox `terminal`, if the editor has terminals: `run_in_terminal`, whose commands run without a sandbox
    /// and always need an approval.
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

/// A request of an editor for a list of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListWish {
    /// The folder of the requested sessions, an absolute path; `None` for all folders.
    pub cwd: Option<PathBuf>,
    /// The end of the previous page, from [`SessionPage::next`].
    pub cursor: Option<String>,
}

/// A page of sessions, the last changed ones first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionPage {
    /// Shape: `sessions` of the answer of `session/list`.
    pub sessions: Vec<Value>,
    /// The start of the next page, if there is one.
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
    /// The folder that paths of calls are relative to, if it differs from the one open in the editor.
    pub root: Option<PathBuf>,
    /// Called after a prompt was answered; does nothing by default.
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
    /// A session of this agent, without modes. Its pauses become questions in the editor.
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

    /// Sets the modes, each with its id, name and description, and the functions that return and change the current
    /// one.
    ///
    /// A session that is loaded again gets the mode that `current` returns then: `set` should store it with the
    /// session.
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

    /// Also offers a permanent approval, and creates its answer when the call was allowed.
    #[must_use]
    pub fn on_always(mut self, always: impl Fn(&Pause) -> Answer + Send + Sync + 'static) -> Self {
        self.always = Some(Arc::new(always));
        self
    }

    /// Puts the modes, if there are some, into an answer.
    pub(super) fn add_modes(&self, mut answer: Value) -> Value {
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

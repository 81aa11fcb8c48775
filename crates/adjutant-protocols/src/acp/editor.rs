//! Access to an editor for the tools of an agent: its files with unsaved changes, and its terminals.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use adjutant_llm::ThreadId;
use adjutant_tool::{ToolError, ToolErrorKind};
use adjutant_toolkit::TextFiles;
use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::link::Link;

/// The timeout for requests that need no user.
const PATIENCE: Duration = Duration::from_secs(30);

/// The capabilities of an editor.
#[derive(Debug, Clone, Copy)]
pub(super) struct EditorSkills {
    pub(super) has_forms: bool,
    pub(super) has_terminals: bool,
    reads: bool,
    writes: bool,
}

impl EditorSkills {
    pub(super) fn from_capabilities(capabilities: &Value) -> Self {
        let is_there = |what: &str| capabilities["fs"][what] == true;
        Self {
            has_forms: capabilities["elicitation"]["form"].is_object(),
            has_terminals: capabilities["terminal"] == true,
            reads: is_there("readTextFile"),
            writes: is_there("writeTextFile"),
        }
    }
}

/// An editor as the tools of one session see it.
#[derive(Debug, Clone)]
pub(super) struct Editor {
    pub(super) link: Arc<Link>,
    pub(super) skills: EditorSkills,
    /// The folder that it has open.
    pub(super) root: PathBuf,
    /// The session and the thread of its first agent; they are known when it is open.
    pub(super) session: Arc<OnceLock<(String, ThreadId)>>,
}

impl Editor {
    /// The id of the session; tools are called only in an open one.
    pub(super) fn session(&self) -> Result<&(String, ThreadId), ToolError> {
        self.session
            .get()
            .ok_or_else(|| ToolError::failed("the session is not open"))
    }

    /// Sends a request of the session.
    pub(super) async fn ask(&self, method: &str, mut params: Value) -> Result<Value, ToolError> {
        params["sessionId"] = self.session()?.0.as_str().into();
        let said = self.link.call(method, params).await;
        said.map_err(|fault| ToolError::failed(format!("the editor refuses: {}", fault.1)))
    }

    /// The same, with a timeout.
    pub(super) async fn ask_now(&self, method: &str, params: Value) -> Result<Value, ToolError> {
        let late = || format!("the editor did not answer within {} s", PATIENCE.as_secs());
        let said = timeout(PATIENCE, self.ask(method, params)).await;
        said.unwrap_or_else(|_| Err(ToolError::new(ToolErrorKind::TimedOut, late())))
    }

    /// Its files, if it offers them.
    pub(super) fn files(&self) -> Option<Arc<dyn TextFiles>> {
        let Self { skills, .. } = self;
        (skills.reads || skills.writes).then(|| Arc::new(self.clone()) as _)
    }
}

#[async_trait]
impl TextFiles for Editor {
    async fn read(&self, path: &Path) -> Result<Option<String>, ToolError> {
        let path = self.root.join(path);
        let Some(path) = path.to_str().filter(|_| self.skills.reads) else {
            return Ok(None);
        };
        let said = self.ask("fs/read_text_file", json!({"path": path})).await?;
        let text = said["content"]
            .as_str()
            .ok_or_else(|| ToolError::failed("the editor gave no text"))?;
        Ok(Some(text.to_owned()))
    }

    async fn write(&self, path: &Path, text: &str) -> Result<bool, ToolError> {
        let path = self.root.join(path);
        let Some(path) = path.to_str().filter(|_| self.skills.writes) else {
            return Ok(false);
        };
        self.ask("fs/write_text_file", json!({"path": path, "content": text}))
            .await?;
        Ok(true)
    }
}

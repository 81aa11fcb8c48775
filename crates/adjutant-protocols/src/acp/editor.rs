//! The editor's files, as an agent's tools read and write them: with what is not saved yet.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use adjutant_tool::ToolError;
use adjutant_toolkit::TextFiles;
use async_trait::async_trait;
use serde_json::{Value, json};

use super::link::Link;

/// What an editor can do for agents.
#[derive(Debug, Clone, Copy)]
pub(super) struct EditorSkills {
    /// It shows forms.
    pub(super) has_forms: bool,
    pub(super) reads: bool,
    pub(super) writes: bool,
}

impl EditorSkills {
    pub(super) fn of(capabilities: &Value) -> Self {
        let has_forms = capabilities["elicitation"]["form"].is_object();
        let is_there = |what: &str| capabilities["fs"][what] == true;
        Self { has_forms, reads: is_there("readTextFile"), writes: is_there("writeTextFile") }
    }
}

/// The files of an editor below the folder that it has open.
#[derive(Debug)]
pub(super) struct EditorFiles {
    link: Arc<Link>,
    skills: EditorSkills,
    root: PathBuf,
    /// The session that they are asked for in; it is known when it is open.
    session: Arc<OnceLock<String>>,
}

impl EditorFiles {
    /// None if the editor lends none.
    pub(super) fn of(
        link: &Arc<Link>,
        skills: EditorSkills,
        root: &Path,
        session: &Arc<OnceLock<String>>,
    ) -> Option<Arc<dyn TextFiles>> {
        let (link, root, session) = (Arc::clone(link), root.to_owned(), Arc::clone(session));
        (skills.reads || skills.writes).then(|| Arc::new(Self { link, skills, root, session }) as _)
    }

    /// What the editor says about a file; none if it cannot be asked about it.
    async fn ask(&self, method: &str, path: &Path, content: Option<&str>) -> Result<Option<Value>, ToolError> {
        let (path, session) = (self.root.join(path), self.session.get());
        let (Some(path), Some(session)) = (path.to_str(), session) else { return Ok(None) };
        let mut params = json!({"sessionId": session, "path": path});
        content.into_iter().for_each(|content| params["content"] = content.into());
        let said = self.link.call(method, params).await;
        said.map(Some).map_err(|fault| ToolError::failed(format!("the editor refuses: {}", fault.1)))
    }
}

#[async_trait]
impl TextFiles for EditorFiles {
    async fn read(&self, path: &Path) -> Result<Option<String>, ToolError> {
        if !self.skills.reads {
            return Ok(None);
        }
        let said = self.ask("fs/read_text_file", path, None).await?;
        let text = said.map(|said| said["content"].as_str().map(str::to_owned));
        text.map(|text| text.ok_or_else(|| ToolError::failed("the editor gave no text"))).transpose()
    }

    async fn write(&self, path: &Path, text: &str) -> Result<bool, ToolError> {
        Ok(self.skills.writes && self.ask("fs/write_text_file", path, Some(text)).await?.is_some())
    }
}

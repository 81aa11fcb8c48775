//! The folder of one agent: what is where.

use std::path::{Path, PathBuf};

/// The folder of one agent.
///
/// | path | what it is |
/// |---|---|
/// | `agent.json` | id, and what was resolved at its creation |
/// | `prepared.json` | the same with paths of the copies below, and the provenance; there once the workspace is made |
/// | `status.json`, `desired.json` | where it stands, and where it should |
/// | `host.json` | pid, address and token of the process that runs it; only its owner can read it |
/// | `host.lock` | locked by the process that runs it, for as long as it lives |
/// | `context/`, `skills/` | copies of the files that the agents are told |
/// | `work/` | the working folder, with the files of `data` |
/// | `state/` | sessions, memories, boards, notes |
/// | `tmp/`, `logs/` | temporary files; logs, rotated |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The workspace in this folder.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The working folder.
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// Where stores are.
    pub fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    /// Where logs are.
    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// Where temporary files are.
    pub fn tmp(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// Copies of the files that the agents are told.
    pub fn context(&self) -> PathBuf {
        self.root.join("context")
    }

    /// Copies of skills.
    pub fn skills(&self) -> PathBuf {
        self.root.join("skills")
    }

    /// A file directly in the folder, as `agent.json`.
    pub fn file(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
}

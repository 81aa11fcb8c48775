//! The directory of all agents of an operator: the running operator, the agents, and their desired states.

mod course;
mod desired;
mod entry;
mod operator;

use std::path::{Path, PathBuf};

use uuid::Uuid;

pub use course::Course;
pub use desired::{Desired, Goal};
pub use entry::{Entries, Entry};
pub use operator::Operator;

use crate::{
    error::Error,
    files::{Sync, make_folder, read_capped, write_bytes},
    workspace::Workspace,
};

/// The file that is touched after a request.
const CHANGED: &str = "changed";

/// The directory of all agents of an operator.
///
/// | path | what it is |
/// |---|---|
/// | `<id>/` | the folder of one agent |
/// | `operator.lock` | locked by the one operator that works on it, whose process it names |
/// | `desired.lock` | locked while somebody writes down where an agent should stand |
/// | `changed` | touched when something was asked for, so that an operator looks |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// Uses this directory, which need not exist yet.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Returns the directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directory of one agent.
    pub fn workspace(&self, id: Uuid) -> Workspace {
        Workspace::at(self.root.join(id.to_string()))
    }

    /// Creates the directory, private to its owner. A `.gitignore` excludes it, because of its tokens and sessions.
    ///
    /// # Errors
    /// `Storage` if it cannot be created.
    pub fn make(&self) -> Result<(), Error> {
        make_folder(&self.root)?;
        let ignored = self.root.join(".gitignore");
        if ignored.symlink_metadata().is_ok() {
            Ok(())
        } else {
            write_bytes(&ignored, b"*\n", Sync::Program)
        }
    }

    /// Notifies an operator of a request or a new agent.
    ///
    /// # Errors
    /// `Storage` if the file cannot be written.
    pub fn touch(&self) -> Result<(), Error> {
        let mark = Uuid::now_v7().to_string();
        write_bytes(&self.root.join(CHANGED), mark.as_bytes(), Sync::Program)
    }

    /// Returns the content of the touched file, which differs each time.
    pub(crate) fn mark(&self) -> Option<Vec<u8>> {
        read_capped(&self.root.join(CHANGED), 1_024).ok()
    }
}

//! The agents of a project or the user: where they are found, and the messages about them.

use std::{
    error::Error as _,
    fs,
    path::{Path, PathBuf},
};

use adjutant::orchestration::{Definition, Error};

use crate::{
    args::{AgentChoice, Taught},
    exit::Exit,
    plain,
    problem::Problem,
};

/// The directory of agents in a project.
const PROJECT: &str = ".adjutant/agents";

/// The agents that were found.
#[derive(Debug, Default)]
pub(crate) struct AgentFiles {
    /// The agents in use, in the order in which they were found.
    pub(crate) used: Vec<Definition>,
    /// Agents of the project that are not trusted.
    pub(crate) untrusted: Vec<Definition>,
    /// Errors and notices, one line each.
    pub(crate) findings: Vec<String>,
}

/// Formats the error of an agent in one line.
pub(crate) fn line(error: &Error) -> String {
    let source = error
        .source()
        .map(|source| format!(": {source}"))
        .unwrap_or_default();
    plain::line(&format!("{error}{source}"))
}

impl AgentFiles {
    /// Finds the agents for a project: in the named directories, else in its own.
    ///
    /// # Errors
    /// `Usage` if a named directory does not exist, or contains too many.
    pub(crate) fn find(
        choice: &AgentChoice,
        taught: &Taught,
        directory: &Path,
    ) -> Result<Self, Problem> {
        let mut files = Self::default();
        for folder in &choice.agents {
            let read = Definition::folder(folder)
                .map_err(|error| Problem::from_error(Exit::Usage, &error))?;
            files.take(folder, read);
        }
        if choice.agents.is_empty() {
            files.look(directory, taught.trust);
        }
        Ok(files)
    }

    /// Reads the agents of a project; they are used only if they are trusted.
    fn look(&mut self, directory: &Path, is_trusted: bool) {
        let folder = directory.join(PROJECT);
        if folder.symlink_metadata().is_err() {
            return;
        }
        let shown = plain::line(&folder.display().to_string());
        if !is_within(&folder, directory) {
            self.findings.push(format!(
                "agents: {shown}: warning: it or a link in it leads out of the directory: not used"
            ));
            return;
        }
        match Definition::folder(&folder) {
            Err(error) => self.findings.push(format!("agents: {}", line(&error))),
            Ok(read) if is_trusted => self.take(&folder, read),
            Ok((read, problems)) => {
                let count = read.len() + problems.len();
                self.untrusted = read;
                if count > 0 {
                    self.findings.push(format!(
                        "agents: {shown}: warning: nobody trusts the agents of this folder: {count} not used; hint: read \
                         them, then say --trust"
                    ));
                }
            }
        }
    }

    fn take(&mut self, folder: &Path, (read, problems): (Vec<Definition>, Vec<Error>)) {
        self.findings.extend(
            problems
                .iter()
                .map(|error| format!("agents: {}", line(error))),
        );
        for one in read {
            if self
                .used
                .iter()
                .any(|known| known.name.eq_ignore_ascii_case(&one.name))
            {
                let folder = plain::line(&folder.display().to_string());
                self.findings.push(format!(
                    "agents: {folder}: there is another agent {:?}",
                    one.name
                ));
            } else {
                self.used.push(one);
            }
        }
    }
}

/// True if a directory and its files are inside the project: a repository may contain links to other places.
fn is_within(folder: &Path, directory: &Path) -> bool {
    let Ok(directory) = directory.canonicalize() else {
        return false;
    };
    let lies_there = |path: &Path| {
        path.canonicalize()
            .is_ok_and(|path| path.starts_with(&directory))
    };
    let links = |folder: &Path| -> Option<Vec<PathBuf>> {
        let paths = fs::read_dir(folder)
            .ok()?
            .filter_map(|entry| Some(entry.ok()?.path()));
        Some(paths.filter(|path| path.is_symlink()).collect())
    };
    lies_there(folder)
        && links(folder).is_some_and(|links| links.iter().all(|path| lies_there(path)))
}

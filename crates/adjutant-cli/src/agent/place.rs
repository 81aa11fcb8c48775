//! The directory of agents, and the selection of agents.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant::runtime::{
    Backend, Entries, Entry, ErrorKind, Home, Trust, TrustStore,
    backend::{HostChange, Process, ProcessOptions},
};

use crate::{
    args::agent::Homed, exit::Exit, near, plain, problem::Problem, trouble::runtime_problem,
};

/// The variable that names the directory of all agents.
const VARIABLE: &str = "ADJUTANT_HOME";
/// The directory of agents in a project.
const FOLDER: &str = ".adjutant/run";

/// The variable that names a custom program for running the agents.
const HOST: &str = "ADJUTANT_HOST";

/// Returns the program that runs the agents, if it is not this one.
pub(crate) fn host_program() -> Option<PathBuf> {
    std::env::var_os(HOST)
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
}

/// A directory of agents.
pub(crate) struct AgentFolder {
    pub(crate) home: Home,
    /// The contents that the user trusts, for agents in any directory.
    pub(crate) trusted: TrustStore,
    /// The option with which the user named the directory, for commands in hints.
    option: String,
}

impl AgentFolder {
    /// Returns the directory of agents for a project.
    pub(crate) fn new(homed: &Homed, project: &Path) -> Self {
        let named = std::env::var_os(VARIABLE)
            .filter(|path| !path.is_empty())
            .map(PathBuf::from);
        let option = homed
            .home
            .as_ref()
            .map(|path| format!(" --home {}", plain::word(&path.to_string_lossy())));
        let path = homed
            .home
            .clone()
            .or(named)
            .unwrap_or_else(|| project.join(FOLDER));
        // A stored path must have the same meaning in every working directory.
        let path = std::path::absolute(&path).unwrap_or(path);
        Self {
            home: Home::at(path),
            trusted: TrustStore::for_user(),
            option: option.unwrap_or_default(),
        }
    }

    /// Formats a command of this program for these agents.
    pub(crate) fn command(&self, words: &str) -> String {
        format!("adjutant {words}{}", self.option)
    }

    /// The option with which the user named the directory, with a space before it; empty if they did not.
    pub(crate) fn option(&self) -> &str {
        &self.option
    }

    /// Returns all agents of the directory.
    pub(crate) fn entries(&self) -> Result<Entries, Problem> {
        self.home.entries().map_err(|error| runtime_problem(&error))
    }

    /// Finds one agent.
    ///
    /// # Errors
    /// `Usage` if it does not exist; the hint contains similar names.
    pub(crate) fn find(&self, word: &str) -> Result<Entry, Problem> {
        let entries = self.entries()?;
        entries
            .find(word)
            .cloned()
            .map_err(|error| match error.kind() {
                ErrorKind::Missing => self.missing(word, &entries),
                _ => runtime_problem(&error),
            })
    }

    fn missing(&self, word: &str, entries: &Entries) -> Problem {
        let problem = Problem::new(
            Exit::Usage,
            format!("there is no agent {word} in {}", self.home.root().display()),
        );
        let names: Vec<&str> = entries.all.iter().map(|entry| &*entry.name).collect();
        let near = near::near(word, names.iter().copied());
        match (&near[..], &names[..]) {
            ([], []) => problem.hint(format!(
                "`{}` makes one of a manifest",
                self.command("agent create")
            )),
            ([], _) => problem.hint(format!("the agents are {}", names.join(", "))),
            (near, _) => problem.hint(format!("the nearest are {}", near.join(", "))),
        }
    }

    /// Returns the selected agents, each once.
    pub(crate) fn chosen(&self, names: &[String], all: bool) -> Result<Vec<Entry>, Problem> {
        if all {
            return Ok(self.entries()?.all);
        }
        let mut chosen: Vec<Entry> = Vec::new();
        for name in names {
            let entry = self.find(name)?;
            if chosen.iter().all(|other| other.id != entry.id) {
                chosen.push(entry);
            }
        }
        Ok(chosen)
    }

    /// Returns the backend that creates and runs agents: each in a separate process of this program.
    pub(crate) fn backend(&self) -> Result<Arc<dyn Backend>, Problem> {
        // A newer program may run existing agents; their provenance records the program.
        let options = ProcessOptions::new().host_change(HostChange::Accept);
        let options = options.trust(Trust::Store(self.trusted.clone()));
        let backend = Process::new(self.home.root(), host_program(), options)
            .map_err(|error| runtime_problem(&error))?;
        Ok(Arc::new(backend))
    }
}

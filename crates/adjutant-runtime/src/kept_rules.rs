//! The permanent rules of agents: one file for each agent of a manifest, in the directory that a backend created.
//!
//! The files have the format of `.adjutant/rules`. They belong to the user who runs the agent: exports and imports
//! never contain them.

use std::{
    fs,
    io::Read,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use adjutant_toolkit::{Rule, Rules};

use crate::{
    error::{Error, ErrorKind},
    files::{self, Sync, make_folder, open_regular, storage},
    workspace::Workspace,
};

/// The directory of the files.
const FOLDER: &str = "rules";
/// The maximum size of a file in bytes, sufficient for 1,000 rules.
const MAX_BYTES: u64 = 1 << 20;
/// The first line of a file.
const ABOUT: &str =
    "# What a person allowed for good. Without a line it is asked again, from the next start on.\n";

/// The permanent rules of the agents of a workspace.
#[derive(Debug)]
pub(crate) struct KeptRules {
    workspace: Workspace,
    /// Several sessions may be answered at the same time, but only in one process.
    writing: Mutex<()>,
}

impl KeptRules {
    /// Returns the place in a workspace; `None` if no backend created it, because nothing in it is durable.
    pub(crate) fn from_workspace(workspace: &Workspace) -> Option<Self> {
        let is_made = workspace.file("agent.json").is_file();
        is_made.then(|| Self {
            workspace: workspace.clone(),
            writing: Mutex::default(),
        })
    }

    /// Stores rules of an agent. A rule that does not fit in one line is not stored, and is lost when the agent ends.
    ///
    /// # Errors
    /// `Storage` if it cannot be written.
    pub(crate) fn keep(&self, agent: &str, rules: &[Rule]) -> Result<(), Error> {
        let lines: Vec<String> = rules
            .iter()
            .map(Rule::to_string)
            .filter(|text| is_line(text))
            .collect();
        let Some(file) = file(&self.workspace, agent).filter(|_| !lines.is_empty()) else {
            return Ok(());
        };
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = read(&self.workspace, agent)?.unwrap_or_else(|| ABOUT.to_owned());
        for line in lines {
            text += &format!("{line}\n");
        }
        make_folder(&self.workspace.file(FOLDER))?;
        files::write_bytes(&file, text.as_bytes(), Sync::Disk)
    }
}

/// Adds the stored rules of an agent.
///
/// # Errors
/// `Config` if other users may write its file, or a line is not a rule; `Storage` if it cannot be read.
pub(crate) fn restore(workspace: &Workspace, agent: &str, rules: Rules) -> Result<Rules, Error> {
    let Some(text) = read(workspace, agent)? else {
        return Ok(rules);
    };
    rules
        .with(&text, &format!("{FOLDER}/{agent}"))
        .map_err(|error| {
            let message =
                format!("the rules that were kept of the agent {agent} cannot be used: {error}");
            Error::new(ErrorKind::Config, message)
        })
}

impl Workspace {
    /// Returns the permanent rules of an agent of this workspace in order, as `allow shell(git log)`.
    ///
    /// # Errors
    /// `Config` if other users may write them, `Storage` if they cannot be read.
    pub fn kept_rules(&self, agent: &str) -> Result<Vec<String>, Error> {
        let text = read(self, agent)?.unwrap_or_default();
        let lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        Ok(lines.map(str::to_owned).collect())
    }
}

/// Returns the file of an agent; `None` if its name is not a file name.
fn file(workspace: &Workspace, agent: &str) -> Option<PathBuf> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_name = !agent.is_empty() && agent.len() <= 64 && agent.chars().all(is_word);
    is_name.then(|| workspace.file(FOLDER).join(agent))
}

/// True if parsing the line of a rule returns the same rule: text of the model must not add another rule.
fn is_line(text: &str) -> bool {
    !text.contains(char::is_control)
        && text
            .parse::<Rule>()
            .is_ok_and(|rule| rule.to_string() == text)
}

/// Reads an agent's file, which is trusted only if no other user can write it.
fn read(workspace: &Workspace, agent: &str) -> Result<Option<String>, Error> {
    let Some(path) = file(workspace, agent) else {
        return Ok(None);
    };
    let file = match open_regular(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::Missing => return Ok(None),
        Err(error) => return Err(error),
    };
    if !is_own(
        &file
            .metadata()
            .map_err(|error| storage("open", &path, error))?,
    ) {
        let path = path.display();
        let message = format!(
            "{path} is not believed: others may write it; hint: read it, then `chmod 600 {path}`"
        );
        return Err(Error::new(ErrorKind::Config, message));
    }
    let mut text = String::new();
    file.take(MAX_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| storage("read", &path, error))?;
    Ok(Some(text))
}

#[cfg(unix)]
fn is_own(about: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    about.uid() == rustix::process::geteuid().as_raw() && about.mode() & 0o022 == 0
}

#[cfg(not(unix))]
fn is_own(_: &fs::Metadata) -> bool {
    true
}

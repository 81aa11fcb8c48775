//! The rules that a person gave an agent for good: a file for each agent of a manifest, in the directory that a backend
//! made.
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
/// The maximum number of bytes of a file: 1,000 rules, as many as there may be.
const MAX_BYTES: u64 = 1 << 20;
/// The first line of a file.
const ABOUT: &str =
    "# What a person allowed for good. Without a line it is asked again, from the next start on.\n";

/// The place where the rules of the agents of a workspace are kept.
#[derive(Debug)]
pub(crate) struct KeptRules {
    workspace: Workspace,
    /// Several sessions may be answered at the same time; another process never is.
    writing: Mutex<()>,
}

impl KeptRules {
    /// The place in a workspace; none if no backend made it, and nothing of it lasts.
    pub(crate) fn of(workspace: &Workspace) -> Option<Self> {
        let is_made = workspace.file("agent.json").is_file();
        is_made.then(|| Self {
            workspace: workspace.clone(),
            writing: Mutex::default(),
        })
    }

    /// Stores rules of an agent. A rule that does not fit in one line is not stored: it ends with the agent.
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

/// Adds the rules that were kept of an agent.
///
/// # Errors
/// `Config` if others than its owner may write its file, or a line is no rule; `Storage` if it cannot be read.
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
    /// Returns the rules that a person gave an agent of this workspace for good, as `allow shell(git log)`, in order.
    ///
    /// # Errors
    /// `Config` if others than their owner may write them, `Storage` if they cannot be read.
    pub fn kept_rules(&self, agent: &str) -> Result<Vec<String>, Error> {
        let text = read(self, agent)?.unwrap_or_default();
        let lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        Ok(lines.map(str::to_owned).collect())
    }
}

/// The file of an agent; none if its name would lead elsewhere.
fn file(workspace: &Workspace, agent: &str) -> Option<PathBuf> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_name = !agent.is_empty() && agent.len() <= 64 && agent.chars().all(is_word);
    is_name.then(|| workspace.file(FOLDER).join(agent))
}

/// True if a rule is parsed back from its line unchanged: a text of the model must not become two rules.
fn is_line(text: &str) -> bool {
    !text.contains(char::is_control)
        && text
            .parse::<Rule>()
            .is_ok_and(|rule| rule.to_string() == text)
}

/// The text of an agent's file, which is trusted only if no other user can write it.
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

//! Reads the recorded agents of a directory, without starting or changing them.

use std::{fs, io, sync::Arc};

use uuid::Uuid;

use super::Home;
use crate::{AgentFile, Error, ErrorKind, Resolved, Workspace, files::storage};

/// The minimum length of an id prefix that identifies an agent.
const MIN_PREFIX: usize = 4;

/// A recorded agent.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: Arc<str>,
    /// Its workspace.
    pub workspace: Workspace,
    /// The time of its creation, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// The configuration that it runs, or will run.
    pub resolved: Arc<Resolved>,
}

/// The agents of a directory.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Entries {
    /// The readable agents, sorted by name.
    pub all: Vec<Entry>,
    /// The errors of the others.
    pub problems: Vec<(Uuid, Error)>,
}

impl Home {
    /// Returns the agents of the directory.
    ///
    /// # Errors
    /// `Storage` if the directory cannot be read. Errors of single agents are returned separately.
    pub fn entries(&self) -> Result<Entries, Error> {
        let mut entries = Entries::default();
        let folder = match fs::read_dir(self.root()) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(entries),
            Err(error) => return Err(storage("read", self.root(), error)),
        };
        let names = folder.filter_map(|it| it.ok()?.file_name().into_string().ok());
        for id in names.filter_map(|name| {
            Uuid::try_parse(&name)
                .ok()
                .filter(|id| id.to_string() == name)
        }) {
            match self.entry(id) {
                Ok(Some(entry)) => entries.all.push(entry),
                // It is being created or was just removed.
                Ok(None) => {}
                Err(error) => entries.problems.push((id, error)),
            }
        }
        entries
            .all
            .sort_by(|one, other| (&one.name, one.id).cmp(&(&other.name, other.id)));
        entries.problems.sort_by_key(|(id, _)| *id);
        Ok(entries)
    }

    fn entry(&self, id: Uuid) -> Result<Option<Entry>, Error> {
        let workspace = self.workspace(id);
        let AgentFile {
            id: written,
            created_ms,
            resolved,
        } = match workspace.agent() {
            Ok(agent) => agent,
            Err(error) if error.kind() == ErrorKind::Missing => return Ok(None),
            Err(error) => return Err(error),
        };
        if written != id {
            let text = format!("the folder of the agent {id} holds another one: {written}");
            return Err(Error::new(ErrorKind::Storage, text));
        }
        Ok(Some(Entry {
            id,
            name: Arc::clone(&resolved.manifest.name),
            workspace,
            created_ms,
            resolved,
        }))
    }
}

impl Entries {
    /// Returns the agent with this name or id, or the only one with this id prefix.
    ///
    /// # Errors
    /// `Missing` if no id has this prefix, `Invalid` if several have it.
    pub fn find(&self, word: &str) -> Result<&Entry, Error> {
        let named = self.all.iter().find(|entry| *entry.name == *word);
        if let Some(entry) =
            named.or_else(|| self.all.iter().find(|entry| entry.id.to_string() == word))
        {
            return Ok(entry);
        }
        let begins =
            |entry: &&Entry| word.len() >= MIN_PREFIX && entry.id.to_string().starts_with(word);
        let found: Vec<&Entry> = self.all.iter().filter(begins).collect();
        match found[..] {
            [entry] => Ok(entry),
            [] => Err(Error::new(
                ErrorKind::Missing,
                format!("there is no agent {word}"),
            )),
            _ => {
                let ids: Vec<String> = found
                    .iter()
                    .map(|entry| format!("{} ({})", entry.id, entry.name))
                    .collect();
                let text = format!(
                    "several agents have an id that begins with {word}: {}",
                    ids.join(", ")
                );
                Err(Error::new(ErrorKind::Invalid, text))
            }
        }
    }
}

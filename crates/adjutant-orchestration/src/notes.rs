//! Notes: durable texts by name, which agents share, with tools to write, read, list and search them.

mod check;
mod kept;
mod protocol;
mod read;
mod tools;
mod write;

use std::{fmt, sync::Arc};

use adjutant_agent::{
    Agent,
    kv::{KvStore, Version, When},
};
use adjutant_llm::World;
use adjutant_tool::Identity;
use serde::{Deserialize, Serialize};

use crate::text;

/// How many bytes the name of a note may have.
pub const MAX_NAME_BYTES: usize = 64;
/// How many bytes the body of a note may have.
pub const MAX_BODY_BYTES: usize = 64 * 1024;
/// How many notes one key-value store may hold.
pub const MAX_NOTES: usize = 1_000;
/// How many notes one page of a list has at most.
pub const MAX_PAGE: usize = 100;
/// How many notes a search gives at most.
pub const MAX_FOUND: usize = 20;
/// How many bytes of the name or path of an author are kept.
const MAX_AUTHOR_BYTES: usize = 256;

/// The notes on a key-value store; cheap to clone.
///
/// All agents that are given the same key-value store share them, in this process and in others.
#[derive(Clone)]
pub struct Notes {
    kv: Arc<dyn KvStore>,
    world: Arc<dyn World>,
}

/// Who wrote a note.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Author {
    /// The agent's name.
    pub name: Arc<str>,
    /// The names from the root agent to this one, joined by slashes.
    pub path: Arc<str>,
    /// The agent's id.
    pub agent_id: Arc<str>,
}

/// What is known of a note besides its body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NoteInfo {
    /// Its name.
    pub name: Arc<str>,
    /// How many bytes its body has.
    pub bytes: usize,
    /// Who wrote it first.
    pub created_by: Author,
    /// When that was, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// Who changed it last.
    pub changed_by: Author,
    /// When that was.
    pub changed_ms: u64,
    /// Its version: another one after every change.
    #[serde(default)]
    pub version: Version,
}

/// A note.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// What is known of it.
    pub info: NoteInfo,
    /// Its text.
    pub body: Arc<str>,
}

/// A text for a note, and what must be true for it to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Writing {
    /// The note.
    pub name: Arc<str>,
    /// The text.
    pub body: Arc<str>,
    /// Whether the text takes the place of what is there, or follows it.
    pub mode: Mode,
    /// What must be true of the note.
    pub when: When,
    /// What tells this writing from all others: a second one with the same key does nothing.
    pub key: Option<Arc<str>>,
}

/// What becomes of the text that a note has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mode {
    /// It is replaced.
    #[default]
    Replace,
    /// It stays, and the new text follows on a line of its own.
    Append,
}

impl Notes {
    /// The notes on this key-value store, beside whatever else is there.
    pub fn new(kv: Arc<dyn KvStore>, world: Arc<dyn World>) -> Self {
        Self { kv, world }
    }

    /// Gives an agent the tools for notes, and the section of its prompt that tells of them.
    ///
    /// The section is there only in runs that have the tool `list_notes`. It holds no note.
    pub fn install(&self, agent: Agent) -> Agent {
        agent.toolbox(self.toolbox()).section(protocol::section())
    }
}

impl Writing {
    /// This text as the whole body of a note, whatever is there.
    pub fn replace(name: impl Into<Arc<str>>, body: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), body: body.into(), mode: Mode::Replace, when: When::Any, key: None }
    }

    /// This text after what a note has; a new note if there is none.
    pub fn append(name: impl Into<Arc<str>>, body: impl Into<Arc<str>>) -> Self {
        Self { mode: Mode::Append, ..Self::replace(name, body) }
    }

    /// Sets what must be true of the note: that there is none, or that it has the version that was read.
    #[must_use]
    pub fn when(self, when: When) -> Self {
        Self { when, ..self }
    }

    /// Sets what tells this writing from all others.
    ///
    /// A note remembers the keys of its newest writings only, so that a call that is run again soon after a crash
    /// appends nothing twice.
    #[must_use]
    pub fn key(self, key: impl Into<Arc<str>>) -> Self {
        Self { key: Some(key.into()), ..self }
    }
}

impl From<&Identity> for Author {
    fn from(who: &Identity) -> Self {
        let bounded = |text: &str| text::line(text, MAX_AUTHOR_BYTES).into();
        Self { name: bounded(&who.name), path: bounded(&who.path), agent_id: bounded(&who.agent_id) }
    }
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notes").field("kv", &self.kv).finish_non_exhaustive()
    }
}

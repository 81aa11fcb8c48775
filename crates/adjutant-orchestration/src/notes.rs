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
use adjutant_llm::{SystemWorld, World};
use adjutant_tool::Identity;
use serde::{Deserialize, Serialize};

use crate::text;

/// The largest number of bytes in the name of a note.
pub const MAX_NAME_BYTES: usize = 64;
/// The largest number of bytes in the body of a note.
pub const MAX_BODY_BYTES: usize = 64 * 1024;
/// The largest number of notes in one key-value store.
pub const MAX_NOTES: usize = 1_000;
/// The largest number of notes on one page of a list.
pub const MAX_PAGE: usize = 100;
/// The largest number of notes that a search gives.
pub const MAX_FOUND: usize = 20;
/// The largest number of bytes of an author's name or path that are kept.
const MAX_AUTHOR_BYTES: usize = 256;

/// The notes on a key-value store; cheap to clone.
///
/// All agents that are given the same key-value store share them, in this process and in others.
#[derive(Clone)]
pub struct Notes {
    kv: Arc<dyn KvStore>,
    world: Arc<dyn World>,
}

/// The author of a note.
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

/// The facts about a note, without its body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NoteInfo {
    /// Its name.
    pub name: Arc<str>,
    /// The number of bytes of its body.
    pub bytes: usize,
    /// The author who wrote it first.
    pub created_by: Author,
    /// The time when it was first written, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// The author who changed it last.
    pub changed_by: Author,
    /// The time of the last change.
    pub changed_ms: u64,
    /// Its version: another one after every change.
    #[serde(default)]
    pub version: Version,
}

/// A note.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// The facts about the note, without its body.
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
    /// The mode: the text replaces the old text, or follows it.
    pub mode: Mode,
    /// The condition that the note must meet.
    pub when: When,
    /// The key that identifies this write: a second one with the same key does nothing.
    pub key: Option<Arc<str>>,
}

/// The effect of a write on the text that a note already has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mode {
    /// It is replaced.
    #[default]
    Replace,
    /// It stays, and the new text is added on a separate line.
    Append,
}

impl Notes {
    /// The notes on this key-value store, which can contain other data, with the system's clock.
    pub fn new(kv: Arc<dyn KvStore>) -> Self {
        let world = Arc::new(SystemWorld);
        Self { kv, world }
    }

    /// Sets clock, ids and chance.
    #[must_use]
    pub fn world(self, world: impl World + 'static) -> Self {
        Self {
            world: Arc::new(world),
            ..self
        }
    }

    /// Gives an agent the tools for notes, and the section of its prompt about them.
    ///
    /// The section is there only in runs that have the tool `list_notes`. It holds no note.
    pub fn install(&self, agent: Agent) -> Agent {
        agent.toolbox(self.toolbox()).section(protocol::section())
    }
}

impl Writing {
    /// This text as the whole body of a note, whatever is there.
    pub fn replace(name: impl Into<Arc<str>>, body: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            body: body.into(),
            mode: Mode::Replace,
            when: When::Any,
            key: None,
        }
    }

    /// Appends this text to a note; creates it if it does not exist.
    pub fn append(name: impl Into<Arc<str>>, body: impl Into<Arc<str>>) -> Self {
        Self {
            mode: Mode::Append,
            ..Self::replace(name, body)
        }
    }

    /// Sets a condition: that the note does not exist, or has the version that was read.
    #[must_use]
    pub fn when(self, when: When) -> Self {
        Self { when, ..self }
    }

    /// Sets the unique key of this write.
    ///
    /// A note remembers the keys of its newest writings only, so that a call that is run again soon after a crash
    /// appends nothing twice.
    #[must_use]
    pub fn key(self, key: impl Into<Arc<str>>) -> Self {
        Self {
            key: Some(key.into()),
            ..self
        }
    }
}

impl From<&Identity> for Author {
    fn from(who: &Identity) -> Self {
        let bounded = |text: &str| text::line(text, MAX_AUTHOR_BYTES).into();
        Self {
            name: bounded(&who.name),
            path: bounded(&who.path),
            agent_id: bounded(&who.agent_id),
        }
    }
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notes")
            .field("kv", &self.kv)
            .finish_non_exhaustive()
    }
}

//! The layout of notes in a key-value store: the facts about a note apart from its body, so that a list reads no
//! bodies; and a count.

use std::sync::Arc;

use adjutant_agent::kv::{Change, Item, Version, When};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::NoteInfo;
use crate::{Error, ErrorKind};

/// The prefix of the keys of infos.
pub(super) const INFOS: &str = "notes/info/";
/// The prefix of the keys of bodies.
pub(super) const BODIES: &str = "notes/body/";
/// The key of the count.
pub(super) const COUNT: &str = "notes/count";
/// The largest number of keys of writes that a note remembers.
const MAX_KEYS: usize = 32;

/// The record that is kept of a note besides its body.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct NoteRecord {
    #[serde(flatten)]
    pub(super) info: NoteInfo,
    /// The keys of its newest writings, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    keys: Vec<Arc<str>>,
}

/// The body of a note.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Body {
    pub(super) body: Arc<str>,
}

impl NoteRecord {
    pub(super) fn new(info: NoteInfo) -> Self {
        Self {
            info,
            keys: Vec::new(),
        }
    }

    /// Reads the record that an item holds, with the item's version.
    pub(super) fn from_item(item: &Item) -> Result<Self, Error> {
        let mut kept: Self = read(item)?;
        kept.info.version = item.version;
        Ok(kept)
    }

    pub(super) fn knows(&self, key: Option<&Arc<str>>) -> bool {
        key.is_some_and(|key| self.keys.contains(key))
    }

    pub(super) fn remember(&mut self, key: Option<Arc<str>>) {
        let Some(key) = key else { return };
        let too_many = (self.keys.len() + 1).saturating_sub(MAX_KEYS);
        self.keys.drain(..too_many);
        self.keys.push(key);
    }

    /// Returns the changes that put the note: its info, and the body that it is found by.
    pub(super) fn changes(&self, body: Arc<str>, when: When) -> Result<Vec<Change>, Error> {
        let name = &self.info.name;
        let found_by = format!("{} {body}", name.replace(['_', '-'], " "));
        // Both are written together, so that one condition is enough.
        Ok(vec![
            Change {
                when,
                ..Change::put(format!("{INFOS}{name}"), encode_json(self)?)
            },
            Change::put(format!("{BODIES}{name}"), encode_json(&Body { body })?).text(found_by),
        ])
    }
}

/// Returns the changes that remove a note.
pub(super) fn removal(name: &str, version: Version) -> Vec<Change> {
    vec![
        Change {
            when: When::Is(version),
            ..Change::remove(format!("{INFOS}{name}"))
        },
        Change::remove(format!("{BODIES}{name}")),
    ]
}

/// Returns the change of the count of notes, on the condition that it is unchanged.
pub(super) fn count(before: Option<&Item>, notes: u64) -> Result<Change, Error> {
    let when = before.map_or(When::Absent, |item| When::Is(item.version));
    Ok(Change {
        when,
        ..Change::put(COUNT, encode_json(&notes)?)
    })
}

/// Reads the value that an item holds.
pub(super) fn read<T: DeserializeOwned>(item: &Item) -> Result<T, Error> {
    serde_json::from_value(item.value.clone()).map_err(|error| {
        Error::new(
            ErrorKind::Store,
            format!("key {:?} holds no part of a note", item.key),
        )
        .with_source(error)
    })
}

fn encode_json<T: Serialize>(value: &T) -> Result<serde_json::Value, Error> {
    serde_json::to_value(value).map_err(|error| {
        Error::new(ErrorKind::Store, "a note cannot be written as JSON").with_source(error)
    })
}

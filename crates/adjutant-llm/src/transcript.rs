//! An append-only list of entries with cheap clones. A `View` selects its part for the next request.

mod encodings;
mod meter;
mod stored;
mod view;

use std::{
    ops::Index,
    sync::{Arc, LazyLock},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use encodings::Encodings;
pub use meter::Meter;
pub use view::{Edit, EditError, View};

use crate::{EntryId, entry::Entry, tokens::Estimate};

/// The number of entries in one shared chunk.
const CHUNK: usize = 64;
/// The format that transcripts are stored in.
const VERSION: u32 = 1;

/// An entry with its place.
#[derive(Debug, PartialEq, Serialize)]
pub struct Stored {
    /// The entry's id.
    pub id: EntryId,
    /// The estimated size in tokens.
    pub tokens: u64,
    /// The entry.
    #[serde(flatten)]
    pub entry: Entry,
}

/// An append-only list of entries.
///
/// Cloning costs a few counters whatever the length. Appending copies at most one chunk of 64 pointers, and only while
/// a clone is alive. Ids grow and are never used twice.
///
/// Shape: `{"version":1,"next":<id>,"entries":[{"id":…,"tokens":…,"entry":"user"|"turn"|…,…}]}`.
#[derive(Debug, Clone)]
pub struct Transcript {
    sealed: Arc<Sealed>,
    tail: Arc<Chunk>,
    next: u64,
    tokens: u64,
    encodings: Arc<Encodings>,
}

/// The parts of an empty transcript; shared, because most transcripts are empty when they are made.
static NOTHING: LazyLock<(Arc<Sealed>, Arc<Chunk>)> = LazyLock::new(Default::default);

type Chunk = Vec<Arc<Stored>>;
type Sealed = Vec<Arc<Chunk>>;

impl Default for Transcript {
    fn default() -> Self {
        let (sealed, tail) = (Arc::clone(&NOTHING.0), Arc::clone(&NOTHING.1));
        Self {
            sealed,
            tail,
            next: 0,
            tokens: 0,
            encodings: Arc::default(),
        }
    }
}

impl Transcript {
    /// An empty transcript.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends an entry under the next id.
    pub fn push(&mut self, entry: Entry) -> Arc<Stored> {
        let stored = Arc::new(Stored {
            id: EntryId(self.next),
            tokens: Estimate::entry(&entry),
            entry,
        });
        self.push_stored(Arc::clone(&stored));
        stored
    }

    /// Appends an entry of another transcript, under its id there.
    ///
    /// The next id grows past it. Invariant: that id is above all ids of this transcript.
    pub(crate) fn push_stored(&mut self, stored: Arc<Stored>) {
        self.next = self.next.max(stored.id.0 + 1);
        self.tokens = self.tokens.saturating_add(stored.tokens);
        let tail = Arc::make_mut(&mut self.tail);
        tail.push(stored);
        if tail.len() == CHUNK {
            let full = std::mem::replace(&mut self.tail, Arc::clone(&NOTHING.1));
            Arc::make_mut(&mut self.sealed).push(full);
        }
    }

    /// The transcript of these entries, under the ids that they have; the next one gets `next`.
    ///
    /// # Errors
    /// The first id that does not grow, or does not stand before `next`.
    pub fn from_stored(
        entries: impl IntoIterator<Item = Arc<Stored>>,
        next: EntryId,
    ) -> Result<Self, EntryId> {
        let mut transcript = Self::new();
        for stored in entries {
            if stored.id.0 < transcript.next || stored.id >= next {
                return Err(stored.id);
            }
            transcript.push_stored(stored);
        }
        transcript.next = next.0;
        Ok(transcript)
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.sealed.len() * CHUNK + self.tail.len()
    }

    /// True if it has no entries.
    pub fn is_empty(&self) -> bool {
        self.tail.is_empty() && self.sealed.is_empty()
    }

    /// The entry at a position, counted from 0.
    pub fn get(&self, at: usize) -> Option<&Arc<Stored>> {
        match self.sealed.get(at / CHUNK) {
            Some(chunk) => chunk.get(at % CHUNK),
            None => self.tail.get(at.checked_sub(self.sealed.len() * CHUNK)?),
        }
    }

    /// Returns the place of the entry with this id, counted from 0. A binary search, because ids ascend.
    pub fn position(&self, id: EntryId) -> Option<usize> {
        let chunk = self
            .sealed
            .partition_point(|chunk| chunk.last().is_some_and(|last| last.id < id));
        let within = self.sealed.get(chunk).unwrap_or(&self.tail);
        let at = within.binary_search_by_key(&id, |stored| stored.id).ok()?;
        Some(chunk * CHUNK + at)
    }

    /// The newest entry.
    pub fn last(&self) -> Option<&Arc<Stored>> {
        self.get(self.len().checked_sub(1)?)
    }

    /// The entries, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Stored>> {
        self.sealed
            .iter()
            .flat_map(|chunk| chunk.iter())
            .chain(self.tail.iter())
    }

    /// Returns the entries from a position on; costs only the yielded entries.
    pub fn iter_from(&self, at: usize) -> impl Iterator<Item = &Arc<Stored>> {
        (at..self.len()).filter_map(|at| self.get(at))
    }

    /// The estimated size of all entries in tokens.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The id that the next entry gets.
    pub fn next_id(&self) -> EntryId {
        EntryId(self.next)
    }

    /// Returns the slots in which wires keep the encoded bytes of this transcript and of its clones.
    pub fn encodings(&self) -> &Encodings {
        &self.encodings
    }

    /// The same entries, with encodings of their own: for a copy that will go its own way.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            encodings: Arc::default(),
            ..self.clone()
        }
    }
}

impl Index<usize> for Transcript {
    type Output = Entry;

    /// The entry at a position.
    ///
    /// # Panics
    /// If the position does not exist.
    #[expect(clippy::expect_used, reason = "the documented contract of Index")]
    fn index(&self, at: usize) -> &Entry {
        &self
            .get(at)
            .expect("the position is within the transcript")
            .entry
    }
}

impl PartialEq for Transcript {
    fn eq(&self, other: &Self) -> bool {
        self.next == other.next && self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl FromIterator<Entry> for Transcript {
    fn from_iter<I: IntoIterator<Item = Entry>>(entries: I) -> Self {
        let mut transcript = Transcript::new();
        for entry in entries {
            transcript.push(entry);
        }
        transcript
    }
}

impl Serialize for Transcript {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Raw<'a> {
            version: u32,
            next: u64,
            entries: Vec<&'a Arc<Stored>>,
        }
        Raw {
            version: VERSION,
            next: self.next,
            entries: self.iter().collect(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Transcript {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Raw {
            version: u32,
            next: u64,
            entries: Vec<Arc<Stored>>,
        }
        let raw = Raw::deserialize(deserializer)?;
        if raw.version != VERSION {
            return Err(de::Error::custom(format_args!(
                "transcript of version {}: this program reads {VERSION}",
                raw.version
            )));
        }
        Transcript::from_stored(raw.entries, EntryId(raw.next)).map_err(|id| {
            de::Error::custom(format_args!(
                "entry {} of a transcript is out of order",
                id.0
            ))
        })
    }
}

//! The last known states of the files that were read, so that unknown content is never overwritten.
//!
//! This process stores its own reads. The reads of other processes are taken from the results in the conversation.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use adjutant_llm::{CallResult, Entry};
use adjutant_tool::Conversation;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::digest::Digest;

/// The key in the details of a result for the states of files after the call: an object that maps paths, relative to
/// the root, to digests.
const DIGESTS: &str = "digests";
/// The maximum number of tracked files; beyond it, only the conversation determines which files were read.
const MAX_SEEN: usize = 10_000;

/// The digests of files, by their path from the root.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen(Arc<Mutex<BTreeMap<PathBuf, Digest>>>);

impl Seen {
    pub(super) fn note(&self, path: PathBuf, digest: Option<Digest>) {
        let mut seen = self.lock();
        if seen.len() >= MAX_SEEN {
            seen.clear();
        }
        match digest {
            Some(digest) => drop(seen.insert(path, digest)),
            None => drop(seen.remove(&path)),
        }
    }

    pub(super) fn digest(&self, path: &Path) -> Option<Digest> {
        self.lock().get(path).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Digest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds the states of files after the call to the details of a result; `None` for a deleted file.
pub(crate) fn tell<'a>(
    result: &mut CallResult,
    files: impl Iterator<Item = (&'a Path, Option<Digest>)>,
) {
    let digests = files.map(|(path, digest)| (path.to_string_lossy().into_owned(), json!(digest)));
    result.details[DIGESTS] = Value::Object(digests.collect());
}

/// Returns the state of a file after the last call of this conversation that read or wrote it.
pub(crate) fn told(conversation: &Conversation, path: &Path) -> Option<Digest> {
    let path = path.to_string_lossy();
    let told = |result: &CallResult| result.details.get(DIGESTS)?.get(&*path).cloned();
    let newest = conversation
        .so_far
        .iter()
        .rev()
        .find_map(|result| told(result));
    let earlier = || {
        conversation
            .history
            .iter()
            .rev()
            .find_map(|stored| match &stored.entry {
                Entry::Turn(turn) => turn.results().iter().rev().find_map(|result| told(result)),
                _ => None,
            })
    };
    Digest::deserialize(newest.or_else(earlier)?).ok()
}

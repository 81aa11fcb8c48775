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
use serde_json::{Map, Value, json};

use super::encoding::Encoding;
use crate::digest::Digest;

/// The key in the details of a result for the states of files after the call: an object that maps paths, relative to
/// the root, to digests.
const DIGESTS: &str = "digests";
/// The key in a result's details for the encodings of files that are not UTF-8: an object from paths to names.
const ENCODINGS: &str = "encodings";
/// The maximum number of tracked files; beyond it, only the conversation determines which files were read.
const MAX_SEEN: usize = 10_000;

/// The files that were read, by their path from the root.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen(Arc<Mutex<BTreeMap<PathBuf, SeenFile>>>);

/// A file as it was read, and its encoding.
#[derive(Debug, Clone)]
struct SeenFile {
    digest: Digest,
    encoding: Option<Encoding>,
}

impl Seen {
    pub(super) fn note(&self, path: PathBuf, digest: Option<Digest>, encoding: Option<Encoding>) {
        let mut seen = self.lock();
        if seen.len() >= MAX_SEEN {
            seen.clear();
        }
        match digest {
            Some(digest) => drop(seen.insert(path, SeenFile { digest, encoding })),
            None => drop(seen.remove(&path)),
        }
    }

    pub(super) fn digest(&self, path: &Path) -> Option<Digest> {
        self.lock().get(path).map(|file| file.digest.clone())
    }

    pub(super) fn encoding(&self, path: &Path) -> Option<Encoding> {
        self.lock().get(path)?.encoding
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, SeenFile>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds the states of files after the call to the details of a result; `None` for a deleted file.
pub(crate) fn tell<'a>(
    result: &mut CallResult,
    files: impl Iterator<Item = (&'a Path, Option<Digest>, Option<Encoding>)>,
) {
    let (mut digests, mut encodings) = (Map::new(), Map::new());
    for (path, digest, encoding) in files {
        let path = path.to_string_lossy();
        if let Some(encoding) = encoding.filter(|encoding| !encoding.is_utf8()) {
            encodings.insert(path.clone().into_owned(), json!(encoding.name()));
        }
        digests.insert(path.into_owned(), json!(digest));
    }
    result.details[DIGESTS] = Value::Object(digests);
    if !encodings.is_empty() {
        result.details[ENCODINGS] = Value::Object(encodings);
    }
}

/// Returns the state of a file after the last call of this conversation that read or wrote it.
pub(crate) fn told(conversation: &Conversation, path: &Path) -> Option<Digest> {
    Digest::deserialize(find(conversation, path, DIGESTS)?).ok()
}

/// The encoding in which a call of this conversation read the file, unless it is UTF-8.
pub(crate) fn encoding(conversation: &Conversation, path: &Path) -> Option<Encoding> {
    Encoding::from_label(find(conversation, path, ENCODINGS)?.as_str()?)
}

/// The latest value of a file under a key of the details.
fn find(conversation: &Conversation, path: &Path, key: &str) -> Option<Value> {
    let path = path.to_string_lossy();
    let told = |result: &CallResult| result.details.get(key)?.get(&*path).cloned();
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
    newest.or_else(earlier)
}

//! The files that were read, as they were then: so that nobody writes over what he does not know.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::digest::Digest;

/// The largest number of files that are remembered; with one more, all must be read again.
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

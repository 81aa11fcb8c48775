//! The search of all files of a walk, on two threads, with results in the order of the walk.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use adjutant_tool::{Cancel, ToolError};
use cap_std::fs::Dir;

use super::{
    grep::{FileHits, Grep},
    hits::Hits,
    root::open_regular,
    walk::Walk,
    work,
};

/// The number of files in a batch; each may hold the handle of a directory.
const BATCH: usize = 32;

/// The matches in some consecutive files of the walk.
type Found = Vec<(PathBuf, Option<FileHits>)>;

/// Two threads take turns at walking, and search at the same time.
struct Sweep<'a, W> {
    walk: Mutex<Numbered>,
    told: Mutex<Told>,
    wanted: &'a W,
    stop: &'a Cancel,
}

struct Numbered {
    walk: Walk,
    /// The number of batches that were handed out.
    taken: usize,
}

/// The results so far.
struct Told {
    hits: Hits,
    /// The number of the next batch to report.
    next: usize,
    /// Batches that finished before an earlier one.
    early: BTreeMap<usize, Found>,
    /// The number of their matches, and the bytes of their lines.
    waiting: (u64, usize),
}

/// Searches all matching files of a walk; also returns true if the walk stopped at its limit.
///
/// # Errors
/// `Cancelled` after a stop request, `Failed` if a thread failed.
pub(super) fn all<W: Fn(&Path) -> bool + Sync>(
    walk: Walk,
    mut grep: Grep,
    hits: Hits,
    wanted: W,
    stop: &Cancel,
) -> Result<(Hits, bool), ToolError> {
    let walk = Mutex::new(Numbered {
        walk: walk.without_sizes(),
        taken: 0,
    });
    let told = Mutex::new(Told {
        hits,
        next: 0,
        early: BTreeMap::new(),
        waiting: (0, 0),
    });
    let sweep = Sweep {
        walk,
        told,
        wanted: &wanted,
        stop,
    };
    let first = sweep.take();
    if first.1.len() < BATCH {
        sweep.perform(&mut grep, first)?;
        work::go_on(stop)?;
    } else {
        thread::scope(|scope| {
            let (sweep, own) = (&sweep, grep.clone());
            let helper = scope.spawn(move || sweep.go_on(own, None));
            let done = sweep.go_on(grep, Some(first));
            let helped = helper
                .join()
                .unwrap_or_else(|_| Err(ToolError::failed("a thread of the search broke down")));
            done.and(helped)
        })?;
    }
    let walk = sweep
        .walk
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .walk;
    let told = sweep
        .told
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    Ok((told.hits, walk.is_incomplete()))
}

type Batch = (usize, Vec<(Arc<Dir>, PathBuf)>);

impl<W: Fn(&Path) -> bool + Sync> Sweep<'_, W> {
    fn take(&self) -> Batch {
        let mut numbered = self.walk.lock().unwrap_or_else(PoisonError::into_inner);
        let mut batch = Vec::with_capacity(BATCH);
        while batch.len() < BATCH && !self.stop.is_cancelled() {
            let Some(file) = numbered.walk.next_file(self.wanted) else {
                break;
            };
            batch.push(file);
        }
        numbered.taken += 1;
        (numbered.taken - 1, batch)
    }

    fn go_on(&self, mut grep: Grep, first: Option<Batch>) -> Result<(), ToolError> {
        let mut batch = first.unwrap_or_else(|| self.take());
        while !batch.1.is_empty() && self.perform(&mut grep, batch)? {
            batch = self.take();
        }
        work::go_on(self.stop)
    }

    /// Searches the files of a batch; false if no more results are accepted.
    fn perform(&self, grep: &mut Grep, (number, batch): Batch) -> Result<bool, ToolError> {
        let search = |(dir, path): (Arc<Dir>, PathBuf)| {
            work::go_on(self.stop)?;
            let opened = path
                .file_name()
                .and_then(|name| open_regular(&dir, Path::new(name)).ok().flatten());
            let found = opened
                .map(|(file, _)| grep.search(file, self.stop))
                .transpose()?
                .flatten();
            Ok((path, found))
        };
        let found: Result<Found, ToolError> = batch.into_iter().map(search).collect();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(told.add(number, found?))
    }
}

impl Told {
    /// Adds the matches of a batch in order; false if no more results are accepted.
    fn add(&mut self, number: usize, found: Found) -> bool {
        let (matches, bytes) = amount(&found);
        self.waiting = (self.waiting.0 + matches, self.waiting.1 + bytes);
        self.early.insert(number, found);
        while let Some(found) = self.early.remove(&self.next) {
            let (matches, bytes) = amount(&found);
            self.waiting = (self.waiting.0 - matches, self.waiting.1 - bytes);
            self.next += 1;
            found
                .into_iter()
                .for_each(|(path, found)| self.hits.add(&path, found));
        }
        // Waiting results follow the current batch: if they exceed the limit, later ones are never used.
        !self.hits.is_full() && !self.hits.is_enough(self.waiting.0, self.waiting.1)
    }
}

/// Returns the number of matches in some files, and the bytes of their lines.
fn amount(found: &Found) -> (u64, usize) {
    found
        .iter()
        .flat_map(|(_, it)| it)
        .fold((0, 0), |(matches, bytes), it| {
            (matches + it.matches, bytes + it.bytes)
        })
}

//! A private view of a repository's directory for one command.
//!
//! git creates and renames its files directly in `.git`, where other names decide which programs it runs later, outside. No mount
//! can keep a name from appearing. So the command gets a copy of the top level, with the large directories mounted into it, and
//! only git's own state is copied between the two, in both directions, while the command runs and when it has ended.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs::{self, OpenOptions},
    io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use tempfile::TempDir;

use super::stamp::{HeldFolder, Stamp};

/// The directories that a command changes directly: they hold objects, references and their history.
const OPEN: [&str; 6] = ["objects", "refs", "logs", "lfs", "rr-cache", "reftable"];
/// The directories of an operation that is not finished: git creates and removes them.
const OPERATIONS: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];
/// Plain names of git's state in its directory, and beginnings and ends of such names.
/// Source: gitrepository-layout(5), and the pseudo references of gitrevisions(7), git 2.52, November 2026.
const STATE: [&str; 8] = [
    "index",
    "packed-refs",
    "shallow",
    "AUTO_MERGE",
    "description",
    "gc.log",
    "SQUASH_MSG",
    "HEAD",
];
const STATE_BEGINNINGS: [&str; 3] = ["MERGE_", "BISECT_", "sharedindex."];
const STATE_ENDINGS: [&str; 2] = ["_HEAD", "_EDITMSG"];
/// The files of `info` and of `objects/info` that are git's state.
const INFO: [&str; 2] = ["exclude", "sparse-checkout"];
const OBJECTS_INFO: [&str; 1] = ["packs"];
/// Names that git creates again when it needs them.
const PASSING: [&str; 4] = ["gc.pid", "refs", "commit-graph", "commit-graphs"];
/// The time that another git is waited for, and the wait between two attempts.
const ATTEMPTS: u32 = 20;
const WAIT: Duration = Duration::from_millis(50);

/// A part of the view: a directory and its private copy.
#[derive(Debug)]
struct Part {
    /// The directory, relative to the repository's.
    below: PathBuf,
    copy: PathBuf,
}

/// A view of one directory.
#[derive(Debug)]
pub(super) struct GitView {
    dir: PathBuf,
    real: HeldFolder,
    parts: Vec<Part>,
    /// Mounts inside the view, in their order: the place, the source, and true if it is writable.
    binds: Vec<(PathBuf, PathBuf, bool)>,
    /// The files as both sides had them: the real one, the copy.
    known: BTreeMap<PathBuf, (Option<Stamp>, Option<Stamp>)>,
    folders: Vec<Option<Stamp>>,
    /// True if no name has appeared or disappeared on either side since the copy was made.
    is_fresh: bool,
    /// Paths that a person allowed the command to write.
    writes: Vec<PathBuf>,
    /// Names that the command wrote and that were not copied.
    refused: BTreeSet<PathBuf>,
    /// Names that were changed on both sides.
    conflicts: BTreeSet<PathBuf>,
    /// The directory of the copies.
    _private: TempDir,
}

impl GitView {
    /// Copies the top level of a repository's directory to a private one.
    ///
    /// # Errors
    /// If the directory cannot be read, or the copy cannot be written.
    pub(super) fn new(dir: &Path, writes: &[PathBuf]) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("adjutant-git-").tempdir()?;
        let private = &folder.path().join("git");
        let mut view = Self {
            dir: dir.to_owned(),
            real: HeldFolder::new(dir)?,
            parts: Vec::new(),
            binds: vec![(dir.to_owned(), private.to_owned(), true)],
            known: BTreeMap::new(),
            folders: Vec::new(),
            is_fresh: true,
            writes: writes.to_vec(),
            refused: BTreeSet::new(),
            conflicts: BTreeSet::new(),
            _private: folder,
        };
        fs::create_dir(private)?;
        view.add_part("", private.to_owned());
        let is_repository = dir.join("objects").is_dir();
        for folder in ["logs", "info", "objects/info"] {
            // Empty ones decide nothing. In a view they could not be created.
            if is_repository {
                let _ = fs::create_dir(dir.join(folder));
            }
        }
        for folder in view.writes.iter().filter_map(|path| path.parent()) {
            if folder.parent() == Some(dir) {
                // A person allowed a file in it. If it cannot be created, the command reports that.
                let _ = fs::create_dir(folder);
            }
        }
        let mut entries: Vec<fs::DirEntry> = fs::read_dir(dir)?.collect::<io::Result<_>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            view.add(&entry, private)?;
        }
        let info = private.with_extension("objects-info");
        if is_repository && dir.join("objects/info").is_dir() {
            fs::create_dir(&info)?;
            let place = dir.join("objects/info");
            view.binds.push((place.clone(), info.clone(), true));
            view.keep_others("objects/info", &info)?;
            view.add_part("objects/info", info);
        }
        view.sync(false);
        view.folders = view.stamps();
        Ok(view)
    }

    /// Returns this view of an earlier command for another one, if it still shows the directory.
    pub(super) fn reuse(mut self, writes: &[PathBuf]) -> Option<Self> {
        if !self.is_fresh || self.writes != writes {
            return None;
        }
        self.sync(false);
        self.is_fresh = self.folders == self.stamps();
        self.is_fresh.then_some(self)
    }

    fn add_part(&mut self, below: &str, copy: PathBuf) {
        let below = PathBuf::from(below);
        self.parts.push(Part { below, copy });
    }

    /// Adds an entry of the top level.
    fn add(&mut self, entry: &fs::DirEntry, private: &Path) -> io::Result<()> {
        let (name, path, kind) = (entry.file_name(), entry.path(), entry.file_type()?);
        let copy = private.join(&name);
        let text = name.to_string_lossy();
        if kind.is_dir() {
            if OPERATIONS.contains(&&*text) {
                return Ok(());
            }
            fs::create_dir(&copy)?;
            let is_open = OPEN.contains(&&*text) || self.may_write(&path);
            let is_partly_written = self.writes.iter().any(|write| write.starts_with(&path));
            if text == "info" || !is_open && is_partly_written {
                self.keep_others(&text, &copy)?;
                self.add_part(&text, copy);
            } else {
                self.binds.push((path.clone(), path, is_open));
            }
        } else if kind.is_file() && !self.is_state(Path::new(""), &name) && !is_lock(&name) {
            fs::write(&copy, "")?;
            self.binds.push((path.clone(), path, false));
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&path)?, &copy)?;
        }
        Ok(())
    }

    /// Mounts the files next to git's state in a private directory read-only.
    fn keep_others(&mut self, below: &str, copy: &Path) -> io::Result<()> {
        for entry in fs::read_dir(self.dir.join(below))?.flatten() {
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            if self.is_state(Path::new(below), &name) || is_lock(&name) {
                continue;
            }
            if kind.is_dir() {
                fs::create_dir(copy.join(&name))?;
            } else if kind.is_file() {
                fs::write(copy.join(&name), "")?;
            } else {
                continue;
            }
            self.binds.push((entry.path(), entry.path(), false));
        }
        Ok(())
    }

    /// Returns the mounts in their order: the place, the source, and true if it is writable.
    pub(super) fn binds(&self) -> &[(PathBuf, PathBuf, bool)] {
        &self.binds
    }

    /// Copies what either side has changed, if the directories show that there may be something.
    pub(super) fn look(&mut self) {
        let folders = self.stamps();
        if folders != self.folders {
            self.sync(false);
            self.folders = self.stamps();
            self.is_fresh = false;
        }
    }

    /// Copies what either side has changed when the command has ended. Returns the paths that the command wrote and that
    /// were not copied, and the paths that were changed outside at the same time.
    pub(super) fn finish(&mut self) -> (BTreeSet<PathBuf>, BTreeSet<PathBuf>) {
        self.sync(true);
        self.is_fresh &= self.folders == self.stamps();
        self.collect_refused();
        let (refused, conflicts) = (&mut self.refused, &mut self.conflicts);
        self.is_fresh &= refused.is_empty() && conflicts.is_empty();
        (std::mem::take(refused), std::mem::take(conflicts))
    }

    /// The directory that it shows.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    fn stamps(&self) -> Vec<Option<Stamp>> {
        let of = |path: PathBuf| HeldFolder::new(&path).and_then(|it| it.own_stamp()).ok();
        self.parts
            .iter()
            .flat_map(|part| [of(self.dir.join(&part.below)), of(part.copy.clone())])
            .collect()
    }

    fn may_write(&self, path: &Path) -> bool {
        self.writes.iter().any(|write| path.starts_with(write))
    }

    /// Returns true for a file that is copied between both sides.
    fn is_state(&self, below: &Path, name: &OsStr) -> bool {
        if self.may_write(&self.dir.join(below).join(name)) {
            return true;
        }
        let Some(name) = name.to_str() else {
            return false;
        };
        match below.to_str() {
            Some("") => {
                STATE.contains(&name)
                    || STATE_BEGINNINGS.iter().any(|start| name.starts_with(start))
                    || STATE_ENDINGS.iter().any(|end| name.ends_with(end))
            }
            Some("info") => INFO.contains(&name),
            Some("objects/info") => OBJECTS_INFO.contains(&name),
            Some(operation) => OPERATIONS.contains(&operation) && !is_lock(name.as_ref()),
            None => false,
        }
    }

    /// Copies all files of git's state that one side has changed.
    fn sync(&mut self, is_last: bool) {
        for index in 0..self.parts.len() {
            let Some(part) = self.parts.get(index) else {
                return;
            };
            let (below, copy) = (part.below.clone(), part.copy.clone());
            if let (Ok(real), Ok(copy)) = (self.real.below(&below), HeldFolder::new(&copy)) {
                self.sync_folder(&below, &real, &copy, is_last);
            }
        }
        for operation in OPERATIONS.map(Path::new) {
            self.sync_operation(operation, is_last);
        }
    }

    /// The directory of an unfinished operation exists on both sides or on neither.
    fn sync_operation(&mut self, operation: &Path, is_last: bool) {
        let Some(Ok(top)) = self.parts.first().map(|part| HeldFolder::new(&part.copy)) else {
            return;
        };
        let is_known = self.known.contains_key(operation);
        let exists = |side: &HeldFolder| side.below(operation).is_ok();
        match (exists(&self.real), exists(&top)) {
            (false, false) => {
                self.known.remove(operation);
                return;
            }
            // Removed on one side: its files are removed on the other one, and then it is.
            (true, false) if !is_known => drop(fs::create_dir(top.entry(operation))),
            (false, true) if !is_known => drop(fs::create_dir(self.real.entry(operation))),
            (true, false) => {
                empty(&self.real, operation);
                self.known.retain(|path, _| !path.starts_with(operation));
                return;
            }
            (false, true) => {
                empty(&top, operation);
                self.known.retain(|path, _| !path.starts_with(operation));
                return;
            }
            (true, true) => {}
        }
        self.known.insert(operation.to_owned(), (None, None));
        if let (Ok(real), Ok(copy)) = (self.real.below(operation), top.below(operation)) {
            self.sync_folder(operation, &real, &copy, is_last);
        }
    }

    fn sync_folder(&mut self, below: &Path, real: &HeldFolder, copy: &HeldFolder, is_last: bool) {
        let mut names = BTreeSet::new();
        for side in [real, copy] {
            let entries = fs::read_dir(side.entry("."))
                .into_iter()
                .flatten()
                .flatten();
            names.extend(entries.map(|entry| entry.file_name()));
        }
        let known = self
            .known
            .keys()
            .filter(|path| path.parent() == Some(below));
        names.extend(known.filter_map(|path| Some(path.file_name()?.to_owned())));
        for name in names {
            if is_lock(&name) || !self.is_state(below, &name) {
                continue;
            }
            let path = below.join(&name);
            for _ in 0..if is_last { ATTEMPTS } else { 1 } {
                match self.sync_file(&path, Path::new(&name), real, copy) {
                    // Another git holds the file: it is done in a moment.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(_) => {
                        self.refused.insert(self.dir.join(&path));
                        break;
                    }
                    Ok(()) => break,
                }
                if is_last {
                    thread::sleep(WAIT);
                }
            }
        }
    }

    /// # Errors
    /// `AlreadyExists` while another git holds the file.
    fn sync_file(
        &mut self,
        path: &Path,
        name: &Path,
        real: &HeldFolder,
        copy: &HeldFolder,
    ) -> io::Result<()> {
        let now = (real.stamp(name)?, copy.stamp(name)?);
        let before = self.known.get(path).copied().unwrap_or_default();
        let is_same = || -> io::Result<bool> {
            let (mut first, mut second) = (Vec::new(), Vec::new());
            io::Read::read_to_end(&mut real.open(name)?, &mut first)?;
            io::Read::read_to_end(&mut copy.open(name)?, &mut second)?;
            Ok(first == second)
        };
        // The side that was read has its earlier stamp: if it changes meanwhile, it is copied again.
        let after = match (now.0 != before.0, now.1 != before.1) {
            (false, false) => return Ok(()),
            (false, true) => (put(copy, real, name, now.1.is_some())?, now.1),
            (true, true) if now == (None, None) || is_same().unwrap_or(false) => now,
            (true, is_conflict) => {
                if is_conflict {
                    self.conflicts.insert(self.dir.join(path));
                }
                (now.0, put(real, copy, name, now.0.is_some())?)
            }
        };
        self.known.insert(path.to_owned(), after);
        Ok(())
    }

    /// Finds the names that the command created in its copy and that are not git's state.
    fn collect_refused(&mut self) {
        for part in &self.parts {
            let entries = fs::read_dir(&part.copy).into_iter().flatten().flatten();
            for entry in entries {
                let name = entry.file_name();
                let path = self.dir.join(&part.below).join(&name);
                let is_mounted = self.binds.iter().any(|(place, ..)| *place == path);
                let is_operation = OPERATIONS.iter().any(|operation| name == *operation);
                let is_passing = is_lock(&name) || PASSING.iter().any(|passing| name == *passing);
                let is_known = self.is_state(&part.below, &name) || path.symlink_metadata().is_ok();
                if !(is_mounted || is_operation || is_passing || is_known) {
                    self.refused.insert(path);
                }
            }
        }
    }
}

/// Returns true for a file that git creates while it changes another one.
fn is_lock(name: &OsStr) -> bool {
    Path::new(name).extension().is_some_and(|end| end == "lock")
}

/// Copies a file to the other side, or removes it there. Returns the stamp of the copy.
fn put(from: &HeldFolder, to: &HeldFolder, name: &Path, exists: bool) -> io::Result<Option<Stamp>> {
    let place = to.entry(name);
    if !exists {
        return match fs::remove_file(place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(None),
        };
    }
    let mut source = from.open(name)?;
    let mut lock = place.clone().into_os_string();
    lock.push(".lock");
    let lock = PathBuf::from(lock);
    let mut target = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&lock)?;
    let written = io::copy(&mut source, &mut target)
        .and_then(|_| target.set_permissions(source.metadata()?.permissions()))
        .and_then(|()| fs::rename(&lock, &place))
        .and_then(|()| target.metadata());
    if written.is_err() {
        // The lock is this function's own.
        let _ = fs::remove_file(&lock);
    }
    Ok(Some(Stamp::from(&written?)))
}

/// Removes a directory of plain files.
fn empty(side: &HeldFolder, below: &Path) {
    let Ok(folder) = side.below(below) else {
        return;
    };
    for entry in fs::read_dir(folder.entry("."))
        .into_iter()
        .flatten()
        .flatten()
    {
        // A directory in it, or a file that is gone, stays as it is.
        let _ = fs::remove_file(folder.entry(entry.file_name()));
    }
    let _ = fs::remove_dir(side.entry(below));
}

//! The protected names below a root: files that other programs obey unasked, and repositories, which name programs that git runs.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ffi::OsString,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::stamp::Stamp;
use crate::obeyed;

/// The directories that are not searched: packages in them are not obeyed where people work.
const SKIPPED: [&str; 1] = ["node_modules"];
/// The largest number of directories that are searched.
const MOST: usize = 50_000;
/// The number of directories that one thread reads before others help, and the largest number of threads.
const ALONE: usize = 200;
const THREADS: usize = 4;
/// A directory that changed less than this ago may change again without another time of change.
const SETTLED: Duration = Duration::from_millis(50);

/// The mode bits with which an owner lists, changes and enters a directory.
const OPEN: u32 = 0o700;

/// A kind of protected entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file or directory that other programs obey.
    Obeyed,
    /// The directory `.git`.
    Git,
    /// The file or link `.git`.
    GitFile,
    /// The directory itself is a repository without working files.
    Bare,
}

/// A protected entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// Its name; empty for the directory itself.
    pub(super) name: OsString,
    pub(super) kind: Kind,
    pub(super) id: (u64, u64),
    is_link: bool,
}

/// A directory as it was read.
#[derive(Debug)]
struct Folder {
    stamp: Stamp,
    is_settled: bool,
    is_readable: bool,
    folders: Vec<OsString>,
    found: Vec<Found>,
}

/// The directories below a root and the protected entries in them.
#[derive(Debug, Clone, Default)]
pub(super) struct Tree {
    /// By their paths. Paths are slower to compare than texts.
    folders: BTreeMap<OsString, Arc<Folder>>,
    /// True if there are more directories than are searched.
    pub(super) is_cut: bool,
}

impl Tree {
    /// Reads the tree below a root. Directories that did not change are taken from the tree as it was before.
    pub(super) fn read(root: &Path, before: &Self) -> Self {
        let mut tree = Self::default();
        let open = tree.read_some(VecDeque::from([root.to_owned()]), before, ALONE);
        if open.is_empty() {
            return tree;
        }
        let threads = thread::available_parallelism().map_or(1, |count| count.get().min(THREADS));
        let parts: Vec<Mutex<VecDeque<PathBuf>>> = (0..threads).map(|_| Mutex::default()).collect();
        for (path, part) in open.into_iter().zip(parts.iter().cycle()) {
            lock(part).push_back(path);
        }
        let read = |part: &Mutex<VecDeque<PathBuf>>| {
            let (mut tree, open) = (Self::default(), std::mem::take(&mut *lock(part)));
            tree.is_cut = !tree.read_some(open, before, MOST / threads).is_empty();
            tree
        };
        let mut trees = Vec::new();
        thread::scope(|scope| {
            let others = parts.iter().skip(1).filter_map(|part| {
                let thread = thread::Builder::new();
                thread.spawn_scoped(scope, || read(part)).ok()
            });
            let others: Vec<_> = others.collect();
            trees.extend(parts.first().map(read));
            trees.extend(others.into_iter().filter_map(|thread| thread.join().ok()));
        });
        // The parts whose thread could not be started are left.
        trees.extend(parts.iter().map(read));
        for part in trees {
            tree.folders.extend(part.folders);
            tree.is_cut |= part.is_cut;
        }
        tree
    }

    /// Reads some of these directories and of those below them. Returns the rest.
    fn read_some(
        &mut self,
        mut open: VecDeque<PathBuf>,
        before: &Self,
        most: usize,
    ) -> VecDeque<PathBuf> {
        while self.folders.len() < most
            && let Some(path) = open.pop_front()
        {
            let Some(stamp) = stamp(&path) else { continue };
            let known = before.folders.get(path.as_os_str());
            let known = known.filter(|folder| folder.is_settled && folder.stamp == stamp);
            let folder = match known {
                Some(folder) => Arc::clone(folder),
                None => {
                    let known = before.folders.get(path.as_os_str());
                    let is_new = known.is_none_or(|folder| folder.is_readable);
                    if is_new && !before.folders.is_empty() {
                        make_readable(&path);
                    }
                    Arc::new(Folder::read(&path, stamp))
                }
            };
            for name in &folder.folders {
                let inner = path.join(name);
                // Known directories come first, so that new ones cannot use up the number.
                match before.folders.contains_key(inner.as_os_str()) {
                    true => open.push_front(inner),
                    false => open.push_back(inner),
                }
            }
            self.folders.insert(path.into(), folder);
        }
        open
    }

    /// Returns every protected entry with its path.
    pub(super) fn entries(&self) -> impl Iterator<Item = (PathBuf, &Found)> {
        self.folders.iter().flat_map(|(path, folder)| {
            let found = folder.found.iter();
            found.map(|found| (join(Path::new(path), &found.name), found))
        })
    }

    /// Returns the new entries of the root itself that other programs obey. New repositories are judged when they are complete.
    pub(super) fn appeared_at_top(&self, root: &Path) -> Vec<(PathBuf, Found)> {
        let (Some(before), Some(stamp)) = (self.folders.get(root.as_os_str()), stamp(root)) else {
            return Vec::new();
        };
        let now = Folder::read(root, stamp).found.into_iter();
        now.filter(|found| matches!(found.kind, Kind::Obeyed | Kind::GitFile))
            .filter(|found| {
                !before
                    .found
                    .iter()
                    .any(|old| old == found || old.is_same_kind(found))
            })
            .map(|found| (join(root, &found.name), found))
            .collect()
    }

    /// Returns the protected entries that are new since `before`.
    ///
    /// A moved directory keeps its entries, unless it takes the place of another one. An entry that was replaced in the same directory is not new: where mounts keep entries,
    /// only a program outside can replace it, and elsewhere its content is compared. A new directory may contain files that other programs obey, as a clone does: they are
    /// obeyed only where the user works.
    pub(super) fn appeared(&self, before: &Self) -> Vec<(PathBuf, Found)> {
        let key = |folder: &Folder, found: &Found| (folder.stamp.id, found.name.clone(), found.id);
        let known: BTreeSet<_> = before
            .folders
            .values()
            .flat_map(|folder| folder.found.iter().map(|found| key(folder, found)))
            .collect();
        let mut appeared = Vec::new();
        let folders = self.folders.iter();
        for (path, folder) in folders.filter(|(_, folder)| !folder.found.is_empty()) {
            let path = Path::new(path);
            let is_partial = path.file_name().is_some_and(|name| {
                obeyed::OBEYED.iter().any(|row| {
                    row.split_once('/')
                        .is_some_and(|(first, _)| name.eq_ignore_ascii_case(first))
                })
            });
            let place = match path.parent() {
                Some(parent) if is_partial => parent,
                _ => path,
            };
            let is_place_new = !before.folders.contains_key(place.as_os_str());
            for found in &folder.found {
                let is_moved = known.contains(&key(folder, found));
                let is_replaced = || {
                    let before = before.folders.get(path.as_os_str());
                    before.is_some_and(|before| {
                        before.stamp.id == folder.stamp.id
                            && before.found.iter().any(|old| old.is_same_kind(found))
                    })
                };
                let takes_place = || {
                    let before = before.folders.get(path.as_os_str());
                    matches!(found.kind, Kind::Obeyed | Kind::GitFile)
                        && before.is_some_and(|before| before.stamp.id != folder.stamp.id)
                };
                // A place that was not searched before may be old.
                let is_harmless = is_place_new && (found.kind == Kind::Obeyed || before.is_cut);
                if (!is_moved || takes_place()) && !is_harmless && !is_replaced() {
                    appeared.push((join(path, &found.name), found.clone()));
                }
            }
        }
        // A link that replaced a directory, with such files below its target.
        for path in before.folders.keys().map(Path::new) {
            if self.folders.contains_key(path.as_os_str()) || !path.is_symlink() {
                continue;
            }
            let target = path.canonicalize().unwrap_or_default();
            let found = self
                .folders
                .iter()
                .filter(|(folder, _)| Path::new(folder).starts_with(&target))
                .find_map(|(_, folder)| folder.found.first());
            appeared.extend(found.map(|found| {
                let kind = Kind::Obeyed;
                (
                    path.to_owned(),
                    Found {
                        kind,
                        ..found.clone()
                    },
                )
            }));
        }
        appeared
    }
}

/// Lets this user read and change its own directory: a command may have made it unreadable, to hide the content.
fn make_readable(path: &Path) {
    if let Ok(metadata) = path.symlink_metadata()
        && metadata.mode() & OPEN != OPEN
    {
        // Only its owner can.
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(metadata.mode() | OPEN));
    }
}

impl Found {
    /// Returns true for an entry of the same name and kind; a link is never the same.
    fn is_same_kind(&self, other: &Self) -> bool {
        self.name == other.name && self.kind == other.kind && !self.is_link && !other.is_link
    }
}

impl Folder {
    fn read(path: &Path, stamp: Stamp) -> Self {
        let mut folder = Self {
            stamp,
            is_settled: is_settled(stamp),
            is_readable: true,
            folders: Vec::new(),
            found: Vec::new(),
        };
        let parent = path.file_name().unwrap_or_default();
        let is_in_obeyed = obeyed::is_obeyed(Path::new(parent));
        let names: Vec<&str> = obeyed::names_in(parent).collect();
        let mut parts = BTreeSet::new();
        let entries = fs::read_dir(path);
        folder.is_readable = entries.is_ok();
        for entry in entries.into_iter().flatten().flatten() {
            let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else {
                continue;
            };
            let is_git = name.eq_ignore_ascii_case(".git");
            let is_obeyed = is_git
                || is_in_obeyed
                || names.iter().any(|obeyed| obeyed::fits(&name, obeyed))
                || kind.is_symlink() && is_beginning(&name);
            if is_obeyed {
                let id = entry.metadata().map(|it| (it.dev(), it.ino()));
                folder.found.push(Found {
                    is_link: kind.is_symlink(),
                    name: name.clone(),
                    kind: match (is_git, kind.is_dir()) {
                        (true, true) => Kind::Git,
                        (true, false) => Kind::GitFile,
                        (false, _) => Kind::Obeyed,
                    },
                    id: id.unwrap_or_default(),
                });
            } else if kind.is_dir() && !SKIPPED.iter().any(|skipped| name == *skipped) {
                folder.folders.push(name.clone());
            }
            if ["HEAD", "commondir", "objects", "refs"]
                .iter()
                .any(|part| name == *part)
            {
                parts.insert(name);
            }
        }
        // Source: is_git_directory() of git's setup.c, November 2026.
        let has = |name: &str| parts.contains(std::ffi::OsStr::new(name));
        if has("HEAD") && (has("commondir") || has("objects") && has("refs")) {
            folder.found.push(Found {
                name: OsString::new(),
                kind: Kind::Bare,
                id: stamp.id,
                is_link: false,
            });
        }
        folder
    }
}

fn lock<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns true for the first part of a path that other programs obey.
fn is_beginning(name: &std::ffi::OsStr) -> bool {
    obeyed::OBEYED
        .iter()
        .filter_map(|row| row.split_once('/'))
        .any(|(first, _)| name.eq_ignore_ascii_case(first))
}

fn join(path: &Path, name: &OsString) -> PathBuf {
    if name.is_empty() {
        path.to_owned()
    } else {
        path.join(name)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = path.symlink_metadata().ok()?;
    metadata.is_dir().then(|| Stamp::from(&metadata))
}

fn is_settled(stamp: Stamp) -> bool {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let (seconds, nanos) = stamp.changed;
    let changed = Duration::new(
        u64::try_from(seconds).unwrap_or_default(),
        u32::try_from(nanos).unwrap_or_default(),
    );
    now.saturating_sub(changed) > SETTLED
}

/// Returns the existing names in a repository's directory that decide which programs git runs.
pub(super) fn git_names(dir: &Path, depth: u32) -> Vec<PathBuf> {
    let mut names: Vec<PathBuf> = [
        "commondir",
        "gitdir",
        "info/attributes",
        "objects/info/alternates",
        "objects/info/http-alternates",
    ]
    .map(|name| dir.join(name))
    .into();
    let entries = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
    names.extend(
        entries(dir.to_owned())
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("config"))
            .filter(|entry| entry.path().extension().is_none_or(|end| end != "lock"))
            .map(|entry| entry.path()),
    );
    let is_sample = |path: &Path| path.extension().is_some_and(|end| end == "sample");
    let hooks = entries(dir.join("hooks")).map(|entry| entry.path());
    names.extend(hooks.filter(|hook| !is_sample(hook)));
    for entry in entries(dir.join("worktrees")) {
        names
            .extend(["commondir", "gitdir", "config.worktree"].map(|name| entry.path().join(name)));
    }
    if depth > 0 {
        for entry in
            entries(dir.join("modules")).filter(|it| it.file_type().is_ok_and(|it| it.is_dir()))
        {
            names.extend(git_names(&entry.path(), depth - 1));
            // The name of a submodule may contain slashes.
            if !entry.path().join("HEAD").exists() {
                names.extend(
                    entries(entry.path()).flat_map(|inner| git_names(&inner.path(), depth - 1)),
                );
            }
        }
    }
    // Names that were renamed to be harmless stay so.
    let is_blocked = |name: &PathBuf| name.to_string_lossy().contains(".blocked");
    names.retain(|name| !is_blocked(name) && name.symlink_metadata().is_ok());
    names
}

//! Keeps the protected names below a root: in a sandbox with mounts existing ones cannot be changed, and in every sandbox the tree is
//! compared when a command has ended. Changes that no person allowed are undone or moved out of the way, and reported.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    git_view::GitView,
    harmless,
    repository::{Repository, list_named_files},
    stamp::{HeldFolder, Stamp},
    tree::{Found, Kind, Tree, git_names},
};
use crate::obeyed;

/// The largest number of repositories below a root in which git can write. Others can be read.
const REPOSITORIES: usize = 16;
/// The largest file that is restored, in bytes, and the largest number of files.
const LARGEST: u64 = 1 << 20;
const MOST: usize = 2_000;
/// The number of submodules inside each other that are searched.
const MODULES: u32 = 4;
/// The largest number of paths in a note.
const NAMED: usize = 10;

/// The protected names below one root, for all commands that write there.
#[derive(Debug)]
pub(super) struct Guard {
    root: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    tree: Tree,
    /// True once a result has reported that the tree is too large.
    is_cut_reported: bool,
    /// Views of commands that have ended, for the next command.
    views: BTreeMap<PathBuf, GitView>,
}

/// A file as it was before a command.
#[derive(Debug)]
struct Saved {
    stamp: Stamp,
    /// Its bytes and its mode; `None` if it is too large.
    content: Option<(Vec<u8>, u32)>,
    /// True if its directory is a link.
    is_behind_link: bool,
}

/// The target of a link: a directory, or the content of a file.
#[derive(Debug, PartialEq, Eq)]
enum LinkTarget {
    Folder(u64, u64),
    File(Vec<u8>),
}

impl LinkTarget {
    fn read(link: &Path) -> Option<Self> {
        let metadata = link.metadata().ok()?;
        if metadata.is_dir() {
            return Some(Self::Folder(metadata.dev(), metadata.ino()));
        }
        let is_small = metadata.is_file() && metadata.len() <= LARGEST;
        is_small.then(|| fs::read(link).ok())?.map(Self::File)
    }
}

/// The guard during one command.
#[derive(Debug)]
pub(super) struct Watch {
    guard: Arc<Guard>,
    views: Vec<GitView>,
    /// Paths that are mounted so that they cannot be changed.
    pub(super) kept: Vec<PathBuf>,
    /// Without mounts: the files as they were, and the repositories.
    saved: BTreeMap<PathBuf, Saved>,
    /// Protected names that are links, and their targets.
    links: Vec<(PathBuf, LinkTarget)>,
    repositories: Vec<PathBuf>,
    writes: Vec<PathBuf>,
    root: Option<Stamp>,
    /// False for a program that runs as long as its session: most changes in that time are not its own.
    pub(super) is_judging: bool,
    notes: Notes,
}

/// The report about protected names for a command's result.
#[derive(Debug, Default)]
struct Notes {
    unwritten: BTreeSet<PathBuf>,
    moved: BTreeSet<PathBuf>,
    restored: BTreeSet<PathBuf>,
    changed: BTreeSet<PathBuf>,
    disarmed: BTreeSet<PathBuf>,
    conflicts: BTreeSet<PathBuf>,
    is_cut: bool,
}

impl Guard {
    pub(super) fn new(root: &Path) -> Arc<Self> {
        Arc::new(Self {
            root: root.to_owned(),
            state: Mutex::default(),
        })
    }

    /// Starts to watch a command that may write these protected paths.
    ///
    /// # Errors
    /// If a repository cannot be prepared.
    pub(super) fn watch(
        self: &Arc<Self>,
        repository: Option<&Repository>,
        writes: &[PathBuf],
        has_mounts: bool,
    ) -> Result<Watch, String> {
        let mut watch = Watch {
            guard: Arc::clone(self),
            views: Vec::new(),
            kept: Vec::new(),
            saved: BTreeMap::new(),
            links: Vec::new(),
            repositories: Vec::new(),
            writes: writes.iter().map(|path| self.root.join(path)).collect(),
            root: None,
            is_judging: true,
            notes: Notes::default(),
        };
        let mut state = self.lock();
        let tree = Tree::read(&self.root, &state.tree);
        if state.running > 0 {
            // Another command may have written them.
            watch.judge(tree.appeared(&state.tree));
        } else {
            obeyed::forget_allowed(&self.root);
        }
        state.tree = tree;
        state.running += 1;
        watch.notes.is_cut = state.tree.is_cut && !state.is_cut_reported;
        state.is_cut_reported |= state.tree.is_cut;
        let mut repositories: BTreeSet<PathBuf> = repository
            .iter()
            .flat_map(|repository| [repository.common.clone(), repository.git.clone()])
            .collect();
        for (path, found) in state.tree.entries() {
            match found.kind {
                Kind::Obeyed => watch.kept.push(path),
                Kind::Git | Kind::Bare => drop(repositories.insert(path)),
                Kind::GitFile => {
                    // Only the directories of repositories below the root are mounted.
                    let inner = path.parent().and_then(Repository::at).into_iter();
                    let inner = inner.flat_map(|inner| [inner.common, inner.git]);
                    let is_inside =
                        |dir: &PathBuf| repositories.iter().any(|other| dir.starts_with(other));
                    let inner: Vec<PathBuf> = inner
                        .filter(|dir| dir.starts_with(&self.root) || is_inside(dir))
                        .collect();
                    repositories.extend(inner);
                    watch.kept.push(path);
                }
            }
        }
        drop(state);
        let named = repositories
            .iter()
            .flat_map(|dir| list_named_files(dir, &self.root));
        watch.kept.extend(named);
        let writes = watch.writes.clone();
        let is_allowed = |path: &Path| writes.iter().any(|write| path.starts_with(write));
        watch.kept.retain(|path| !is_allowed(path));
        let links = watch.kept.iter().filter(|path| path.is_symlink());
        watch.links = links
            .filter_map(|link| Some((link.clone(), LinkTarget::read(link)?)))
            .collect();
        watch.kept = watch
            .kept
            .iter()
            .filter_map(|path| self.real(path))
            .collect();
        if has_mounts {
            watch.mount(repositories)?;
        } else {
            watch.repositories = repositories.into_iter().collect();
            watch.saved = watch.files().into_iter().filter_map(save).collect();
        }
        watch.root = root_stamp(&self.root);
        Ok(watch)
    }

    /// Returns the file that a link in the root leads to, if that is in the root; other files as they are.
    fn real(&self, path: &Path) -> Option<PathBuf> {
        if !path.is_symlink() {
            return Some(path.to_owned());
        }
        let real = path.canonicalize().ok()?;
        real.starts_with(&self.root).then_some(real)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves an entry below the root out of the way.
    fn block(&self, path: &Path) -> std::io::Result<()> {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        let folder = HeldFolder::new(&self.root)?.below(below.parent().unwrap_or(Path::new("")))?;
        let name = below.file_name().map(Path::new).unwrap_or(below);
        folder.block(name).map(drop)
    }
}

impl Watch {
    /// Prepares a view of each repository, the outer ones first.
    fn mount(&mut self, repositories: BTreeSet<PathBuf>) -> Result<(), String> {
        for (number, dir) in repositories.into_iter().enumerate() {
            if number >= REPOSITORIES {
                self.kept.push(dir);
                continue;
            }
            let earlier = self.guard.lock().views.remove(&dir);
            let view = match earlier.and_then(|view| view.reuse(&self.writes)) {
                Some(view) => view,
                None => GitView::new(&dir, &self.writes)
                    .map_err(|error| format!("{} cannot be copied: {error}", dir.display()))?,
            };
            self.views.push(view);
        }
        Ok(())
    }

    /// Returns the mounts in their order: the place, the source, and true if it is writable.
    pub(super) fn binds(&self) -> impl Iterator<Item = &(PathBuf, PathBuf, bool)> {
        self.views.iter().flat_map(GitView::binds)
    }

    /// Looks at the most exposed names while the command runs.
    pub(super) fn look(&mut self) {
        self.views.iter_mut().for_each(GitView::look);
        let now = root_stamp(&self.guard.root);
        if now == self.root {
            return;
        }
        self.root = now;
        let appeared = {
            let state = self.guard.lock();
            state.tree.appeared_at_top(&self.guard.root)
        };
        self.judge(appeared);
    }

    /// Compares the tree when the command has ended, and returns the lines for its result.
    pub(super) fn finish(mut self) -> Vec<String> {
        for mut view in std::mem::take(&mut self.views) {
            let (unwritten, conflicts) = view.finish();
            self.notes.unwritten.extend(unwritten);
            self.notes.conflicts.extend(conflicts);
            let dir = view.dir().to_owned();
            self.guard.lock().views.insert(dir, view);
        }
        let guard = Arc::clone(&self.guard);
        {
            let mut state = guard.lock();
            let tree = Tree::read(&guard.root, &state.tree);
            let appeared = tree.appeared(&state.tree);
            let is_changed = !appeared.is_empty();
            self.judge(appeared);
            state.tree = if is_changed {
                Tree::read(&guard.root, &tree)
            } else {
                tree
            };
        }
        self.restore();
        for (link, before) in std::mem::take(&mut self.links) {
            let now = LinkTarget::read(&link).filter(|_| link.is_symlink());
            let real = link.canonicalize().unwrap_or_default();
            let is_allowed = [&link, &real]
                .iter()
                .any(|path| self.may_write(path) || obeyed::is_allowed(path));
            // Its target was moved away, and another one is in its place.
            if now.is_some_and(|now| now != before)
                && !is_allowed
                && self.is_judging
                && guard.block(&link).is_ok()
            {
                self.notes.moved.insert(link);
            }
        }
        std::mem::take(&mut self.notes).lines(&guard.root)
    }

    /// Decides about new protected entries.
    fn judge(&mut self, appeared: Vec<(PathBuf, Found)>) {
        for (path, found) in appeared {
            if !self.is_judging || self.may_write(&path) || obeyed::is_allowed(&path) {
                continue;
            }
            let is_repository = match found.kind {
                Kind::Git | Kind::Bare => true,
                // It counts if the directory that it names refers back to it.
                Kind::GitFile => {
                    let inner = path.parent().and_then(Repository::at);
                    inner.is_some_and(|inner| inner.common.starts_with(&self.guard.root))
                }
                Kind::Obeyed => false,
            };
            if !is_repository {
                match self.guard.block(&path) {
                    Ok(()) => drop(self.notes.moved.insert(path)),
                    Err(_) => drop(self.notes.changed.insert(path)),
                }
            } else if found.kind != Kind::GitFile {
                let disarmed = harmless::disarm(&path, &self.guard.root);
                self.notes.disarmed.extend(disarmed);
            }
        }
    }

    fn may_write(&self, path: &Path) -> bool {
        self.writes.iter().any(|write| path.starts_with(write))
    }

    /// Returns the protected files, where no mount keeps them.
    fn files(&self) -> BTreeSet<PathBuf> {
        let mut files = BTreeSet::new();
        let mut open = self.kept.clone();
        open.extend(
            self.repositories
                .iter()
                .flat_map(|dir| git_names(dir, MODULES)),
        );
        while let Some(path) = open.pop() {
            if files.len() >= MOST || self.may_write(&path) {
                continue;
            }
            if path.is_dir() && !path.is_symlink() {
                let entries = fs::read_dir(&path).into_iter().flatten().flatten();
                open.extend(entries.map(|entry| entry.path()));
            } else {
                files.insert(path);
            }
        }
        files
    }

    /// Without mounts: restores changed files, and moves new ones out of the way.
    fn restore(&mut self) {
        let saved = std::mem::take(&mut self.saved);
        if saved.is_empty() && self.repositories.is_empty() {
            return;
        }
        for (path, before) in &saved {
            let now = path.symlink_metadata().ok();
            let is_same = now.as_ref().map(Stamp::from) == Some(before.stamp);
            let is_plain = now.is_some_and(|now| now.is_file());
            if obeyed::is_allowed(path) {
                continue;
            }
            let Some((bytes, mode)) = &before.content else {
                if !is_same {
                    self.notes.changed.insert(path.clone());
                }
                continue;
            };
            if is_same || is_plain && fs::read(path).is_ok_and(|now| now == *bytes) {
                continue;
            }
            let parent = path.parent().filter(|parent| parent.is_symlink());
            if let Some(parent) = parent.filter(|_| !before.is_behind_link) {
                // If it stays, so does the change, which is reported.
                let _ = self.guard.block(parent);
            }
            let done = write_back(path, bytes, *mode);
            let list = if done.is_ok() {
                &mut self.notes.restored
            } else {
                &mut self.notes.changed
            };
            list.insert(path.clone());
        }
        for path in self.files() {
            if saved.contains_key(&path) || obeyed::is_allowed(&path) {
                continue;
            }
            // A link that replaced its directory is itself moved.
            let path = match path.parent() {
                Some(parent) if parent.is_symlink() => parent.to_owned(),
                _ => path,
            };
            let folder = path.parent().map(HeldFolder::new);
            let name = path.file_name().map(Path::new).unwrap_or(&path);
            let is_moved = matches!(folder, Some(Ok(folder)) if folder.block(name).is_ok());
            let list = if is_moved {
                &mut self.notes.moved
            } else {
                &mut self.notes.changed
            };
            list.insert(path);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.guard.lock().running -= 1;
    }
}

impl Notes {
    fn lines(self, root: &Path) -> Vec<String> {
        let named = |paths: &BTreeSet<PathBuf>| names(paths.iter().map(PathBuf::as_path), root);
        let hint = |paths: &BTreeSet<PathBuf>| hint(paths.iter().map(PathBuf::as_path), root);
        let mut lines = Vec::new();
        let mut add = |paths: &BTreeSet<PathBuf>, text: String| {
            if !paths.is_empty() {
                lines.push(text);
            }
        };
        let list = &self.unwritten;
        add(
            list,
            format!("not written: {}; {}", named(list), hint(list)),
        );
        let list = &self.moved;
        add(
            list,
            format!(
                "renamed to a name that ends in `.blocked`, because other programs obey it: {}; {}",
                named(list),
                hint(list)
            ),
        );
        let list = &self.restored;
        add(list, format!("restored: {}; {}", named(list), hint(list)));
        let list = &self.changed;
        add(
            list,
            format!(
                "changed, and other programs obey it: {}; tell the user",
                named(list)
            ),
        );
        let list = &self.disarmed;
        add(
            list,
            format!(
                "a new repository must not run programs, so this was renamed to a name that ends in `.blocked`: {}",
                named(list)
            ),
        );
        let list = &self.conflicts;
        add(
            list,
            format!(
                "changed outside at the same time, and kept as it is there: {}",
                named(list)
            ),
        );
        if self.is_cut {
            lines.push(
                "the directory is too large: not all of it is checked for protected files".into(),
            );
        }
        lines
    }
}

fn names<'a>(paths: impl Iterator<Item = &'a Path> + Clone, root: &Path) -> String {
    let count = paths.clone().count();
    let shown: Vec<String> = paths
        .take(NAMED)
        .map(|path| format!("`{}`", path.strip_prefix(root).unwrap_or(path).display()))
        .collect();
    match count.saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Returns the hint about the argument for a change.
pub(super) fn hint<'a>(paths: impl Iterator<Item = &'a Path>, root: &Path) -> String {
    let paths: Vec<String> = paths
        .take(NAMED)
        .map(|path| format!("{:?}", path.strip_prefix(root).unwrap_or(path)))
        .collect();
    format!(
        "hint: repeat the call with `writes: [{}]`, which asks the user",
        paths.join(", ")
    )
}

fn root_stamp(root: &Path) -> Option<Stamp> {
    root.symlink_metadata().ok().as_ref().map(Stamp::from)
}

fn save(path: PathBuf) -> Option<(PathBuf, Saved)> {
    let metadata = path.symlink_metadata().ok()?;
    let content = if metadata.is_file() && metadata.len() <= LARGEST {
        fs::read(&path)
            .ok()
            .map(|bytes| (bytes, metadata.permissions().mode()))
    } else {
        None
    };
    let stamp = Stamp::from(&metadata);
    let is_behind_link = path.parent().is_some_and(Path::is_symlink);
    let saved = Saved {
        stamp,
        content,
        is_behind_link,
    };
    Some((path, saved))
}

/// Writes a file as it was, in the place of whatever is there now.
fn write_back(path: &Path, bytes: &[u8], mode: u32) -> std::io::Result<()> {
    let missing = || std::io::Error::from(std::io::ErrorKind::NotFound);
    let parent = path.parent().ok_or_else(missing)?;
    fs::create_dir_all(parent)?;
    let folder = HeldFolder::new(parent)?;
    folder.make_writable();
    let name = Path::new(path.file_name().ok_or_else(missing)?);
    if folder
        .entry(name)
        .symlink_metadata()
        .is_ok_and(|it| it.is_dir())
    {
        folder.block(name)?;
    }
    let file = tempfile::NamedTempFile::new_in(folder.entry("."))?;
    fs::write(file.path(), bytes)?;
    fs::set_permissions(file.path(), fs::Permissions::from_mode(mode))?;
    fs::rename(file.path(), folder.entry(name))?;
    // Its name is gone.
    drop(file);
    Ok(())
}

//! A walk below a directory, through handles only: sorted, without hidden and ignored entries, following no link.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    vec,
};

use adjutant_tool::ToolError;
use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, DirEntry, FileType};

use super::{ignored::Ignored, root::Root, show};

/// The largest depth of a walk; each level holds one handle.
pub(super) const MAX_DEPTH: usize = 64;
/// The maximum number of entries that a walk visits, including hidden and ignored ones.
pub(super) const MAX_ENTRIES: usize = 200_000;

/// A walk, depth first.
#[derive(Debug)]
pub(super) struct Walk {
    root: Root,
    levels: Vec<Level>,
    max_depth: usize,
    sizes: bool,
    left: usize,
    incomplete: bool,
    unreadable: u64,
}

/// An entry of the walk.
#[derive(Debug, Clone)]
pub(super) struct WalkEntry {
    /// Relative to the root.
    pub(super) path: PathBuf,
    /// Counted from 1 for the entries of the start directory.
    pub(super) depth: usize,
    pub(super) kind: Kind,
    /// In bytes.
    pub(super) size: u64,
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Dir,
    Link,
    Other,
}

#[derive(Debug)]
struct Level {
    dir: Arc<Dir>,
    at: PathBuf,
    ignored: Ignored,
    entries: vec::IntoIter<(OsString, DirEntry)>,
}

impl Walk {
    /// Starts a walk below a directory at `at`; `asked` is the path as the model wrote it.
    pub(super) fn below(
        root: &Root,
        dir: Dir,
        at: &Path,
        asked: &str,
        max_depth: usize,
    ) -> Result<Self, ToolError> {
        let above = Ignored::above(root.dir(), at);
        let max_depth = max_depth.clamp(1, MAX_DEPTH);
        let mut walk = Self {
            root: root.clone(),
            levels: Vec::new(),
            max_depth,
            sizes: true,
            left: MAX_ENTRIES,
            incomplete: false,
            unreadable: 0,
        };
        let entered = walk.descend(dir, at.to_owned(), &above);
        entered.map_err(|error| {
            ToolError::failed(format!(
                "cannot list {}: {}",
                show::quoted(asked),
                error.kind()
            ))
        })?;
        Ok(walk)
    }

    /// Skips the sizes, which are slow to read: they are 0.
    pub(super) fn without_sizes(self) -> Self {
        Self {
            sizes: false,
            ..self
        }
    }

    /// Returns the next matching file, with its directory.
    pub(super) fn next_file(
        &mut self,
        wanted: impl Fn(&Path) -> bool,
    ) -> Option<(Arc<Dir>, PathBuf)> {
        let found = self
            .by_ref()
            .find(|found| found.kind == Kind::File && wanted(&found.path))?;
        // The directory of the last entry is on top, because an entered directory is not a file.
        Some((Arc::clone(&self.levels.last()?.dir), found.path))
    }

    /// True if the walk stopped at its limit of entries.
    pub(super) fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// Returns the number of directories that could not be read.
    pub(super) fn unreadable(&self) -> u64 {
        self.unreadable
    }

    fn descend(&mut self, dir: Dir, at: PathBuf, above: &Ignored) -> io::Result<()> {
        let ignored = above.enter(&dir, &at);
        let mut entries = Vec::new();
        for entry in dir.entries()? {
            if self.left == 0 {
                self.incomplete = true;
                break;
            }
            self.left -= 1;
            let entry = entry?;
            let name = entry.file_name();
            if !name.as_encoded_bytes().starts_with(b".") {
                entries.push((name, entry));
            }
        }
        entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        self.levels.push(Level {
            dir: Arc::new(dir),
            at,
            ignored,
            entries: entries.into_iter(),
        });
        Ok(())
    }

    fn enter(&mut self, found: &WalkEntry) {
        let (Some(level), Some(name)) = (self.levels.last(), found.path.file_name()) else {
            return;
        };
        let ignored = level.ignored.clone();
        // Does not follow a link that may have replaced the directory.
        let entered = level.dir.open_dir_nofollow(name);
        if entered
            .and_then(|dir| self.descend(dir, found.path.clone(), &ignored))
            .is_err()
        {
            self.unreadable += 1;
        }
    }
}

impl Iterator for Walk {
    type Item = WalkEntry;

    fn next(&mut self) -> Option<WalkEntry> {
        loop {
            let (depth, sizes) = (self.levels.len(), self.sizes);
            let level = self.levels.last_mut()?;
            let Some((name, entry)) = level.entries.next() else {
                self.levels.pop();
                continue;
            };
            let Some(found) = level.look(&name, &entry, depth, sizes) else {
                continue;
            };
            if self.root.closes(&found.path).is_some() {
                continue;
            }
            if found.kind == Kind::Dir && depth < self.max_depth {
                self.enter(&found);
            }
            return Some(found);
        }
    }
}

impl Level {
    /// Inspects an entry; `None` if it is omitted, or was removed in the meantime.
    fn look(
        &self,
        name: &OsString,
        entry: &DirEntry,
        depth: usize,
        sizes: bool,
    ) -> Option<WalkEntry> {
        let kind_of = |it: FileType| match it {
            it if it.is_dir() => Kind::Dir,
            it if it.is_file() => Kind::File,
            it if it.is_symlink() => Kind::Link,
            _ => Kind::Other,
        };
        // Directory entries contain the file type, but not on every file system.
        let told = entry
            .file_type()
            .ok()
            .map(kind_of)
            .filter(|kind| *kind != Kind::Other && !sizes);
        let (kind, size) = match told {
            Some(kind) => (kind, 0),
            None => entry
                .metadata()
                .ok()
                .map(|it| (kind_of(it.file_type()), it.len()))?,
        };
        let path = self.at.join(name);
        let hidden = self.ignored.hides(&path, kind == Kind::Dir);
        (!hidden).then_some(WalkEntry {
            path,
            depth,
            kind,
            size,
        })
    }
}

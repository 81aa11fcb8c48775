//! Undo: the previous content of files that agents change is saved, and exactly those files are restored.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant_tool::ToolError;
use cap_std::{ambient_authority, fs::Dir};

use crate::{
    Error, ErrorKind, Files,
    change::{Change, FileChange, Present, place, present, put, turn},
    digest::Digest,
    files::{Copied, copy},
};

/// The maximum number of bytes that one directory stores.
const MAX_KEPT: u64 = 4 * 1024 * 1024 * 1024;

/// Saves files in a separate directory before an agent changes them, each under its digest.
///
/// The changes are in the log of the run, as notes that [`FileChange::from_note`] reads. Clones share the directory.
#[derive(Debug, Clone)]
pub struct Undo {
    folder: Arc<PathBuf>,
}

/// A copy of a directory with the files as an agent had them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ForkedFiles {
    /// The number of files.
    pub files: u64,
    /// The number of their bytes.
    pub bytes: u64,
    /// The paths that were not copied: pipes and other special files, unreadable files, the directory of agents, and a
    /// `.git` that refers to a repository elsewhere.
    pub left_out: Vec<PathBuf>,
    /// The files whose content at that point is lost: other programs changed them since, and the previous content was
    /// not saved.
    pub other: Vec<PathBuf>,
}

/// The operation that restores a file.
enum Restore {
    Put(Vec<u8>, Option<u32>),
    Delete(u32),
    Nothing,
}

impl Undo {
    /// Saves files in this directory, which is created with the first one.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: Arc::new(folder.into()),
        }
    }

    /// Saves the content that these changes are about to replace.
    pub(crate) fn keep(&self, changes: &[Change]) -> Result<(), ToolError> {
        let kept = changes
            .iter()
            .filter_map(|change| change.before.as_ref())
            .try_for_each(|before| self.put(before));
        kept.map_err(|error| {
            let message = format!(
                "no file was changed, because its content cannot be saved for an undo: {error}"
            );
            ToolError::failed(message)
        })
    }

    fn put(&self, Present { digest, bytes, .. }: &Present) -> io::Result<()> {
        let (Some(name), dir) = (digest.name(), self.open(true)?) else {
            return Ok(());
        };
        if dir.symlink_metadata(name).is_ok() {
            return Ok(());
        }
        let used: u64 = dir
            .entries()?
            .filter_map(|it| it.ok()?.metadata().ok())
            .map(|it| it.len())
            .sum();
        if used + bytes.len() as u64 > MAX_KEPT {
            let message = format!(
                "{} is full: it keeps {MAX_KEPT} bytes at most",
                self.folder.display()
            );
            return Err(io::Error::new(io::ErrorKind::StorageFull, message));
        }
        put(&dir, Path::new(name), bytes, None)
    }

    /// Opens the directory, which is private to its owner.
    fn open(&self, make: bool) -> io::Result<Dir> {
        if make {
            fs::create_dir_all(&*self.folder)?;
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                fs::set_permissions(&*self.folder, fs::Permissions::from_mode(0o700))?;
            }
        }
        Dir::open_ambient_dir(&*self.folder, ambient_authority())
    }

    /// Restores files to their state before these changes, which are in the order of the log, latest last. Returns the
    /// files that this call changed.
    ///
    /// A file that the agent created is deleted, with the directories that were created for it if they are otherwise
    /// empty. All files are checked before the first write, and the current content is saved if there is space, for
    /// [`fork`](Self::fork). Blocks the thread.
    ///
    /// # Errors
    /// `Undo` if another program changed a file since, if its previous content was not saved, or if a file cannot be
    /// written: the message lists the files that were restored before.
    pub fn restore(&self, files: &Files, changes: &[FileChange]) -> Result<Vec<PathBuf>, Error> {
        let mut by_path: BTreeMap<&str, Vec<&FileChange>> = BTreeMap::new();
        changes
            .iter()
            .for_each(|change| by_path.entry(&change.path).or_default().push(change));
        let (mut plan, mut problems) = (Vec::new(), Vec::new());
        for (path, changes) in by_path {
            match self.plan(files, path, &changes) {
                Ok(restore) => plan.push((PathBuf::from(path), restore)),
                Err(why) => problems.push(format!("{path}: {why}")),
            }
        }
        if !problems.is_empty() {
            return Err(Error::new(
                ErrorKind::Undo,
                format!("nothing was put back: {}", problems.join("; ")),
            ));
        }
        let mut done = Vec::new();
        for (path, (restore, now)) in plan {
            if matches!(restore, Restore::Nothing) {
                continue;
            }
            // Without enough space, restoring has priority. A later copy reports the missing content.
            let _ = now.as_ref().map_or(Ok(()), |now| self.put(now));
            if let Err(error) = restore.perform(files, &path, now.as_ref().map(|now| &now.digest)) {
                let message = format!(
                    "{} cannot be put back: {error}; put back before it: {done:?}",
                    path.display()
                );
                return Err(Error::new(ErrorKind::Undo, message).with_source(error));
            }
            done.push(path);
        }
        Ok(done)
    }

    /// Copies a directory into another one, which is new or empty, with its files as the agent had them after the
    /// changes `until` and before the changes `since`. The changes are in the order of the log.
    ///
    /// Everything is copied, including hidden and ignored files and `.git`; links stay links. The copy has at most
    /// 200,000 entries and 4 GiB. The directory itself is not changed. Blocks the thread.
    ///
    /// # Errors
    /// `Root` if the other directory cannot be created, is not empty, or one directory contains the other; `Undo` if
    /// something cannot be copied: the copy is removed then.
    pub fn fork(
        &self,
        files: &Files,
        until: &[FileChange],
        since: &[FileChange],
        to: impl AsRef<Path>,
    ) -> Result<ForkedFiles, Error> {
        let (made, is_new) = beside(files, to.as_ref())?;
        let copied = copy::all(files.root(), made.root().dir());
        let forked = copied.and_then(
            |Copied {
                 files,
                 bytes,
                 left_out,
             }| {
                Ok(ForkedFiles {
                    files,
                    bytes,
                    left_out,
                    other: self.turn(&made, until, since)?,
                })
            },
        );
        forked.map_err(|error| {
            // A remainder that cannot be removed does no harm.
            let _ = copy::clear(made.root().dir());
            if is_new {
                let _ = fs::remove_dir(made.path());
            }
            Error::new(
                ErrorKind::Undo,
                format!("the files cannot be copied: {error}"),
            )
            .with_source(error)
        })
    }

    /// Restores the earlier content of the files of a copy, and returns the files for which it is lost.
    fn turn(
        &self,
        copy: &Files,
        until: &[FileChange],
        since: &[FileChange],
    ) -> io::Result<Vec<PathBuf>> {
        let mut wanted: BTreeMap<&str, (Option<&Digest>, Option<u32>, u32)> = BTreeMap::new();
        for change in until {
            wanted.insert(&change.path, (change.after.as_ref(), change.mode, 0));
        }
        let mut first: BTreeMap<&str, (Option<&Digest>, Option<u32>, u32)> = BTreeMap::new();
        for change in since {
            let first =
                first
                    .entry(&change.path)
                    .or_insert((change.before.as_ref(), change.mode, 0));
            first.2 = first.2.max(change.folders);
        }
        wanted.extend(first);
        let mut other = Vec::new();
        for (path, (digest, mode, folders)) in wanted {
            let found = place(copy.root(), path)
                .and_then(|place| Ok((present(copy.root(), &place)?, place)));
            let Some((now, _)) = found.ok().filter(|(_, at)| at == Path::new(path)) else {
                other.push(PathBuf::from(path));
                continue;
            };
            let there = now.as_ref().map(|it| &it.digest);
            let mode = mode.or(now.as_ref().map(Present::mode));
            let restore = match digest {
                digest if there == digest => continue,
                None => Some(Restore::Delete(folders)),
                Some(digest) => self
                    .kept(digest)
                    .ok()
                    .map(|bytes| Restore::Put(bytes, mode)),
            };
            match restore {
                Some(restore) => restore.perform(copy, Path::new(path), there)?,
                None => other.push(PathBuf::from(path)),
            }
        }
        Ok(other)
    }

    /// Returns the operation that restores a file, and the file's current content.
    fn plan(
        &self,
        files: &Files,
        path: &str,
        changes: &[&FileChange],
    ) -> Result<(Restore, Option<Present>), String> {
        let Some(first) = changes.first() else {
            return Ok((Restore::Nothing, None));
        };
        let place = place(files.root(), path).map_err(|error| error.message.to_string())?;
        if place != Path::new(path) {
            return Err("a link leads elsewhere now".to_owned());
        }
        let now = present(files.root(), &place).map_err(|error| error.message.to_string())?;
        let found = now.as_ref().map(|it| &it.digest);
        if found == first.before.as_ref() {
            return Ok((Restore::Nothing, None));
        }
        // An earlier undo, or a crash between a note and its change, may have left the file in any state that the log
        // contains.
        if changes
            .iter()
            .all(|change| found != change.after.as_ref() && found != change.before.as_ref())
        {
            return Err("it was changed by another program since".to_owned());
        }
        let Some(wanted) = &first.before else {
            let made: u32 = changes
                .iter()
                .map(|change| change.folders)
                .max()
                .unwrap_or_default();
            return Ok((Restore::Delete(made), now));
        };
        Ok((Restore::Put(self.kept(wanted)?, first.mode), now))
    }

    /// Returns the saved content with this digest.
    fn kept(&self, digest: &Digest) -> Result<Vec<u8>, String> {
        let name = digest.name().ok_or("the log names no digest")?;
        let kept = self.open(false).and_then(|dir| dir.read(name));
        let bytes = kept.map_err(|error| format!("the previous content is not saved: {error}"))?;
        if Digest::compute(&bytes) == *digest {
            Ok(bytes)
        } else {
            Err("the saved content is damaged".to_owned())
        }
    }
}

impl Restore {
    /// Restores a file, if it still has the checked content.
    fn perform(self, files: &Files, path: &Path, now: Option<&Digest>) -> io::Result<()> {
        let dir = files.root().dir();
        let is_back = match self {
            Restore::Nothing => true,
            Restore::Put(bytes, mode) => turn(dir, path, now, Some((&bytes, permissions(mode))))?,
            Restore::Delete(folders) => {
                let is_gone = turn(dir, path, now, None)?;
                let made =
                    path.ancestors()
                        .skip(1)
                        .take(if is_gone { folders as usize } else { 0 });
                // A directory with other entries stays.
                made.take_while(|folder| dir.remove_dir(folder).is_ok())
                    .for_each(drop);
                is_gone
            }
        };
        if is_back {
            Ok(())
        } else {
            Err(io::Error::other(
                "it was changed by another program meanwhile",
            ))
        }
    }
}

/// Opens or creates the empty directory for a copy, which must be outside the copied one; true if it was created.
fn beside(files: &Files, to: &Path) -> Result<(Files, bool), Error> {
    let wrong = |what: &str| Error::new(ErrorKind::Root, format!("{what}: {}", to.display()));
    let parent = to
        .parent()
        .filter(|it| !it.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let place = to.canonicalize().or_else(|error| match to.file_name() {
        Some(name) => Ok(parent.canonicalize()?.join(name)),
        None => Err(error),
    });
    let place =
        place.map_err(|error| wrong("cannot make the folder for the copy").with_source(error))?;
    if place.starts_with(files.path()) || files.path().starts_with(&place) {
        return Err(wrong(
            "the copy would be part of the folder that is copied, or the other way round",
        ));
    }
    let is_new = match fs::create_dir(&place) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        made => made
            .map(|()| true)
            .map_err(|error| wrong("cannot make the folder for the copy").with_source(error))?,
    };
    let made = Files::new(&place)?;
    match made
        .root()
        .dir()
        .entries()
        .map(|mut entries| entries.next().is_none())
    {
        Ok(true) => Ok((made, is_new)),
        Ok(false) => Err(wrong("the folder for the copy is not empty")),
        Err(error) => Err(wrong("cannot look into the folder for the copy").with_source(error)),
    }
}

#[cfg(unix)]
fn permissions(mode: Option<u32>) -> Option<cap_std::fs::Permissions> {
    use cap_std::fs::PermissionsExt;
    mode.map(|mode| cap_std::fs::Permissions::from_mode(mode & 0o7777))
}

#[cfg(not(unix))]
fn permissions(_: Option<u32>) -> Option<cap_std::fs::Permissions> {
    None
}

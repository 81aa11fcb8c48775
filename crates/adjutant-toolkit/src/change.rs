//! Changes of files: each file is checked first and replaced as a whole; if one of several changes fails, the others
//! are undone.

use std::{
    io::{self, Read, Write},
    path::{Component, Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use adjutant_tool::{ToolError, ToolErrorKind};
use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, File, OpenOptions, Permissions};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    digest::Digest,
    exchange::{take_out, take_place},
    files::{
        Files, MAX_FILE, Root, copy::close, encoding::Encoding, open_regular, show, texts::plain,
    },
    obeyed,
};

/// The kind of the note about a file that is about to be changed.
pub(crate) const CHANGED: &str = "file.changed";
/// The directory of the project's agents and rules, which agents cannot change.
const OWN: &str = ".adjutant";

/// The change of a file as it is recorded in the log, before it is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FileChange {
    /// The file, from the root.
    pub path: String,
    /// The digest of the previous content; `None` if the file did not exist.
    pub(crate) before: Option<Digest>,
    /// The digest of the new content; `None` if the file was deleted.
    pub(crate) after: Option<Digest>,
    /// The permission bits that the file had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<u32>,
    /// The number of parent directories that were created for it.
    #[serde(default)]
    pub(crate) folders: u32,
}

impl FileChange {
    /// The change that a note describes: an event `app`, or its record. `None` for any other note.
    pub fn from_note(kind: &str, data: &Value) -> Option<Self> {
        if kind == CHANGED {
            Self::deserialize(data).ok()
        } else {
            None
        }
    }

    /// True if the file did not exist before.
    pub fn creates(&self) -> bool {
        self.before.is_none()
    }
}

/// The current state of a file.
#[derive(Debug, Clone)]
pub(crate) struct Present {
    pub(crate) bytes: Vec<u8>,
    pub(crate) digest: Digest,
    /// The digest of the content on the disk, which can differ from the content in a program that has the file open.
    on_disk: Digest,
    permissions: Permissions,
    /// The encoding in which it was read, if it was.
    pub(crate) encoding: Option<Encoding>,
}

/// The change of one file: its current content and its new content.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    /// Relative to the root, without links.
    pub(crate) path: PathBuf,
    pub(crate) before: Option<Present>,
    pub(crate) after: Option<Vec<u8>>,
    /// The permissions of a new file, if it replaces another one.
    like: Option<Permissions>,
}

/// Resolves the path of a file that may not exist yet; links are not followed.
pub(crate) fn place(root: &Root, asked: &str) -> Result<PathBuf, ToolError> {
    let path = root.relative(Path::new(asked));
    let (Some(name), folder) = (path.file_name(), path.parent().unwrap_or(Path::new(""))) else {
        return Err(ToolError::failed(format!(
            "{} names no file",
            show::quoted(asked)
        )));
    };
    // A path that does not exist yet has no links.
    let known = folder
        .ancestors()
        .find_map(|known| Some((known, root.resolved(known)?)));
    let (known, mut found) = match known {
        Some((known, Ok(found))) => (known, found),
        Some((_, Err(error))) => return Err(root.refused(asked, &error)),
        None => {
            return Err(ToolError::failed(format!(
                "{} cannot be found",
                show::quoted(asked)
            )));
        }
    };
    let rest = folder.strip_prefix(known).unwrap_or(Path::new(""));
    if rest
        .components()
        .any(|part| !matches!(part, Component::Normal(_) | Component::CurDir))
    {
        let message = format!(
            "{} leads through a folder that is not there",
            show::quoted(asked)
        );
        return Err(ToolError::failed(message));
    }
    found.extend(
        rest.components()
            .filter(|part| matches!(part, Component::Normal(_))),
    );
    found.push(name);
    // The changed file must be the requested one: a link may have been created between an approval and its call.
    let is_link = root
        .dir()
        .symlink_metadata(&found)
        .is_ok_and(|data| data.is_symlink());
    if is_link || found != plainly(path) {
        let target = if is_link {
            root.resolved(&found)
        } else {
            Some(Ok(found))
        };
        let asked_as = show::quoted(asked);
        return Err(match target {
            Some(Ok(target)) => ToolError::failed(format!(
                "{asked_as} is `{}`, by a link; what is changed is named without links",
                show::path(&target)
            )),
            Some(Err(error)) => root.refused(asked, &error),
            None => ToolError::failed(format!("{asked_as} is a link to nothing")),
        });
    }
    let own = found
        .components()
        .any(|part| part.as_os_str().eq_ignore_ascii_case(OWN));
    if let Some(why) = root
        .closes(&found)
        .or(own.then_some("agents and their rules are kept there"))
    {
        let message = format!("{} is not changed: {why}", show::quoted(asked));
        return Err(ToolError::new(ToolErrorKind::Denied, message));
    }
    Ok(found)
}

/// Normalizes the path without resolving links.
fn plainly(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::Normal(part) => plain.push(part),
            _ => {}
        }
        plain
    })
}

/// Reads the file from the disk; `None` if it does not exist.
pub(crate) fn present(root: &Root, path: &Path) -> Result<Option<Present>, ToolError> {
    let asked = show::path(path);
    let failed = |error: io::Error| root.refused(&asked, &error);
    let (dir, name) = match parent(root.dir(), path, false) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    match dir.symlink_metadata(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
        Ok(data) if !data.is_file() => {
            return Err(ToolError::failed(format!(
                "{} is not a regular file",
                show::quoted(&asked)
            )));
        }
        Ok(_) => {}
    }
    let Some((file, size)) = open_regular(&dir, name).map_err(failed)? else {
        return Err(ToolError::failed(format!(
            "{} is not a regular file",
            show::quoted(&asked)
        )));
    };
    if size > MAX_FILE {
        let most = show::size(MAX_FILE);
        let message = format!(
            "{} has {}, and files of {most} at most are changed",
            show::quoted(&asked),
            show::size(size)
        );
        return Err(ToolError::failed(message));
    }
    let permissions = file.metadata().map_err(failed)?.permissions();
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    let digest = Digest::compute(&bytes);
    Ok(Some(Present {
        on_disk: digest.clone(),
        digest,
        bytes,
        permissions,
        encoding: None,
    }))
}

/// Reads the file from the program that has it open, else from the disk; `None` if it does not exist.
pub(crate) fn current(files: &Files, path: &Path) -> Result<Option<Present>, ToolError> {
    let Some(found) = present(files.root(), path)? else {
        return Ok(None);
    };
    Ok(Some(match files.texts().read(path, &found.bytes)? {
        Some(text) => Present {
            digest: Digest::compute(text.as_bytes()),
            bytes: text.into_bytes(),
            ..found
        },
        None => found,
    }))
}

impl Present {
    /// Returns its permission bits.
    pub(crate) fn mode(&self) -> u32 {
        mode(&self.permissions)
    }
}

impl Change {
    pub(crate) fn new(path: PathBuf, before: Option<Present>, after: Option<Vec<u8>>) -> Self {
        Self {
            path,
            before,
            after,
            like: None,
        }
    }

    /// A new file gets the permissions of another.
    pub(crate) fn like(self, other: &Present) -> Self {
        Self {
            like: Some(other.permissions.clone()),
            ..self
        }
    }

    /// The record for the log, written before the change.
    pub(crate) fn told(&self, root: &Root) -> FileChange {
        let folders = self
            .path
            .ancestors()
            .skip(1)
            .take_while(|it| !it.as_os_str().is_empty());
        let made = folders
            .filter(|folder| self.before.is_none() && root.dir().symlink_metadata(folder).is_err())
            .count();
        FileChange {
            path: self.path.to_string_lossy().into_owned(),
            before: self.before.as_ref().map(|it| it.digest.clone()),
            after: self.after.as_ref().map(|it| Digest::compute(it)),
            mode: self.before.as_ref().map(Present::mode),
            folders: u32::try_from(made).unwrap_or(u32::MAX),
        }
    }

    /// Writes the new content. Returns false, without a change, if the file differs from the checked state.
    fn write(&self, files: &Files) -> Result<bool, ToolError> {
        let failed = |error: io::Error| files.root().refused(&show::path(&self.path), &error);
        let was = self.before.as_ref().map(|it| &*it.bytes);
        if self.like.is_none()
            && self.is_lent(files, was.unwrap_or_default(), self.after.as_deref())?
        {
            return Ok(true);
        }
        let permissions = self
            .before
            .as_ref()
            .map(|it| it.permissions.clone())
            .or_else(|| self.like.clone());
        let (before, after) = (
            self.before.as_ref().map(|it| &it.on_disk),
            self.after.as_deref(),
        );
        turn(
            files.root().dir(),
            &self.path,
            before,
            after.map(|bytes| (bytes, permissions)),
        )
        .map_err(failed)
    }

    /// Restores the previous content. Returns false, without a change, if the file differs from the written state.
    fn back(&self, files: &Files) -> Result<bool, ToolError> {
        let failed = |error: io::Error| files.root().refused(&show::path(&self.path), &error);
        let was = self.before.as_ref().map(|before| &*before.bytes);
        if self.like.is_none()
            && self.is_lent(files, self.after.as_deref().unwrap_or_default(), was)?
        {
            return Ok(true);
        }
        let after = self.after.as_ref().map(|bytes| Digest::compute(bytes));
        let before = was.zip(
            self.before
                .as_ref()
                .map(|before| Some(before.permissions.clone())),
        );
        turn(files.root().dir(), &self.path, after.as_ref(), before).map_err(failed)
    }

    /// True if another program has the file open and wrote the text itself.
    fn is_lent(&self, files: &Files, was: &[u8], wanted: Option<&[u8]>) -> Result<bool, ToolError> {
        let text = wanted
            .and_then(plain)
            .filter(|_| files.texts().are_lent() && plain(was).is_some());
        let Some(text) = text else { return Ok(false) };
        // The directory is created, and no part of its path is a link.
        let made = parent(files.root().dir(), &self.path, true);
        made.map_err(|error| files.root().refused(&show::path(&self.path), &error))?;
        files.texts().write(&self.path, text)
    }
}

/// Makes all of these changes, or none.
///
/// # Errors
/// If a file differs from its checked state, or cannot be written. Changes that were already made are undone.
pub(crate) fn write_all(files: &Files, changes: &[Change]) -> Result<(), ToolError> {
    let root = files
        .path()
        .canonicalize()
        .unwrap_or_else(|_| files.path().to_owned());
    for change in changes {
        obeyed::allow(root.join(&change.path));
    }
    for (at, change) in changes.iter().enumerate() {
        let shown = show::path(&change.path);
        let written = match unchanged(files, change) {
            // A write between the check and the exchange is also detected; the check only avoids that readers see our
            // text briefly.
            Ok(true) => change.write(files),
            other => other,
        };
        let error = match written {
            Ok(true) => continue,
            Ok(false) => ToolError::failed(format!(
                "{} was changed meanwhile; read it again",
                show::quoted(&shown)
            )),
            Err(error) => error,
        };
        let stays = |done: &&Change| !matches!(done.back(files), Ok(true));
        let left = changes[..at]
            .iter()
            .rev()
            .filter(stays)
            .map(|it| show::path(&it.path));
        let left: Vec<String> = left.collect();
        let (is_unknown, message) = (error.kind == ToolErrorKind::OutcomeUnknown, &error.message);
        let kind = if is_unknown {
            error.kind
        } else {
            ToolErrorKind::Failed
        };
        let rest = match left.is_empty() {
            true if is_unknown => "no other file was changed".to_owned(),
            true => "no file was changed".to_owned(),
            false => format!("could not be put back: {}", left.join(", ")),
        };
        return Err(ToolError::new(kind, format!("{message}; {rest}")));
    }
    Ok(())
}

fn unchanged(files: &Files, change: &Change) -> Result<bool, ToolError> {
    let now = current(files, &change.path)?;
    Ok(now.map(|it| it.digest) == change.before.as_ref().map(|it| it.digest.clone()))
}

/// Replaces the expected content of a file by other content, or deletes it. Returns false, without a change, if the
/// content differs.
pub(crate) fn turn(
    dir: &Dir,
    path: &Path,
    expected: Option<&Digest>,
    wanted: Option<(&[u8], Option<Permissions>)>,
) -> io::Result<bool> {
    match (wanted, expected) {
        (Some((bytes, permissions)), _) => {
            placed(dir, path, bytes, permissions, |dir, beside, name| {
                take_place(dir, beside, name, expected)
            })
        }
        (None, Some(expected)) => {
            let (dir, name) = parent(dir, path, false)?;
            let is_out = take_out(&dir, Path::new(&beside()), name, expected)?;
            dir.open(".")?.sync_all()?;
            Ok(is_out)
        }
        (None, None) => Ok(true),
    }
}

/// Returns a unique name for a temporary file in the same directory.
fn beside() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    format!(
        ".adjutant-{}-{}.tmp",
        std::process::id(),
        NUMBER.fetch_add(1, Ordering::Relaxed)
    )
}

/// Writes a temporary file and renames it to its destination, so that no reader sees a partial file.
pub(crate) fn put(
    dir: &Dir,
    path: &Path,
    bytes: &[u8],
    permissions: Option<Permissions>,
) -> io::Result<()> {
    placed(dir, path, bytes, permissions, |dir, beside, name| {
        let moved = dir.rename(beside, dir, name);
        if moved.is_err() {
            // The temporary file contains nothing else.
            let _ = dir.remove_file(beside);
        }
        moved.map(|()| true)
    })
    .map(drop)
}

/// Writes a temporary file, calls the closure to rename or remove it, and returns its result.
fn placed(
    dir: &Dir,
    path: &Path,
    bytes: &[u8],
    permissions: Option<Permissions>,
    moved: impl FnOnce(&Dir, &Path, &Path) -> io::Result<bool>,
) -> io::Result<bool> {
    let (dir, name) = parent(dir, path, true)?;
    let beside = beside();
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    if permissions.is_some() {
        // The file stays private while it is written.
        close(&mut options);
    }
    let written = dir.open_with(&beside, &options).and_then(|mut file| {
        file.write_all(bytes)?;
        let is_owned = own(&file, &dir, name)?;
        if let Some(permissions) = permissions {
            file.set_permissions(if is_owned {
                permissions
            } else {
                without_rights(permissions)
            })?;
        }
        file.sync_all()
    });
    if let Err(error) = written {
        // The temporary file contains nothing else.
        let _ = dir.remove_file(&beside);
        return Err(error);
    }
    let is_placed = moved(&dir, Path::new(&beside), name)?;
    dir.open(".")?.sync_all()?;
    Ok(is_placed)
}

/// Opens the parent directory of a file without following links: the resolved path had no links, so a link there is
/// new. Creates the directory if `make` is set.
fn parent<'p>(dir: &Dir, path: &'p Path, make: bool) -> io::Result<(Dir, &'p Path)> {
    let mut found = dir.try_clone()?;
    for part in path.parent().into_iter().flat_map(Path::components) {
        let part = Path::new(part.as_os_str());
        found = match found.open_dir_nofollow(part) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && make => {
                found.create_dir(part).or_else(|error| match error.kind() {
                    io::ErrorKind::AlreadyExists => Ok(()),
                    _ => Err(error),
                })?;
                found.open_dir_nofollow(part)?
            }
            opened => opened?,
        };
    }
    Ok((found, path.file_name().map_or(path, Path::new)))
}

/// Sets the owner and the group of a file to the replaced file's, if the system permits it; false if it does not.
#[cfg(unix)]
fn own(file: &File, dir: &Dir, name: &Path) -> io::Result<bool> {
    use cap_std::fs::MetadataExt;
    use rustix::fs::{Gid, Uid, fchown};
    let Ok(old) = dir.symlink_metadata(name) else {
        return Ok(true);
    };
    let new = file.metadata()?;
    let is_same = (new.uid(), new.gid()) == (old.uid(), old.gid());
    Ok(is_same
        || fchown(
            file,
            Some(Uid::from_raw(old.uid())),
            Some(Gid::from_raw(old.gid())),
        )
        .is_ok())
}

#[cfg(not(unix))]
fn own(_: &File, _: &Dir, _: &Path) -> io::Result<bool> {
    Ok(true)
}

/// Removes setuid and setgid: the file has another owner now.
#[cfg(unix)]
fn without_rights(permissions: Permissions) -> Permissions {
    use cap_std::fs::PermissionsExt;
    Permissions::from_mode(permissions.mode() & 0o1777)
}

#[cfg(not(unix))]
fn without_rights(permissions: Permissions) -> Permissions {
    permissions
}

#[cfg(unix)]
fn mode(permissions: &Permissions) -> u32 {
    use cap_std::fs::PermissionsExt;
    permissions.mode() & 0o7777
}

#[cfg(not(unix))]
fn mode(_: &Permissions) -> u32 {
    0
}

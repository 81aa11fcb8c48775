//! Copies everything below a root into another directory, through directory handles, following no link.

use std::{
    ffi::OsStr,
    io::{self, Read},
    path::{Path, PathBuf},
};

use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, Metadata, OpenOptions};

use super::{
    root::{Root, open_regular},
    walk::{MAX_DEPTH, MAX_ENTRIES},
};

/// The maximum number of bytes that are copied.
const MAX_BYTES: u64 = 4 * 1024 * 1024 * 1024;
/// The name of a git repository, or of a file that refers to one.
const GIT: &str = ".git";
/// The maximum number of bytes of a file that refers to a repository.
const MAX_GIT: u64 = 4096;

/// The result of a copy.
#[derive(Debug, Default)]
pub(crate) struct Copied {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// The paths that were not copied.
    pub(crate) left_out: Vec<PathBuf>,
}

struct Copying<'r> {
    root: &'r Root,
    entries: usize,
    copied: Copied,
}

/// Copies everything below a root into an empty directory.
pub(crate) fn all(root: &Root, to: &Dir) -> io::Result<Copied> {
    let mut copying = Copying {
        root,
        entries: 0,
        copied: Copied::default(),
    };
    copying.folder(root.dir(), to, Path::new(""), 1)?;
    Ok(copying.copied)
}

/// Removes everything in a directory.
pub(crate) fn clear(dir: &Dir) -> io::Result<()> {
    for entry in dir.entries()? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => dir.remove_dir_all(entry.file_name())?,
            false => dir.remove_file(entry.file_name())?,
        }
    }
    Ok(())
}

impl Copying<'_> {
    fn folder(&mut self, from: &Dir, to: &Dir, at: &Path, depth: usize) -> io::Result<()> {
        for entry in from.entries()? {
            let name = entry?.file_name();
            let path = at.join(&name);
            self.entries += 1;
            if self.entries > MAX_ENTRIES || depth > MAX_DEPTH {
                let most = format!(
                    "it has more than {MAX_ENTRIES} entries, or folders more than {MAX_DEPTH} deep"
                );
                return Err(io::Error::other(most));
            }
            match self.entry((from, to), &name, &path, depth) {
                Ok(true) => {}
                Ok(false) => self.copied.left_out.push(path),
                // It was removed in the meantime.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // The error belongs to a deeper entry and names it.
                Err(error) if error.get_ref().is_some() => return Err(error),
                Err(error) => {
                    return Err(io::Error::new(
                        error.kind(),
                        format!("{}: {error}", path.display()),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Copies an entry; false if it is omitted.
    fn entry(
        &mut self,
        (from, to): (&Dir, &Dir),
        name: &OsStr,
        path: &Path,
        depth: usize,
    ) -> io::Result<bool> {
        let found = from.symlink_metadata(name)?;
        if self.root.keeps_agents(path)
            || (name == GIT && !found.is_dir() && is_elsewhere(from, depth))
        {
            return Ok(false);
        }
        if found.is_symlink() {
            return link(from, to, name);
        }
        if !found.is_dir() {
            return Ok(found.is_file() && self.file((from, to), name)?);
        }
        // Does not follow a link that may have replaced the directory.
        let Some(below) = readable(
            from.open_dir_nofollow(name)
                .and_then(|it| it.entries().map(|_| it)),
        )?
        else {
            return Ok(false);
        };
        to.create_dir(name)?;
        let made = to.open_dir_nofollow(name)?;
        self.folder(&below, &made, path, depth + 1)?;
        to.set_permissions(name, plain(&found))?;
        Ok(true)
    }

    fn file(&mut self, (from, to): (&Dir, &Dir), name: &OsStr) -> io::Result<bool> {
        let Some(Some((file, _))) = readable(open_regular(from, Path::new(name)))? else {
            return Ok(false);
        };
        let permissions = plain(&file.metadata()?);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        close(&mut options);
        let mut new = to.open_with(name, &options)?;
        let left = MAX_BYTES - self.copied.bytes;
        let bytes = io::copy(&mut file.take(left + 1), &mut new)?;
        if bytes > left {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("there are more than {MAX_BYTES} bytes"),
            ));
        }
        new.set_permissions(permissions)?;
        (self.copied.files, self.copied.bytes) = (self.copied.files + 1, self.copied.bytes + bytes);
        Ok(true)
    }
}

/// Returns `None` if permission is denied.
fn readable<T>(opened: io::Result<T>) -> io::Result<Option<T>> {
    match opened {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        opened => opened.map(Some),
    }
}

/// True if the file `.git` of a directory refers to a repository outside the copy: a commit in the copy would change
/// that repository.
fn is_elsewhere(dir: &Dir, depth: usize) -> bool {
    let mut text = String::new();
    let read = open_regular(dir, Path::new(GIT))
        .ok()
        .flatten()
        .map(|(file, _)| file.take(MAX_GIT).read_to_string(&mut text));
    depth == 1
        || !matches!(read, Some(Ok(_)))
        || text
            .trim_start_matches("gitdir:")
            .trim_start()
            .starts_with('/')
}

/// Copies a link unchanged: its target may be outside, and it is not followed.
#[cfg(unix)]
fn link(from: &Dir, to: &Dir, name: &OsStr) -> io::Result<bool> {
    to.symlink_contents(from.read_link_contents(name)?, name)
        .map(|()| true)
}

#[cfg(not(unix))]
fn link(_: &Dir, _: &Dir, _: &OsStr) -> io::Result<bool> {
    Ok(false)
}

/// Makes a new file private to its owner.
#[cfg(unix)]
pub(crate) fn close(options: &mut OpenOptions) {
    use cap_std::fs::OpenOptionsExt;
    options.mode(0o600);
}

#[cfg(not(unix))]
pub(crate) fn close(_: &mut OpenOptions) {}

/// Returns the permissions without setuid and setgid.
#[cfg(unix)]
fn plain(found: &Metadata) -> cap_std::fs::Permissions {
    use cap_std::fs::PermissionsExt;
    cap_std::fs::Permissions::from_mode(found.permissions().mode() & 0o1777)
}

#[cfg(not(unix))]
fn plain(found: &Metadata) -> cap_std::fs::Permissions {
    found.permissions()
}

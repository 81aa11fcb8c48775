//! Small operations on files that another process may replace at any moment: none of them follows a link.

use std::{
    fs::{self, File, OpenOptions},
    hash::{BuildHasher, Hasher, RandomState},
    io,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};

/// The longest name of a file. Source: NAME_MAX of limits.h.
const LONGEST: usize = 255;

/// The identity of a file and of its state: a changed file has another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) id: (u64, u64),
    size: u64,
    pub(super) changed: (i64, i64),
}

impl From<&fs::Metadata> for Stamp {
    fn from(metadata: &fs::Metadata) -> Self {
        Self {
            id: (metadata.dev(), metadata.ino()),
            size: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// A directory that is held open, so that no link can stand in for it.
#[derive(Debug)]
pub(super) struct HeldFolder(OwnedFd);

impl HeldFolder {
    /// Opens a directory by its path.
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let folder = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(path)?;
        Ok(Self(folder.into()))
    }

    /// Opens a directory below this one without following links.
    pub(super) fn below(&self, path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        Ok(Self(openat2(
            self.0.as_fd(),
            path,
            flags,
            Mode::empty(),
            resolve,
        )?))
    }

    /// Returns a path that leads to an entry of this directory, wherever that is by now.
    pub(super) fn entry(&self, name: impl AsRef<Path>) -> PathBuf {
        Path::new("/proc/self/fd")
            .join(self.0.as_raw_fd().to_string())
            .join(name)
    }

    /// Returns the state of a plain file in it; `None` if it does not exist.
    ///
    /// # Errors
    /// If it is something else than a plain file.
    pub(super) fn stamp(&self, name: &Path) -> io::Result<Option<Stamp>> {
        match self.entry(name).symlink_metadata() {
            Ok(metadata) if metadata.is_file() => Ok(Some(Stamp::from(&metadata))),
            Ok(_) => Err(io::ErrorKind::InvalidData.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the state of the directory itself.
    pub(super) fn own_stamp(&self) -> io::Result<Stamp> {
        Ok(Stamp::from(&self.entry(".").metadata()?))
    }

    /// Opens a plain file in it for reading.
    pub(super) fn open(&self, name: &Path) -> io::Result<File> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(self.entry(name))?;
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Lets this user change the directory, if it is its owner: a command may have made that impossible.
    pub(super) fn make_writable(&self) {
        if let Ok(metadata) = self.entry(".").metadata() {
            let mode = fs::Permissions::from_mode(metadata.mode() | 0o700);
            // Otherwise the change itself fails.
            let _ = fs::set_permissions(self.entry("."), mode);
        }
    }

    /// Moves an entry out of the way, to a name that no program obeys; returns that name.
    pub(super) fn block(&self, name: &Path) -> io::Result<PathBuf> {
        for number in 1.. {
            let mut blocked = name.as_os_str().to_owned();
            blocked.push(match number {
                1 => ".blocked".to_owned(),
                2..100 => format!(".blocked-{number}"),
                // A command may have taken all plain names.
                _ => format!(".blocked-{}", RandomState::new().build_hasher().finish()),
            });
            let blocked = PathBuf::from(match blocked.len() {
                ..=LONGEST => blocked,
                _ => format!("{}.blocked", RandomState::new().build_hasher().finish()).into(),
            });
            if self.entry(&blocked).symlink_metadata().is_ok() {
                continue;
            }
            let rename = || fs::rename(self.entry(name), self.entry(&blocked));
            return match rename() {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    self.make_writable();
                    rename()
                }
                renamed => renamed,
            }
            .map(|()| blocked);
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

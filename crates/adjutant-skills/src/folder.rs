//! The one place where files of skills are opened: always beneath their folder, and only regular files.

use std::{
    fmt,
    io::{self, Read},
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, File, OpenOptions};

/// The folder of a skill, beneath a handle of its root. Moved or replaced folders are found missing, never followed.
#[derive(Clone)]
pub(crate) struct Folder {
    root: Arc<Dir>,
    path: Arc<Path>,
}

/// The reason why a file is not opened.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It does not exist.
    Missing,
    /// The path, or a link in it, leads out of the folder.
    Outside,
    /// It is not a regular file.
    NotAFile,
    /// It is a folder.
    IsFolder,
    /// The system refuses.
    Io(io::Error),
}

impl Folder {
    pub(crate) fn new(root: Arc<Dir>, path: &Path) -> Self {
        Self {
            root,
            path: path.into(),
        }
    }

    /// A handle of a folder within it, reached through no link.
    pub(crate) fn inner(&self, path: &Path) -> io::Result<Dir> {
        let mut dir = self.root.try_clone()?;
        for part in self.path.components().chain(path.components()) {
            dir = dir.open_dir_nofollow(part.as_os_str())?;
        }
        Ok(dir)
    }

    /// Opens a regular file of the folder; links within the folder are followed.
    pub(crate) fn file(&self, asked: &str) -> Result<(File, u64), Refused> {
        let path = Path::new(asked);
        if asked.contains('\0') || !path.components().all(is_inside) || path.as_os_str().is_empty()
        {
            return Err(Refused::Outside);
        }
        let dir = self.inner(Path::new(""))?;
        let path: PathBuf = dir
            .canonicalize(path)?
            .components()
            .filter(|it| *it != Component::CurDir)
            .collect();
        if path.as_os_str().is_empty() {
            return Err(Refused::IsFolder);
        }
        let metadata = dir.metadata(&path)?;
        match (metadata.is_dir(), metadata.is_file()) {
            (true, _) => Err(Refused::IsFolder),
            (_, false) => Err(Refused::NotAFile),
            _ => open_regular(&dir, &path)?.ok_or(Refused::NotAFile),
        }
    }
}

/// Opens a regular file, not through a link in its last part; `None` if it is something else.
///
/// It is opened without blocking, so that a pipe swapped in does not hang the thread before it is noticed.
fn open_regular(dir: &Dir, path: &Path) -> io::Result<Option<(File, u64)>> {
    let mut options = OpenOptions::new();
    options.read(true).nonblock(true).follow(FollowSymlinks::No);
    let file = dir.open_with(path, &options)?;
    let metadata = file.metadata()?;
    Ok(metadata.is_file().then(|| (file, metadata.len())))
}

/// At most `most` bytes of a file, independent of its reported size.
pub(crate) fn bytes(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn is_inside(part: Component<'_>) -> bool {
    matches!(part, Component::Normal(_) | Component::CurDir)
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Refused::Missing,
            // An escape is noticed by the sandbox, not by the system, so there is no code of the system.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => Refused::Outside,
            _ => Refused::Io(error),
        }
    }
}

impl fmt::Debug for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Folder").field(&self.path).finish()
    }
}

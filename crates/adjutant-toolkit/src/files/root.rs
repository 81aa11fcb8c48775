//! Opens paths: always beneath the root, and only regular files and directories. No other code opens paths.

use std::{
    ffi::OsStr,
    fmt, io,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use adjutant_tool::{ToolError, ToolErrorKind};
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::{
    ambient_authority,
    fs::{Dir, File, OpenOptions},
};

use super::show;

/// The directory with the agents of a project and their access tokens.
const AGENTS: [&str; 2] = [".adjutant", "run"];

/// A handle of the directory. No path leads out of it.
#[derive(Clone)]
pub(crate) struct Root {
    dir: Arc<Dir>,
    /// Its absolute path, without links.
    path: Arc<Path>,
    /// Hidden directories below it, relative to it, without links.
    closed: Arc<[PathBuf]>,
}

/// The target of a path.
#[derive(Debug)]
pub(super) enum PathTarget {
    /// A regular file, and its size in bytes.
    File(File, u64),
    /// A directory.
    Dir(Dir),
}

/// An opened target and its path.
#[derive(Debug)]
pub(super) struct Opened {
    /// The path relative to the root, without links; empty for the root.
    pub(super) path: PathBuf,
    pub(super) target: PathTarget,
}

impl Root {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            dir: Arc::new(Dir::open_ambient_dir(path, ambient_authority())?),
            path: path.into(),
            closed: Arc::new([]),
        })
    }

    /// Hides another directory.
    pub(super) fn close(self, folder: PathBuf) -> Self {
        let closed = self.closed.iter().cloned().chain([folder]).collect();
        Self { closed, ..self }
    }

    /// Returns the reason if a path is hidden.
    pub(crate) fn closes(&self, path: &Path) -> Option<&'static str> {
        let parts: Vec<_> = path.components().map(Component::as_os_str).collect();
        if parts.iter().any(|part| part.eq_ignore_ascii_case(".git")) {
            return Some("it belongs to git itself");
        }
        self.keeps_agents(path).then_some("agents are kept there")
    }

    /// True if a path contains agents and their access tokens.
    pub(super) fn keeps_agents(&self, path: &Path) -> bool {
        let parts: Vec<_> = path.components().map(Component::as_os_str).collect();
        let is_home = |pair: &[&OsStr]| {
            pair.iter()
                .zip(AGENTS)
                .all(|(part, name)| part.eq_ignore_ascii_case(name))
        };
        parts.windows(AGENTS.len()).any(is_home)
            || self.closed.iter().any(|it| path.starts_with(it))
    }

    /// Returns an absolute path inside the root relative to it, and every other path unchanged.
    pub(crate) fn relative<'p>(&self, asked: &'p Path) -> &'p Path {
        match asked.strip_prefix(&self.path) {
            Ok(below) if below.as_os_str().is_empty() => Path::new("."),
            Ok(below) => below,
            Err(_) => asked,
        }
    }

    /// Returns the handle of the directory.
    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Opens the path that the model requested; an empty path or `.` is the root.
    pub(super) fn target(&self, asked: &str) -> Result<Opened, ToolError> {
        let asked = if asked.trim().is_empty() { "." } else { asked };
        let path = self
            .resolve(asked)
            .map_err(|error| refused(asked, &error))?;
        if let Some(why) = self.closes(&path) {
            return Err(ToolError::failed(format!(
                "{} is not shown: {why}",
                show::quoted(asked)
            )));
        }
        let target = self.enter(&path).map_err(|error| refused(asked, &error))?;
        match target {
            Some(target) => Ok(Opened { path, target }),
            None => Err(ToolError::failed(format!(
                "{} is neither a file nor a directory, so it is not opened",
                show::quoted(asked)
            ))),
        }
    }

    /// Resolves a path relative to the root and without links; `None` if it does not exist.
    pub(crate) fn resolved(&self, path: &Path) -> Option<io::Result<PathBuf>> {
        let found = match path.to_str() {
            Some(text) => self.resolve(text),
            None => self.dir.canonicalize(path),
        };
        match found {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            found => Some(found),
        }
    }

    /// Returns the error for the model. It contains the path as requested, never the location of the root.
    pub(crate) fn refused(&self, asked: &str, error: &io::Error) -> ToolError {
        refused(asked, error)
    }

    fn resolve(&self, asked: &str) -> io::Result<PathBuf> {
        let asked = self.relative(Path::new(asked));
        if asked.components().all(|part| part == Component::CurDir) {
            return Ok(PathBuf::new());
        }
        let path = self.dir.canonicalize(asked)?;
        Ok(path
            .components()
            .filter(|part| *part != Component::CurDir)
            .collect())
    }

    fn enter(&self, path: &Path) -> io::Result<Option<PathTarget>> {
        if path.as_os_str().is_empty() {
            return self.dir.try_clone().map(PathTarget::Dir).map(Some);
        }
        let metadata = self.dir.metadata(path)?;
        if metadata.is_dir() {
            return self.dir.open_dir(path).map(PathTarget::Dir).map(Some);
        }
        if !metadata.is_file() {
            return Ok(None);
        }
        let opened = open_regular(&self.dir, path)?;
        Ok(opened.map(|(file, size)| PathTarget::File(file, size)))
    }
}

/// Opens a regular file beneath a directory, without following a link in the last component; `None` if it is not a
/// regular file.
///
/// Opens without blocking, so that the thread does not hang if the file was replaced by a pipe.
pub(crate) fn open_regular(dir: &Dir, path: &Path) -> io::Result<Option<(File, u64)>> {
    let mut options = OpenOptions::new();
    options.read(true).nonblock(true).follow(FollowSymlinks::No);
    let file = dir.open_with(path, &options)?;
    let metadata = file.metadata()?;
    Ok(metadata.is_file().then(|| (file, metadata.len())))
}

/// Returns the error for the model. It contains the path as requested, never the location of the root.
fn refused(asked: &str, error: &io::Error) -> ToolError {
    let path = show::quoted(asked);
    match error.kind() {
        io::ErrorKind::NotFound => ToolError::failed(format!("there is no {path}")),
        io::ErrorKind::NotADirectory => {
            ToolError::failed(format!("there is no {path}: a part of it is no directory"))
        }
        // `cap-std` reports an escape itself, so the error has no code of the system.
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
            let message = format!(
                "{path} leads out of the folder; paths are relative to the folder and stay inside"
            );
            ToolError::new(ToolErrorKind::Denied, message)
        }
        kind => ToolError::failed(format!("cannot open {path}: {kind}")),
    }
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Root")
    }
}

//! The one place where paths are opened: always beneath the root, and only regular files and directories.

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

/// The folder that keeps the agents of a project, with what lets their callers in.
const AGENTS: [&str; 2] = [".adjutant", "run"];

/// A handle of the folder that no path leads out of.
#[derive(Clone)]
pub(crate) struct Root {
    dir: Arc<Dir>,
    /// Its absolute path, without links.
    path: Arc<Path>,
    /// Folders below it that are not shown, relative to it, without links.
    closed: Arc<[PathBuf]>,
}

/// The target that a path led to.
#[derive(Debug)]
pub(super) enum PathTarget {
    /// A regular file, and its size in bytes.
    File(File, u64),
    /// A directory.
    Dir(Dir),
}

/// Something that was opened, and where it stands.
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

    /// The same, with one folder more that is not shown.
    pub(super) fn close(self, folder: PathBuf) -> Self {
        let closed = self.closed.iter().cloned().chain([folder]).collect();
        Self { closed, ..self }
    }

    /// Returns the reason why a path is not shown, if it is not.
    pub(crate) fn closes(&self, path: &Path) -> Option<&'static str> {
        let parts: Vec<_> = path.components().map(Component::as_os_str).collect();
        if parts.iter().any(|part| part.eq_ignore_ascii_case(".git")) {
            return Some("it belongs to git itself");
        }
        self.keeps_agents(path).then_some("agents are kept there")
    }

    /// True if agents are kept in a path, with what lets their callers in.
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

    /// The path from the root, if an absolute one is inside it; every other path as it is.
    pub(crate) fn relative<'p>(&self, asked: &'p Path) -> &'p Path {
        match asked.strip_prefix(&self.path) {
            Ok(below) if below.as_os_str().is_empty() => Path::new("."),
            Ok(below) => below,
            Err(_) => asked,
        }
    }

    /// The handle of the folder.
    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Opens what the model asked for; blank or `.` is the root.
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

    /// The place that a path leads to, from the root and without links; `None` if nothing is there.
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

    /// The error that the model is told; it names the path as it was asked for, never where the root is.
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

/// Opens a regular file beneath a directory, not through a link in its last part; `None` if it is something else.
///
/// It is opened without blocking, so that a pipe swapped in does not hang the thread before it is noticed.
pub(crate) fn open_regular(dir: &Dir, path: &Path) -> io::Result<Option<(File, u64)>> {
    let mut options = OpenOptions::new();
    options.read(true).nonblock(true).follow(FollowSymlinks::No);
    let file = dir.open_with(path, &options)?;
    let metadata = file.metadata()?;
    Ok(metadata.is_file().then(|| (file, metadata.len())))
}

/// Makes the error that the model is told; it names the path as it was asked for, never where the root is.
fn refused(asked: &str, error: &io::Error) -> ToolError {
    let path = show::quoted(asked);
    match error.kind() {
        io::ErrorKind::NotFound => ToolError::failed(format!("there is no {path}")),
        io::ErrorKind::NotADirectory => {
            ToolError::failed(format!("there is no {path}: a part of it is no directory"))
        }
        // An escape is noticed by the sandbox, not by the system, so there is no code of the system.
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

//! Copies files: regular files within a directory, up to a size, with the digest of the copy.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use adjutant_tool::Cancel;
use sha2::{Digest, Sha256};

use crate::{
    error::{Error, ErrorKind},
    files::{self, is_executable, storage},
    provenance::hex,
};

/// The maximum size of a context or instruction file, in bytes.
pub(crate) const MAX_CONTEXT: u64 = 8 << 20;
/// The maximum size of a data file, in bytes.
pub(crate) const MAX_DATA: u64 = 256 << 20;
/// The maximum size of a file of a skill, in bytes.
pub(crate) const MAX_SKILL: u64 = 32 << 20;
/// The maximum number of files of one skill directory.
pub(crate) const MAX_SKILL_FILES: usize = 4_096;
/// The maximum depth of a skill directory.
pub(crate) const MAX_SKILL_DEPTH: usize = 16;

/// The number of bytes per read.
const CHUNK: usize = 64 << 10;

/// Copies files until a stop request.
pub(super) struct Copier<'a> {
    /// The directories that must contain the files, without links in their paths; empty for any place.
    pub(super) within: &'a [PathBuf],
    pub(super) cancel: &'a Cancel,
}

/// The digest and the size of a copied file.
#[derive(Debug, PartialEq)]
pub(super) struct Copied {
    pub(super) sha256: String,
    pub(super) bytes: u64,
}

impl Copier<'_> {
    /// Copies a regular file. Its path is resolved without links, must then be in a permitted directory, and is opened
    /// without following a link that was created in the meantime.
    pub(super) fn file(&self, from: &Path, to: &Path, cap: u64) -> Result<Copied, Error> {
        let real = self.real(from)?;
        let source = files::open_regular(&real).map_err(pull)?;
        self.opened_within(&source, from)?;
        let executable = is_executable(&source);
        self.copy(source, from, to, cap, executable)
    }

    /// Copies a directory recursively, and returns the paths of the copies relative to `to`, in order.
    pub(super) fn folder(&self, from: &Path, to: &Path) -> Result<Vec<(PathBuf, Copied)>, Error> {
        let real = self.real(from)?;
        if !real.is_dir() {
            return Err(Error::new(
                ErrorKind::Pull,
                format!("{} is no folder", from.display()),
            ));
        }
        let mut found = Vec::new();
        list(&real, Path::new(""), 0, &mut found)?;
        found.sort();
        let copy = |path: PathBuf| {
            let copied = self.file(&real.join(&path), &to.join(&path), MAX_SKILL)?;
            Ok((path, copied))
        };
        files::make_folder(to)?;
        found.into_iter().map(copy).collect()
    }

    /// Fails after a stop request.
    pub(super) fn go_on(&self) -> Result<(), Error> {
        if self.cancel.is_cancelled() {
            return Err(Error::new(
                ErrorKind::Closed,
                "stopped while its workspace was made",
            ));
        }
        Ok(())
    }

    fn real(&self, path: &Path) -> Result<PathBuf, Error> {
        let real = fs::canonicalize(path).map_err(|error| pull(storage("find", path, error)))?;
        self.is_within(&real, path)?;
        Ok(real)
    }

    fn is_within(&self, real: &Path, path: &Path) -> Result<(), Error> {
        if self.within.is_empty() || self.within.iter().any(|folder| real.starts_with(folder)) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Pull,
            format!("{} lies outside the folder of its manifest", path.display()),
        ))
    }

    /// Checks the location of an opened file: a directory above it may have been replaced by a link since its path was
    /// resolved.
    #[cfg(target_os = "linux")]
    fn opened_within(&self, file: &File, path: &Path) -> Result<(), Error> {
        use std::os::fd::AsRawFd;
        match fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())) {
            Ok(real) => self.is_within(&real, path),
            Err(_) => Ok(()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn opened_within(&self, _: &File, path: &Path) -> Result<(), Error> {
        self.real(path).map(drop)
    }

    fn copy(
        &self,
        mut source: File,
        from: &Path,
        to: &Path,
        cap: u64,
        executable: bool,
    ) -> Result<Copied, Error> {
        if let Some(folder) = to.parent() {
            files::make_folder(folder)?;
        }
        let failed = |error: io::Error| storage("write", to, error);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(
            &mut options,
            if executable { 0o700 } else { 0o600 },
        );
        let mut target = options.open(to).map_err(failed)?;
        let (mut hash, mut bytes, mut chunk) = (Sha256::new(), 0, vec![0; CHUNK]);
        loop {
            self.go_on()?;
            let read = source
                .read(&mut chunk)
                .map_err(|error| storage("read", from, error))?;
            let Some(part) = chunk.get(..read).filter(|part| !part.is_empty()) else {
                break;
            };
            bytes += part.len() as u64;
            if bytes > cap {
                return Err(Error::new(
                    ErrorKind::Pull,
                    format!("{} is longer than {cap} bytes", from.display()),
                ));
            }
            hash.update(part);
            target.write_all(part).map_err(failed)?;
        }
        target.sync_all().map_err(failed)?;
        Ok(Copied {
            sha256: hex(&hash.finalize()),
            bytes,
        })
    }
}

/// Lists the files of a directory, relative to it. A link or a device in it is an error, because its content would be
/// missing.
fn list(root: &Path, below: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    let folder = root.join(below);
    let refuse = |what: String| Err(Error::new(ErrorKind::Pull, what));
    if depth > MAX_SKILL_DEPTH {
        return refuse(format!(
            "{} lies more than {MAX_SKILL_DEPTH} folders deep",
            folder.display()
        ));
    }
    for entry in fs::read_dir(&folder).map_err(|error| pull(storage("read", &folder, error)))? {
        let entry = entry.map_err(|error| storage("read", &folder, error))?;
        let kind = entry
            .file_type()
            .map_err(|error| storage("read", &entry.path(), error))?;
        let path = below.join(entry.file_name());
        if kind.is_dir() {
            list(root, &path, depth + 1, found)?;
        } else if kind.is_file() {
            found.push(path);
        } else {
            return refuse(format!(
                "{} is not a regular file",
                root.join(path).display()
            ));
        }
        if found.len() > MAX_SKILL_FILES {
            return refuse(format!(
                "{} holds more than {MAX_SKILL_FILES} files",
                root.display()
            ));
        }
    }
    Ok(())
}

/// A missing or invalid source is an error of kind `Pull`.
pub(super) fn pull(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Missing | ErrorKind::Invalid => {
            Error::new(ErrorKind::Pull, error.message()).with_source(error)
        }
        _ => error,
    }
}

//! Checks and resolves the paths of a manifest.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use super::file::{MAX_BYTES, reason};

/// The maximum size of a `data` file in bytes.
const MAX_DATA_BYTES: u64 = 256 << 20;
/// The maximum length of a path in bytes.
const MAX_PATH_BYTES: usize = 1_024;

/// The required kind of a path's target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file of text, at most 1 MiB.
    Text,
    /// A file of any content, at most 256 MiB.
    Data,
    Folder,
}

/// Resolves a file or a directory inside the manifest's directory.
///
/// # Errors
/// The reason why it cannot be used.
pub(super) fn contained(folder: &Path, written: &Path, kind: Kind) -> Result<PathBuf, String> {
    within(written)?;
    let real = folder
        .join(written)
        .canonicalize()
        .map_err(|error| match kind {
            Kind::Folder if error.kind() == std::io::ErrorKind::NotFound => {
                "there is no such folder".to_owned()
            }
            _ => reason(&error),
        })?;
    if !real.starts_with(folder) {
        return Err("a link leads out of the manifest's folder".to_owned());
    }
    if real.to_str().is_none() {
        return Err("its path is no UTF-8".to_owned());
    }
    let about = fs::metadata(&real).map_err(|error| reason(&error))?;
    let most = match kind {
        Kind::Folder if about.is_dir() => return Ok(real),
        Kind::Folder => return Err("it is no folder".to_owned()),
        Kind::Text => MAX_BYTES,
        Kind::Data => MAX_DATA_BYTES,
    };
    if !about.is_file() {
        return Err("it is no file".to_owned());
    }
    if about.len() > most {
        return Err(format!("it has more than {most} bytes"));
    }
    Ok(real)
}

/// Checks that a path stays in its base directory, without accessing the disk.
///
/// # Errors
/// The reason why it does not.
pub(super) fn within(written: &Path) -> Result<(), String> {
    let text = written.to_str().unwrap_or_default();
    if text.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    if text.len() > MAX_PATH_BYTES || text.contains(|c: char| c.is_control()) {
        return Err(format!(
            "a path has at most {MAX_PATH_BYTES} bytes and no control characters"
        ));
    }
    for component in written.components() {
        match component {
            Component::Normal(_) | Component::CurDir => {}
            Component::ParentDir => return Err("`..` leads out of the folder".to_owned()),
            Component::RootDir | Component::Prefix(_) => {
                return Err("it is absolute; it must be relative and stay in the folder".to_owned());
            }
        }
    }
    Ok(())
}

/// Resolves a program: an absolute path, a path relative to the manifest, or a name without a slash, which stays
/// unchanged.
///
/// # Errors
/// The reason why it cannot be used.
pub(super) fn program(folder: &Path, written: &Path) -> Result<PathBuf, String> {
    let text = written.to_str().unwrap_or_default();
    if text.trim().is_empty()
        || text.len() > MAX_PATH_BYTES
        || text.contains(|c: char| c.is_control())
    {
        return Err("it is no path of a program".to_owned());
    }
    if !text.contains(std::path::is_separator) {
        return Ok(written.to_owned());
    }
    // Links are kept, because some programs depend on the name by which they are called.
    let real: PathBuf = folder.join(written).components().collect();
    let about = fs::metadata(&real).map_err(|error| reason(&error))?;
    if !about.is_file() {
        return Err("it is no file".to_owned());
    }
    if !is_executable(&about) {
        return Err("it may not be executed".to_owned());
    }
    if real.to_str().is_none() {
        return Err("its path is no UTF-8".to_owned());
    }
    Ok(real)
}

/// Resolves a file or a directory for a program's sandbox, at any place.
///
/// # Errors
/// The reason why it cannot be used.
pub(super) fn reached(folder: &Path, written: &Path) -> Result<PathBuf, String> {
    let text = written.to_str().unwrap_or_default();
    if text.trim().is_empty()
        || text.len() > MAX_PATH_BYTES
        || text.contains(|c: char| c.is_control())
    {
        return Err("it is no path".to_owned());
    }
    // A missing path is refused, because a file that is created there later would become accessible.
    let real = folder
        .join(written)
        .canonicalize()
        .map_err(|error| reason(&error))?;
    if real.to_str().is_none() {
        return Err("its path is no UTF-8".to_owned());
    }
    Ok(real)
}

/// True if a program with this name is in one of these directories.
pub(super) fn is_in(folders: &str, name: &Path) -> bool {
    std::env::split_paths(folders).any(|folder| {
        fs::metadata(folder.join(name)).is_ok_and(|about| about.is_file() && is_executable(&about))
    })
}

#[cfg(unix)]
fn is_executable(about: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    about.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &fs::Metadata) -> bool {
    true
}

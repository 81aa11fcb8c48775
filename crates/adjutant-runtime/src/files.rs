//! Files of agents: written atomically, read up to a maximum size, private to their owner.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    path::Path,
};

#[cfg(unix)]
use rustix::fs::OFlags;
use serde::{Serialize, de::DeserializeOwned};
use uuid::Uuid;

use crate::error::{Error, ErrorKind};

/// The maximum size of a JSON file, in bytes.
pub(crate) const MAX_JSON: u64 = 64 << 20;

/// The durability of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    /// It survives a crash of the machine.
    Disk,
    /// It survives a crash of the program.
    Program,
}

/// Creates a directory and its parents, private to their owner.
pub(crate) fn make_folder(path: &Path) -> Result<(), Error> {
    adjutant_llm::private::folder(path).map_err(|error| storage("make the folder", path, error))
}

/// Writes JSON to a private temporary file and renames it, so that a reader sees the old or the new content.
pub(crate) fn write_json(path: &Path, value: &impl Serialize, sync: Sync) -> Result<(), Error> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|error| {
        Error::new(
            ErrorKind::Storage,
            format!("cannot write {}", path.display()),
        )
        .with_source(error)
    })?;
    bytes.push(b'\n');
    write_bytes(path, &bytes, sync)
}

/// Writes a file like `write_json`.
pub(crate) fn write_bytes(path: &Path, bytes: &[u8], sync: Sync) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let beside = folder.join(format!(".{}.new", Uuid::new_v4().simple()));
    let written = write_new(&beside, bytes, sync).and_then(|()| fs::rename(&beside, path));
    if let Err(error) = written {
        let _gone = fs::remove_file(&beside);
        return Err(storage("write", path, error));
    }
    if sync == Sync::Disk {
        sync_folder(folder)
    } else {
        Ok(())
    }
}

fn write_new(path: &Path, bytes: &[u8], sync: Sync) -> io::Result<()> {
    let mut file = private(OpenOptions::new().write(true).create_new(true)).open(path)?;
    file.write_all(bytes)?;
    if sync == Sync::Disk {
        file.sync_all()
    } else {
        Ok(())
    }
}

/// Makes the entries of a directory survive a crash of the machine.
pub(crate) fn sync_folder(path: &Path) -> Result<(), Error> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| storage("write the folder", path, error))
}

/// Reads JSON from a regular file, up to a maximum size.
///
/// # Errors
/// `Missing` if it does not exist, `Storage` if it cannot be read or is invalid.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let bytes = read_capped(path, MAX_JSON)?;
    let wrong = |error: &dyn std::error::Error| {
        Error::new(
            ErrorKind::Storage,
            format!("{} is not what it should be: {error}", path.display()),
        )
    };
    adjutant_llm::json::from_slice(&bytes).map_err(|error| wrong(&error))?;
    serde_json::from_slice(&bytes).map_err(|error| wrong(&error))
}

/// Reads JSON like `read_json`; `None` if the file does not exist.
pub(crate) fn read_json_if_any<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    match read_json(path) {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::Missing => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a regular file of at most this many bytes.
pub(crate) fn read_capped(path: &Path, cap: u64) -> Result<Vec<u8>, Error> {
    let file = open_regular(path)?;
    let mut bytes = Vec::new();
    file.take(cap.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| storage("read", path, error))?;
    if bytes.len() as u64 > cap {
        return Err(Error::new(
            ErrorKind::Storage,
            format!("{} is longer than {cap} bytes", path.display()),
        ));
    }
    Ok(bytes)
}

/// Makes new files private to their owner, and refuses a link in place of the file.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        options,
        (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed(),
    );
    adjutant_llm::private::file(options)
}

/// Opens a regular file, not a link, device, pipe or directory, without blocking.
pub(crate) fn open_regular(path: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
    }
    let refused = |what: &str| {
        Error::new(
            ErrorKind::Invalid,
            format!("{} is {what}, not a regular file", path.display()),
        )
    };
    let file = options.open(path).map_err(|error| {
        let is_link = fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
        if is_link {
            refused("a link")
        } else {
            storage("open", path, error)
        }
    })?;
    let found = file
        .metadata()
        .map_err(|error| storage("open", path, error))?;
    if found.is_dir() {
        return Err(refused("a folder"));
    }
    if !found.is_file() {
        return Err(refused("a device or a pipe"));
    }
    Ok(file)
}

/// True if any user may execute a file.
#[cfg(unix)]
pub(crate) fn is_executable(file: &File) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata()
        .is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
pub(crate) fn is_executable(_: &File) -> bool {
    true
}

/// Deletes a directory with its content, never the targets of its links. A missing directory is not an error.
pub(crate) fn remove_folder(path: &Path) -> Result<(), Error> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(storage("delete", path, error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Returns a storage error, with a hint for a fix.
pub(crate) fn storage(attempt: &str, path: &Path, error: io::Error) -> Error {
    let hint = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; the disk is full",
        io::ErrorKind::ReadOnlyFilesystem => "; the disk is read-only",
        io::ErrorKind::PermissionDenied => "; permission denied",
        _ => "",
    };
    let kind = if error.kind() == io::ErrorKind::NotFound {
        ErrorKind::Missing
    } else {
        ErrorKind::Storage
    };
    Error::new(kind, format!("cannot {attempt} {}{hint}", path.display())).with_source(error)
}

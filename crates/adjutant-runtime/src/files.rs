//! Files of agents: written whole or not at all, read up to a cap, private to their owner.

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

/// The maximum number of bytes of a file of JSON that is read.
pub(crate) const MAX_JSON: u64 = 64 << 20;

/// The degree of certainty that a file is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    /// It survives a crash of the machine.
    Disk,
    /// It survives a crash of the program.
    Program,
}

/// Makes a directory and those above it that only their owner can enter.
pub(crate) fn make_folder(path: &Path) -> Result<(), Error> {
    adjutant_llm::private::folder(path).map_err(|error| storage("make the folder", path, error))
}

/// Writes JSON: into a file beside it that only its owner can read, then by a rename, so that a reader sees the old or the new.
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

/// Writes a file as `write_json` does.
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

/// Makes the names in a directory survive a crash of the machine.
pub(crate) fn sync_folder(path: &Path) -> Result<(), Error> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| storage("write the folder", path, error))
}

/// Reads JSON of a regular file, up to a cap.
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

/// Reads JSON as `read_json` does, where there may be none.
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

/// Files that these options make are their owner's alone; a link in the place of one is refused, wherever it leads.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        options,
        (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed(),
    );
    adjutant_llm::private::file(options)
}

/// Opens a file that must be a regular one, not a link, device, pipe or directory, and never waits for one.
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

/// An error of the disk, with a hint for a fix.
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

//! Digests of files, read in chunks; digests of programs are cached while the file is unchanged.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
    sync::{LazyLock, Mutex, PoisonError},
};

use sha2::{Digest, Sha256};

use super::{FileKind, PinnedFile};
use crate::{
    error::{Error, ErrorKind},
    files::{is_executable, open_regular, storage},
};

/// The number of bytes per read.
const CHUNK: usize = 256 << 10;
/// The maximum number of bytes of a file that is hashed.
const MAX_BYTES: u64 = 1 << 30;
/// The maximum number of cached digests.
const MAX_REMEMBERED: usize = 1_024;

/// Returns the SHA-256 of a regular file, and its size in bytes.
///
/// # Errors
/// `Full` if it is larger than 1 GiB.
pub(crate) fn digest_of(path: &Path) -> Result<(String, u64), Error> {
    digest(open_regular(path)?, path)
}

fn digest(mut file: File, path: &Path) -> Result<(String, u64), Error> {
    let (mut hash, mut bytes, mut chunk) = (Sha256::new(), 0, vec![0; CHUNK]);
    let length = file
        .metadata()
        .map_err(|error| storage("read", path, error))?
        .len();
    loop {
        if length.max(bytes) > MAX_BYTES {
            return Err(Error::new(
                ErrorKind::Full,
                format!("{} is longer than {MAX_BYTES} bytes", path.display()),
            ));
        }
        let read = file
            .read(&mut chunk)
            .map_err(|error| storage("read", path, error))?;
        let Some(part) = chunk.get(..read).filter(|part| !part.is_empty()) else {
            break;
        };
        hash.update(part);
        bytes += part.len() as u64;
    }
    Ok((hex(&hash.finalize()), bytes))
}

/// Records the digest of a program. A bare name is looked up in `PATH`; links are followed, as at a start.
///
/// # Errors
/// `Pull` if it does not exist, `Config` if it is not executable, `Full` if it is larger than 1 GiB.
pub(crate) fn pin_program(kind: FileKind, path: &Path) -> Result<PinnedFile, Error> {
    let path = find_program(path);
    let gone = |error: Error| Error::new(ErrorKind::Pull, error.message()).with_source(error);
    let real = fs::canonicalize(&path).map_err(|error| gone(storage("find", &path, error)))?;
    let file = open_regular(&real).map_err(gone)?;
    if !is_executable(&file) {
        return Err(Error::new(
            ErrorKind::Config,
            format!("{} cannot be executed", path.display()),
        ));
    }
    let (sha256, bytes) = remembered(file, &real)?;
    Ok(PinnedFile {
        kind,
        path,
        sha256,
        bytes,
    })
}

fn find_program(path: &Path) -> PathBuf {
    if path.components().count() > 1 || path.is_absolute() {
        return path.to_owned();
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders)
        .map(|folder| folder.join(path))
        .find(|file| file.is_file());
    found.unwrap_or_else(|| path.to_owned())
}

/// The version of a file's content by its metadata, which changes with each write.
#[derive(PartialEq, Eq, Clone, Copy)]
struct FileVersion {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

static REMEMBERED: LazyLock<Mutex<HashMap<PathBuf, (FileVersion, String)>>> =
    LazyLock::new(Mutex::default);

/// Returns the digest of a program. It is cached if the last write was long enough ago for the timestamp to distinguish
/// later writes: hosts are large, and many agents start with the same one.
fn remembered(file: File, path: &Path) -> Result<(String, u64), Error> {
    let stamp = stamp(&file);
    let held = || REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(stamp) = stamp
        && let Some((_, sha256)) = held().get(path).filter(|(known, _)| *known == stamp)
    {
        return Ok((sha256.clone(), stamp.bytes));
    }
    let (sha256, bytes) = digest(file, path)?;
    if let Some(stamp) = stamp.filter(FileVersion::is_settled) {
        let mut held = held();
        if held.len() >= MAX_REMEMBERED {
            held.clear();
        }
        held.insert(path.to_owned(), (stamp, sha256.clone()));
    }
    Ok((sha256, bytes))
}

impl FileVersion {
    fn is_settled(&self) -> bool {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        i64::try_from(now.as_secs()).is_ok_and(|now| self.changed.0 + 2 < now)
    }
}

#[cfg(unix)]
fn stamp(file: &File) -> Option<FileVersion> {
    use std::os::unix::fs::MetadataExt;
    let found = file.metadata().ok()?;
    Some(FileVersion {
        device: found.dev(),
        inode: found.ino(),
        bytes: found.size(),
        modified: (found.mtime(), found.mtime_nsec()),
        changed: (found.ctime(), found.ctime_nsec()),
    })
}

#[cfg(not(unix))]
fn stamp(_: &File) -> Option<FileVersion> {
    None
}

/// Formats bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a string does not fail.
            let _written = write!(text, "{byte:02x}");
            text
        })
}

//! Replaces a file by a new one in one atomic step that returns the previous file. If another process replaced the file
//! at the same moment, that version is found and restored.
//!
//! A write by a process that has the old file open at that moment is not detected; no system reports it.

use std::{
    io::{self, Read},
    path::Path,
};

use cap_fs_ext::MetadataExt;
use cap_std::fs::Dir;

use crate::{
    digest::Digest,
    files::{MAX_FILE, open_regular},
};

/// The maximum number of attempts to restore a file that other processes replace at the same time.
const ROUNDS: usize = 100;

/// The kind of a rename.
#[derive(Debug, Clone, Copy)]
enum Rename {
    /// To a name that does not exist.
    New,
    /// Exchanges both names.
    Exchange,
}

/// Renames a temporary file to its destination if the destination has the expected content. Returns false, with the
/// destination unchanged, if it has other content. The temporary file is gone afterwards.
///
/// If the system cannot do that in one step, the destination is checked first.
///
/// # Errors
/// If the rename fails. Files of other processes are never removed.
pub(crate) fn take_place(
    dir: &Dir,
    beside: &Path,
    name: &Path,
    expected: Option<&Digest>,
) -> io::Result<bool> {
    let own = look(dir, beside)?;
    let how = if expected.is_some() {
        Rename::Exchange
    } else {
        Rename::New
    };
    let placed = match rename(dir, beside, name, how) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists
            ) =>
        {
            Ok(false)
        }
        Err(error) if is_unable(&error) => match look(dir, name) {
            Ok(there) if is(there.as_ref(), expected) => {
                dir.rename(beside, dir, name).map(|()| true)
            }
            Ok(_) => Ok(false),
            Err(error) => Err(error),
        },
        Err(error) => Err(error),
        Ok(()) if expected.is_none() => return Ok(true),
        Ok(()) => return settle(dir, (beside, own), name, expected),
    };
    if !matches!(placed, Ok(true)) {
        // The temporary file is still ours.
        let _ = dir.remove_file(beside);
    }
    placed
}

/// Checks the replaced file. If its content is not the expected one, it is restored, and the file that this replaces
/// should be ours.
fn settle(
    dir: &Dir,
    (beside, own): (&Path, Option<Seen>),
    name: &Path,
    expected: Option<&Digest>,
) -> io::Result<bool> {
    let mut out = look(dir, beside)?;
    if is(out.as_ref(), expected) {
        return dir.remove_file(beside).map(|()| true);
    }
    // The known content of the destination: if the exchange returns another file, that file is newer and is restored in
    // turn.
    let mut at_place = own;
    for _ in 0..ROUNDS {
        match rename(dir, beside, name, Rename::Exchange) {
            // The destination was removed by another process: the previous file is restored rather than lost.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return put_back(dir, beside, name);
            }
            done => done?,
        }
        let came = look(dir, beside)?;
        if came == at_place {
            return dir.remove_file(beside).map(|()| false);
        }
        (at_place, out) = (out, came);
    }
    Err(kept(beside))
}

/// Removes the expected file. Returns false, with the file unchanged, if it has other content.
///
/// # Errors
/// If the rename fails. Files of other processes are never removed.
pub(crate) fn take_out(
    dir: &Dir,
    beside: &Path,
    name: &Path,
    expected: &Digest,
) -> io::Result<bool> {
    match rename(dir, name, beside, Rename::New) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) if is_unable(&error) => {
            let is_expected = is(look(dir, name)?.as_ref(), Some(expected));
            return if is_expected {
                dir.remove_file(name).map(|()| true)
            } else {
                Ok(false)
            };
        }
        done => done?,
    }
    match is(look(dir, beside)?.as_ref(), Some(expected)) {
        true => dir.remove_file(beside).map(|()| true),
        false => put_back(dir, beside, name),
    }
}

/// Restores the name of a removed file; the error contains its temporary name if the name is in use again.
fn put_back(dir: &Dir, beside: &Path, name: &Path) -> io::Result<bool> {
    match rename(dir, beside, name, Rename::New) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(kept(beside)),
        done => done.map(|()| false),
    }
}

fn kept(beside: &Path) -> io::Error {
    io::Error::other(format!(
        "it changes constantly; its previous content is saved as {}",
        beside.display()
    ))
}

/// The observed content of a name.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    id: (u64, u64),
    /// `None` if it is not a regular file, or is larger than the limit for changed files.
    digest: Option<Digest>,
}

/// True if this is the expected state: a file with these bytes, or no file.
fn is(seen: Option<&Seen>, expected: Option<&Digest>) -> bool {
    seen.map(|seen| seen.digest.as_ref()) == expected.map(Some)
}

fn look(dir: &Dir, name: &Path) -> io::Result<Option<Seen>> {
    let data = match dir.symlink_metadata(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        data => data?,
    };
    let mut digest = None;
    if data.is_file()
        && let Some((file, ..=MAX_FILE)) = open_regular(dir, name)?
    {
        let mut bytes = Vec::new();
        file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
        digest = Some(Digest::compute(&bytes));
    }
    Ok(Some(Seen {
        id: (data.dev(), data.ino()),
        digest,
    }))
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename(dir: &Dir, from: &Path, to: &Path, how: Rename) -> io::Result<()> {
    use rustix::fs::{RenameFlags, renameat_with};
    let flags = match how {
        Rename::New => RenameFlags::NOREPLACE,
        Rename::Exchange => RenameFlags::EXCHANGE,
    };
    Ok(renameat_with(dir, from, dir, to, flags)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename(_: &Dir, _: &Path, _: &Path, _: Rename) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// True if the system or the file system does not support such a rename.
fn is_unable(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput
    )
}

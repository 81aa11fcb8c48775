//! A new file takes the place of another in one step that says what was there: what somebody else puts there at the same moment
//! comes out, and goes back.
//!
//! Who holds the old file open and writes into it in that moment is not seen: no system tells that.

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

/// The most times that something is put back which somebody else replaces at the same time.
const ROUNDS: usize = 100;

/// The way in which a name is given.
#[derive(Debug, Clone, Copy)]
enum Rename {
    /// To a place where nothing is.
    New,
    /// Both names exchange what they stand for.
    Exchange,
}

/// Gives a file, which stands beside its place under a name of its own, the place of what is expected there. False, and the place is
/// as it was, if something else is there. The file is not beside its place any more then.
///
/// Where the system cannot do that in one step, the place is looked at first.
///
/// # Errors
/// If it cannot be moved. What somebody else wrote is never removed.
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
        // It is ours still.
        let _ = dir.remove_file(beside);
    }
    placed
}

/// Looks at what came out of a place. If that is not what was expected it goes back, and what comes out then is ours.
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
    // What is at the place, as far as is known: if something else comes out of it, that is newer, and goes back in its turn.
    let mut at_place = own;
    for _ in 0..ROUNDS {
        match rename(dir, beside, name, Rename::Exchange) {
            // Somebody removed what stood there: what was there before is given back rather than lost.
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

/// Takes what is expected out of its place and removes it. False, and it is as it was, if something else is there.
///
/// # Errors
/// If it cannot be moved. What somebody else wrote is never removed.
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

/// Gives what came out of a place its name again; what it is called if another is there by now.
fn put_back(dir: &Dir, beside: &Path, name: &Path) -> io::Result<bool> {
    match rename(dir, beside, name, Rename::New) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(kept(beside)),
        done => done.map(|()| false),
    }
}

fn kept(beside: &Path) -> io::Error {
    io::Error::other(format!(
        "it changes all the time; what was there is kept as {}",
        beside.display()
    ))
}

/// What stands under a name.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    id: (u64, u64),
    /// None if it is no regular file, or too large for one that is changed.
    digest: Option<Digest>,
}

/// True if this is what is expected: a file with these bytes, or nothing.
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
        digest = Some(Digest::of(&bytes));
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

/// True if the system, or what holds the files, has no such step.
fn is_unable(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput
    )
}

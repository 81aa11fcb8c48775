//! The ownership of a log: a file names the owner, and a kernel lock shows whether the owner lives.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::ErrorKind,
};

use adjutant_core::{Holder, JournalError, JournalErrorKind, Owner};
use adjutant_llm::private;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::place::{LogFolder, io_error, json, replace_json};

/// The last ownership of a log. It changes only under the lock of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owned {
    pub(super) epoch: u64,
    pub(super) owner: String,
    /// Unique: a log that was deleted and created again starts its epochs at the beginning.
    token: u128,
}

/// A live ownership; dropping it, or the death of the process, releases the log.
#[derive(Debug)]
pub(super) struct HeldOwnership {
    pub(super) owned: Owned,
    alive: File,
}

impl Drop for HeldOwnership {
    /// Explicit release: a child that another thread has just forked holds the same open file until it executes its
    /// program, and closing only ours would leave the log owned until then.
    fn drop(&mut self) {
        // A lock that cannot be released is removed with its file.
        let _ = self.alive.unlock();
    }
}

impl Owned {
    /// The last ownership of a log, if it ever had an owner.
    pub(super) fn read(place: &LogFolder) -> Result<Option<Self>, JournalError> {
        json(&place.file("owner.json"))
    }

    fn marker_name(&self) -> String {
        format!("held-{}", self.epoch)
    }

    /// The log is not free.
    fn refusal(&self, place: &LogFolder) -> JournalError {
        let mut holder = Holder {
            owner: self.owner.as_str().into(),
            ..Holder::default()
        };
        // The file was written when the log was taken.
        let taken = fs::metadata(place.file("owner.json")).and_then(|file| file.modified());
        holder.since = taken.ok().and_then(|taken| taken.elapsed().ok());
        JournalError::already_owned(&place.log, holder)
    }

    /// True if its owner lives.
    fn is_alive(&self, place: &LogFolder) -> Result<bool, JournalError> {
        let path = place.file(&self.marker_name());
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(io_error("open", &path, error)),
        };
        // Shared: two concurrent checks must not mistake each other for the owner.
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(io_error("lock", &path, error)),
        }
    }
}

/// The current owner of the log.
pub(super) fn now(place: &LogFolder) -> Result<Option<Owned>, JournalError> {
    loop {
        let Some(owned) = Owned::read(place)? else {
            return Ok(None);
        };
        let is_alive = owned.is_alive(place)?;
        // If the owner has changed in the meantime, the result for the earlier one has no meaning.
        if is_alive || Owned::read(place)?.as_ref() == Some(&owned) {
            return Ok(is_alive.then_some(owned));
        }
    }
}

/// Fails if the log has an owner now.
pub(super) fn needs_free(place: &LogFolder) -> Result<(), JournalError> {
    now(place)?.map_or(Ok(()), |owned| Err(owned.refusal(place)))
}

/// The ownership before the requested one; fails if its owner still has the log. Requires the lock of the log.
pub(super) fn before(place: &LogFolder, owner: &Owner) -> Result<Option<Owned>, JournalError> {
    let before = Owned::read(place)?;
    if let Some(before) = &before
        && !owner.takes_over
        && before.owner != *owner.id
        && before.is_alive(place)?
    {
        return Err(before.refusal(place));
    }
    Ok(before)
}

/// Takes a log; requires its lock. `Corrupt` if the epoch in its file is impossibly high.
pub(super) fn take(
    place: &LogFolder,
    owner: &Owner,
    before: Option<Owned>,
) -> Result<HeldOwnership, JournalError> {
    let epoch = before
        .as_ref()
        .map_or(0, |before| before.epoch)
        .checked_add(1)
        .ok_or_else(|| {
            let message = format!("log {:?} had more owners than can be counted", place.log.0);
            JournalError::new(JournalErrorKind::Corrupt, message)
        })?;
    let owned = Owned {
        epoch,
        owner: owner.id.to_string(),
        token: Uuid::new_v4().as_u128(),
    };
    let path = place.file(&owned.marker_name());
    let alive =
        private::file(OpenOptions::new().create(true).truncate(false).write(true)).open(&path);
    let alive = alive.map_err(|error| io_error("open", &path, error))?;
    alive
        .try_lock()
        .map_err(|error| io_error("lock", &path, error.into()))?;
    replace_json(&place.file("owner.json"), &owned)?;
    if let Some(before) = before {
        // The file has no further use.
        let _ = fs::remove_file(place.file(&before.marker_name()));
    }
    Ok(HeldOwnership { owned, alive })
}

impl HeldOwnership {
    /// Fails if another owner has taken over; requires the lock of the log.
    pub(super) fn check(&self, place: &LogFolder) -> Result<(), JournalError> {
        let is_last = Owned::read(place)?.as_ref() == Some(&self.owned);
        if is_last {
            Ok(())
        } else {
            Err(JournalError::for_log(JournalErrorKind::Fenced, &place.log))
        }
    }
}

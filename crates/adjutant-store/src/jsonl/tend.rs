//! Other names for logs, and their end.

use std::fs;

use adjutant_core::{JournalError, JournalErrorKind, LogId};

use super::{
    meta::{self, Meta},
    owner,
    place::{JournalFolder, LogFolder, io_error, sync_folder},
};

/// Renames a log, and updates the logs that were forked from it.
pub(super) fn rename(place: &JournalFolder, from: &LogId, to: &LogId) -> Result<(), JournalError> {
    to.check()?;
    let (source, target) = (place.log(from), place.log(to));
    {
        let _locked = source.lock_both(&target)?;
        source.ensure_exists()?;
        owner::needs_free(&source)?;
        if target.exists()? {
            return Err(JournalError::for_log(JournalErrorKind::Exists, to));
        }
        let mut meta = Meta::read(&source)?;
        meta.set_names(&[from, to]);
        meta.write(&source)?;
        fs::rename(&source.folder, &target.folder)
            .map_err(|error| io_error("rename", &source.folder, error))?;
        sync_folder(&place.logs())?;
        meta.set_names(&[to]);
        meta.write(&target)?;
    }
    meta::logs(place)?
        .iter()
        .try_for_each(|child| follow(child, from, to))
}

/// Updates the name of the original in a fork.
fn follow(child: &LogFolder, from: &LogId, to: &LogId) -> Result<(), JournalError> {
    let is_child = |meta: &mut Meta| {
        meta.about()
            .parent
            .as_ref()
            .is_some_and(|(parent, _)| parent == from)
    };
    let meta = Meta::read(child);
    if !meta.is_ok_and(|mut meta| is_child(&mut meta)) {
        return Ok(());
    }
    let _locked = child.lock()?;
    if !child.exists()? {
        return Ok(());
    }
    let mut meta = Meta::read(child)?;
    if let Some((parent, _)) = meta
        .about()
        .parent
        .as_mut()
        .filter(|(parent, _)| parent == from)
    {
        *parent = to.clone();
        meta.write(child)?;
    }
    Ok(())
}

/// Deletes a log: at once for everybody, and from the disk as soon as that goes.
pub(super) fn delete(place: &JournalFolder, log: &LogId) -> Result<(), JournalError> {
    let log = place.log(log);
    let trash = place.trash()?;
    {
        let _locked = log.lock()?;
        log.ensure_exists()?;
        owner::needs_free(&log)?;
        fs::rename(&log.folder, &trash).map_err(|error| io_error("delete", &log.folder, error))?;
        sync_folder(&place.logs())?;
    }
    // Anything that stays is removed when the journal is opened next.
    let _ = fs::remove_dir_all(trash);
    Ok(())
}

//! The metadata of a log that is available without reading it: a small file next to the records, and their last line.

use std::fs;

use adjutant_core::{
    JournalError, JournalErrorKind, LogId, LogInfo, LogPage, LogQuery, Seq, SessionMeta,
};
use serde::{Deserialize, Serialize};

use super::{
    blobs::entries,
    flushed::{self, Flushed},
    line::BEGINNING,
    name, owner,
    place::{
        JournalFolder, LogFolder, io_error, json, make_folder, new_file, replace_json, sync_folder,
    },
    scan,
};

/// The format that files are written in.
const VERSION: u32 = 1;

/// The content of the file next to the records.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Meta {
    v: u32,
    /// Its name; during a rename, both names: the name of the folder is the valid one.
    names: Vec<LogId>,
    created_ms: u64,
    about: SessionMeta,
    /// True if the flushed end is stored next to the records: older versions did not store it.
    #[serde(default)]
    has_head: bool,
}

#[derive(Deserialize)]
struct Versioned {
    v: u32,
    #[serde(default)]
    has_head: bool,
}

impl Meta {
    /// Reads the metadata of a log; fails if it has none.
    pub(super) fn read(log: &LogFolder) -> Result<Self, JournalError> {
        check_version(log)?;
        json(&log.file("meta.json"))?
            .ok_or_else(|| JournalError::for_log(JournalErrorKind::Missing, &log.log))
    }

    pub(super) fn write(&self, log: &LogFolder) -> Result<(), JournalError> {
        replace_json(&log.file("meta.json"), self)?;
        sync_folder(&log.folder)
    }

    pub(super) fn about(&mut self) -> &mut SessionMeta {
        &mut self.about
    }

    /// Sets the names; the folder determines the valid one.
    pub(super) fn set_names(&mut self, names: &[&LogId]) {
        self.names = names.iter().map(|name| (*name).clone()).collect();
    }

    fn info(self, log: &LogFolder) -> Result<LogInfo, JournalError> {
        let flushed = check(self.v, self.has_head, log)?.map_or(0, |flushed| flushed.seq);
        let end = scan::tail(&log.records())?;
        let mut info = LogInfo::new(log.log.clone(), self.created_ms);
        info.updated_ms = self.created_ms.max(end.changed_ms);
        // Records that were cut off still belong to it.
        (info.head, info.bytes) = (Seq(end.seq.max(flushed)), end.bytes);
        info.owner = owner::now(log)?.map(|it| it.owner.into());
        (info.is_owned, info.about) = (info.owner.is_some(), self.about);
        Ok(info)
    }
}

/// Fails if a newer program wrote the log, or its kept end is gone.
pub(super) fn check_version(log: &LogFolder) -> Result<(), JournalError> {
    json::<Versioned>(&log.file("meta.json"))?
        .map_or(Ok(()), |it| check(it.v, it.has_head, log).map(drop))
}

/// The kept end; fails like [`check_version`].
fn check(v: u32, has_head: bool, log: &LogFolder) -> Result<Option<Flushed>, JournalError> {
    if v > VERSION {
        let message = format!(
            "log {:?} has version {v}; this program reads up to {VERSION}",
            log.log.0
        );
        return Err(JournalError::new(JournalErrorKind::Version, message));
    }
    let flushed = Flushed::read(&log.records())?;
    if has_head && flushed.is_none() && log.exists()? {
        let message = format!(
            "the head of log {:?} is missing: nobody knows where it should end",
            log.log.0
        );
        return Err(JournalError::new(JournalErrorKind::Corrupt, message));
    }
    Ok(flushed)
}

/// Makes a log without records; after a crash there is the whole of it or nothing.
pub(super) fn make(
    place: &JournalFolder,
    log: &LogFolder,
    now_ms: u64,
) -> Result<(), JournalError> {
    let _kept = place.keep_trash()?;
    let temporary = log.at(place.trash()?);
    make_folder(&temporary.folder)?;
    let records = temporary.records();
    new_file(&records)
        .and_then(|file| file.sync_all())
        .map_err(|error| io_error("make", &records, error))?;
    flushed::make(&temporary, &BEGINNING)?;
    let meta = Meta {
        v: VERSION,
        names: vec![log.log.clone()],
        created_ms: now_ms,
        about: SessionMeta::default(),
        has_head: true,
    };
    meta.write(&temporary)?;
    make_folder(&place.logs())?;
    fs::rename(&temporary.folder, &log.folder)
        .map_err(|error| io_error("make", &log.folder, error))?;
    sync_folder(&place.logs())
}

/// From now on, the end of a log is stored next to it; requires its lock.
pub(super) fn keep_head(log: &LogFolder) -> Result<(), JournalError> {
    let mut meta = Meta::read(log)?;
    if meta.has_head {
        return Ok(());
    }
    flushed::make(log, &BEGINNING)?;
    meta.has_head = true;
    meta.write(log)
}

pub(super) fn info(place: &JournalFolder, log: &LogId) -> Result<LogInfo, JournalError> {
    let log = place.log(log);
    log.ensure_exists()?;
    Meta::read(&log)?.info(&log)
}

pub(super) fn describe(
    place: &JournalFolder,
    log: &LogId,
    about: SessionMeta,
) -> Result<(), JournalError> {
    let log = place.log(log);
    let _locked = log.lock()?;
    log.ensure_exists()?;
    let mut meta = Meta::read(&log)?;
    meta.about = about;
    meta.write(&log)
}

/// A page of logs. A log that is damaged, or was written by a newer version, is reported in a warning.
pub(super) fn list(place: &JournalFolder, query: &LogQuery) -> Result<LogPage, JournalError> {
    let mut infos = Vec::new();
    for (log, meta) in metas(place)? {
        match meta.info(&log) {
            Ok(info) => infos.push(info),
            // It was removed in the meantime.
            Err(_) if !log.exists()? => {}
            // Like one with an unreadable name: the others are listed nevertheless.
            Err(error)
                if matches!(
                    error.kind,
                    JournalErrorKind::Corrupt | JournalErrorKind::Version
                ) =>
            {
                tracing::warn!(path = %log.folder.display(), %error, "a log is not listed: it cannot be read");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(query.page(infos))
}

/// All logs. A log with an unreadable name is reported in a warning, and does not prevent the others from being
/// listed.
pub(super) fn logs(place: &JournalFolder) -> Result<Vec<LogFolder>, JournalError> {
    Ok(metas(place)?.into_iter().map(|(log, _)| log).collect())
}

fn metas(place: &JournalFolder) -> Result<Vec<(LogFolder, Meta)>, JournalError> {
    let mut logs = Vec::new();
    for folder in entries(&place.logs())? {
        let path = folder.path().join("meta.json");
        let meta = match json::<Meta>(&path) {
            Ok(Some(meta)) => meta,
            Ok(None) => continue,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a log is not listed: its metadata is damaged");
                continue;
            }
        };
        let is_true = |log: &&LogId| folder.file_name().to_str() == Some(&*name::folder(log));
        let log = meta.names.iter().find(is_true).map(|log| place.log(log));
        logs.extend(log.map(|log| (log, meta)));
    }
    Ok(logs)
}

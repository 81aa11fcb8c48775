//! Large texts, each in a file that is named by its digest.

use std::{collections::HashSet, fs, io::ErrorKind, path::Path};

use adjutant_core::{Attachment, Digest, GcReport, JournalError, JournalErrorKind, Stamped};

use super::{
    line::BEGINNING,
    place::{JournalFolder, contents, io_error, make_folder, replace, sync_folder},
    scan::Scan,
};

/// Writes the attachments of records that are not there yet; they survive a crash of the machine.
pub(super) fn keep<'a>(
    place: &JournalFolder,
    records: impl Iterator<Item = &'a Stamped>,
) -> Result<(), JournalError> {
    let folder = place.blobs();
    let mut is_new = false;
    for stamped in records {
        for Attachment { digest, bytes } in stamped.attachments()? {
            let path = folder.join(digest.to_string());
            // An attachment that is there but damaged is written again.
            if contents(&path).is_ok_and(|kept| kept.is_some_and(|kept| kept == **bytes)) {
                continue;
            }
            make_folder(&folder)?;
            replace(&path, bytes)?;
            is_new = true;
        }
    }
    if is_new { sync_folder(&folder) } else { Ok(()) }
}

/// The attachments with these digests.
pub(super) fn read(
    place: &JournalFolder,
    digests: Vec<Digest>,
) -> Result<Vec<Attachment>, JournalError> {
    let read = |digest: Digest| {
        let path = place.blobs().join(digest.to_string());
        let bytes = contents(&path)?.ok_or_else(|| {
            JournalError::new(
                JournalErrorKind::Corrupt,
                format!("attachment {} is missing", path.display()),
            )
        })?;
        Ok(Attachment {
            digest,
            bytes: bytes.into(),
        })
    };
    digests.into_iter().map(read).collect()
}

/// Removes the attachments that no log has.
///
/// An unreadable log keeps all blobs, because the ones that it uses are unknown.
pub(super) fn sweep(place: &JournalFolder) -> Result<GcReport, JournalError> {
    let _locked = place.sweep_blobs()?;
    let mut needed = HashSet::new();
    for folder in entries(&place.logs())? {
        let mut scan = match Scan::open(&folder.path().join("records.jsonl"), BEGINNING, u64::MAX) {
            Ok(scan) => scan,
            // It was renamed or deleted a moment ago; a renamed log is not reliably found under its new name.
            Err(_) if !folder.path().exists() => return Ok(GcReport::default()),
            Err(error) => return Err(error),
        };
        loop {
            let batch = scan.batch()?;
            if batch.is_empty() {
                break;
            }
            needed.extend(
                batch
                    .into_iter()
                    .flat_map(|kept| kept.attached)
                    .map(|digest| digest.to_string()),
            );
        }
    }
    let mut swept = GcReport::default();
    for blob in entries(&place.blobs())? {
        let name = blob.file_name();
        if name.to_str().is_some_and(|name| needed.contains(name)) {
            continue;
        }
        let path = blob.path();
        let bytes = blob
            .metadata()
            .map_err(|error| io_error("read", &path, error))?
            .len();
        fs::remove_file(&path).map_err(|error| io_error("remove", &path, error))?;
        // A temporary file is a remainder of a crash: there are no other writers while this lock is held.
        if name
            .to_str()
            .is_some_and(|name| name.parse::<Digest>().is_ok())
        {
            swept.attachments += 1;
            swept.bytes += bytes;
        }
    }
    Ok(swept)
}

/// Returns the entries of a folder; empty if it does not exist.
pub(super) fn entries(folder: &Path) -> Result<Vec<fs::DirEntry>, JournalError> {
    match fs::read_dir(folder).and_then(Iterator::collect) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries.map_err(|error| io_error("list", folder, error)),
    }
}

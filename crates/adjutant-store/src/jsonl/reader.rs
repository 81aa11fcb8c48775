//! Reading logs: on a thread that may wait for the disk, a few batches ahead of who listens.

use adjutant_core::{Digest, JournalError, LogId, RecordStream, Seq, StoredRecord, StoredStream};
use futures_util::stream;
use tokio::sync::mpsc;

use super::{
    blobs, fold,
    place::{JournalFolder, LogFolder},
    scan::{Scan, ScannedRecord},
};

/// The largest number of records that wait for a listener.
const AHEAD: usize = 256;

/// The records of a log, each checked against the link before it.
pub(super) fn records(place: JournalFolder, log: LogId, after: Seq) -> RecordStream {
    spawn_stream(move |send| {
        each(&place, &log, after, |before, stored| {
            send(stored.open(before))
        })
    })
}

/// The records of a log as they are stored.
pub(super) fn read_stored(place: JournalFolder, log: LogId, after: Seq) -> StoredStream {
    spawn_stream(move |send| each(&place, &log, after, |_, stored| send(Ok(stored))))
}

/// Calls `tell` with every record after a position and the previous link, until it returns `false`.
fn each(
    place: &JournalFolder,
    log: &LogId,
    after: Seq,
    mut tell: impl FnMut(&Digest, StoredRecord) -> bool,
) -> Result<(), JournalError> {
    let at = place.log(log);
    at.ensure_exists()?;
    super::meta::check_version(&at)?;
    let mut scan = Scan::open(&at.records(), fold::before(&at, after.0)?, after.0)?;
    let mut before = scan.end.link;
    loop {
        let batch = batch(&mut scan, &at, after)?;
        if batch.is_empty() {
            return Ok(());
        }
        for ScannedRecord {
            seq,
            bytes,
            link,
            attached,
        } in batch
        {
            let before = std::mem::replace(&mut before, link);
            if seq <= after {
                continue;
            }
            let attachments = blobs::read(place, attached)?;
            if !tell(
                &before,
                StoredRecord {
                    seq,
                    bytes,
                    link,
                    attachments,
                },
            ) {
                return Ok(());
            }
        }
    }
}

/// The next batch. Apparent damage can be an owner that cuts off an incomplete batch: then a second read under the
/// lock decides.
fn batch(scan: &mut Scan, log: &LogFolder, after: Seq) -> Result<Vec<ScannedRecord>, JournalError> {
    let end = scan.end.clone();
    scan.batch().or_else(|error| {
        let Ok(_locked) = log.lock() else {
            return Err(error);
        };
        *scan = Scan::open(&log.records(), end, after.0)?;
        scan.batch()
    })
}

/// A stream of the values that a thread sends, including the final error.
fn spawn_stream<T: Send + 'static>(
    read: impl FnOnce(&mut dyn FnMut(Result<T, JournalError>) -> bool) -> Result<(), JournalError>
    + Send
    + 'static,
) -> std::pin::Pin<Box<dyn futures_core::Stream<Item = Result<T, JournalError>> + Send>> {
    let start = move || {
        let (sender, receiver) = mpsc::channel(AHEAD);
        tokio::task::spawn_blocking(move || {
            let mut is_over = false;
            let read = read(&mut |item| {
                is_over = item.is_err();
                sender.blocking_send(item).is_ok() && !is_over
            });
            if let Err(error) = read {
                // A listener that is gone need not know.
                let _ = sender.blocking_send(Err(error));
            }
        });
        receiver
    };
    // Nothing is read before the stream is polled.
    Box::pin(stream::unfold(
        Err(start),
        |state: Result<mpsc::Receiver<_>, _>| async move {
            let mut receiver = state.unwrap_or_else(|start| start());
            let item = receiver.recv().await?;
            Some((item, Ok(receiver)))
        },
    ))
}

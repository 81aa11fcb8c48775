//! Reading a log, a part at a time: while one is read from the file, those before it are checked, parsed and used.

use std::{pin::Pin, sync::Arc};

use adjutant_core::{
    Attachment, Digest, Folded, JournalError, JournalErrorKind, LogId, Seq, StoredRecord,
};
use futures_core::Stream;
use futures_util::{StreamExt, stream};
use rusqlite::{Connection, OptionalExtension, Row, params};
use tokio::{
    sync::mpsc::{self, Receiver},
    task::{JoinHandle, spawn_blocking},
};

use super::{
    super::{number, store::Store},
    Fault, place,
};

/// The number of records in the first part, and in the largest ones.
const PART: (i64, i64) = (32, 1024);
/// The number of bytes after which a part accepts no more records.
const PART_BYTES: usize = 1024 * 1024;
/// The number of parts that wait for a listener, about.
const AHEAD: usize = 2;

/// Makes an item of a record and of the link before it.
type RecordOpener<T> = fn(StoredRecord, &Digest) -> Result<T, JournalError>;

/// The place up to which a log is read.
#[derive(Debug, Clone)]
struct Cursor {
    log: LogId,
    /// Known from the first part on, so that another log of the same name is not taken for this one.
    key: Option<i64>,
    at: Seq,
    /// The link of the record there.
    link: Option<Digest>,
    limit: i64,
}

/// A part of a log as it is stored, and where the next one begins.
struct StoredPart {
    /// The link of the record before it.
    before: Digest,
    records: Vec<StoredRecord>,
    /// The reason why nothing follows the part, if it is an error.
    failed: Option<JournalError>,
    next: Option<Cursor>,
}

/// The items of a part.
type Items<T> = Vec<Result<T, JournalError>>;

/// The next step of a reader.
enum ReadNext<T> {
    Begin(Cursor),
    GoOn(Receiver<JoinHandle<Items<T>>>),
}

/// The records of a log after a place, as `open` makes them.
pub(super) fn stream<T: Send + 'static>(
    store: Arc<Store>,
    log: &LogId,
    after: Seq,
    open: RecordOpener<T>,
) -> Pin<Box<dyn Stream<Item = Result<T, JournalError>> + Send>> {
    let first = Cursor {
        log: log.clone(),
        key: None,
        at: after,
        link: None,
        limit: PART.0,
    };
    let items = stream::unfold(Some(ReadNext::Begin(first)), move |next| {
        let store = Arc::clone(&store);
        async move {
            match next? {
                ReadNext::Begin(cursor) => {
                    // Most logs are short: a task would cost more.
                    let log = cursor.log.clone();
                    let first = store
                        .read(move |db| part(db, cursor.clone()).map(|part| part.open(open)))
                        .await;
                    let (items, next) =
                        first.unwrap_or_else(|fault| (vec![Err(cannot_read(fault, &log))], None));
                    Some((
                        stream::iter(items),
                        next.map(|cursor| ReadNext::GoOn(ahead(store, cursor, open))),
                    ))
                }
                ReadNext::GoOn(mut parts) => {
                    let items = parts
                        .recv()
                        .await?
                        .await
                        .unwrap_or_else(|_| vec![Err(task_stopped_error())]);
                    // Nothing follows an error.
                    let next = items
                        .last()
                        .is_none_or(Result::is_ok)
                        .then_some(ReadNext::GoOn(parts));
                    Some((stream::iter(items), next))
                }
            }
        }
    });
    Box::pin(items.flatten())
}

/// Reads on ahead of who listens: while one part is read from the file, those before it are checked and parsed.
fn ahead<T: Send + 'static>(
    store: Arc<Store>,
    mut cursor: Cursor,
    open: RecordOpener<T>,
) -> Receiver<JoinHandle<Items<T>>> {
    let (parts, opened) = mpsc::channel(AHEAD);
    tokio::spawn(async move {
        loop {
            let from = cursor.clone();
            let read = store.read(move |db| part(db, from.clone())).await;
            let part = read
                .unwrap_or_else(|fault| StoredPart::from_error(cannot_read(fault, &cursor.log)));
            let next = part.next.clone();
            let opening = spawn_blocking(move || part.open(open).0);
            // Without a receiver the read ends.
            match (parts.send(opening).await, next) {
                (Ok(()), Some(next)) => cursor = next,
                _ => return,
            }
        }
    });
    opened
}

impl StoredPart {
    fn from_error(error: JournalError) -> Self {
        Self {
            before: Digest::GENESIS,
            records: Vec::new(),
            failed: Some(error),
            next: None,
        }
    }

    /// Verifies and parses the records, up to the first one that differs from the written data.
    fn open<T>(self, open: RecordOpener<T>) -> (Items<T>, Option<Cursor>) {
        let (mut items, mut before) = (Vec::with_capacity(self.records.len()), self.before);
        for record in self.records {
            let link = record.link;
            let opened = open(record, &before);
            let is_wrong = opened.is_err();
            items.push(opened);
            if is_wrong {
                return (items, None);
            }
            before = link;
        }
        items.extend(self.failed.map(Err));
        (items, self.next)
    }
}

/// The end of a log.
struct LogHead {
    key: i64,
    head: Seq,
    link: Digest,
}

fn end(db: &Connection, log: &LogId) -> Result<Option<LogHead>, Fault> {
    let read = |row: &Row<'_>| {
        Ok(LogHead {
            key: row.get(0)?,
            head: Seq(number::read(row.get(1)?)),
            link: Digest(row.get(2)?),
        })
    };
    Ok(db
        .prepare_cached("SELECT key, head, link FROM logs WHERE id = ?1")?
        .query_row([&*log.0], read)
        .optional()?)
}

fn part(db: &Connection, mut cursor: Cursor) -> Result<StoredPart, Fault> {
    let known = end(db, &cursor.log)?.filter(|end| cursor.key.is_none_or(|key| key == end.key));
    let end = known.ok_or_else(|| JournalError::for_log(JournalErrorKind::Missing, &cursor.log))?;
    cursor.key = Some(end.key);
    if cursor.at >= end.head {
        return Ok(StoredPart {
            before: Digest::GENESIS,
            records: Vec::new(),
            failed: None,
            next: None,
        });
    }
    let before = match cursor.link {
        Some(link) => link,
        None => {
            place::link(db, end.key, cursor.at)?.ok_or_else(|| lacks(&cursor.log, cursor.at))?
        }
    };
    let sql = "SELECT place, link, bytes, attachments FROM records WHERE place > ?1 AND place <= ?2 \
               ORDER BY place LIMIT ?3";
    let mut select = db.prepare_cached(sql)?;
    let (from, upto) = (
        place::record_place(end.key, cursor.at),
        place::record_place(end.key, end.head),
    );
    let mut rows = select.query(params![from, upto, cursor.limit])?;
    let mut part = StoredPart {
        before,
        records: Vec::new(),
        failed: None,
        next: None,
    };
    let (mut link, mut bytes) = (before, 0);
    while let Some(row) = rows.next()?.filter(|_| bytes < PART_BYTES) {
        let record = record(db, row)?;
        let due = Seq(cursor.at.0 + 1);
        if record.seq != due {
            part.failed = Some(lacks(&cursor.log, due));
            return Ok(part);
        }
        bytes += record.bytes.len()
            + record
                .attachments
                .iter()
                .map(|part| part.bytes.len())
                .sum::<usize>();
        (cursor.at, link) = (record.seq, record.link);
        part.records.push(record);
    }
    if part.records.is_empty() {
        part.failed = Some(lacks(&cursor.log, Seq(cursor.at.0 + 1)));
    } else if cursor.at < end.head {
        cursor.limit = (cursor.limit * 4).min(PART.1);
        part.next = Some(Cursor {
            link: Some(link),
            ..cursor
        });
    } else if link != end.link {
        part.failed = Some(corrupt(format!(
            "log {:?} does not end with its last written record",
            cursor.log.0
        )));
    }
    Ok(part)
}

fn record(db: &Connection, row: &Row<'_>) -> Result<StoredRecord, Fault> {
    let (place, count): (i64, i64) = (row.get(0)?, row.get(3)?);
    let (link, bytes): ([u8; 32], Vec<u8>) = (row.get(1)?, row.get(2)?);
    let mut attachments = Vec::new();
    if count > 0 {
        let sql = "SELECT digest, bytes FROM attached JOIN attachments USING (digest) WHERE place = ?1 ORDER BY no";
        let mut select = db.prepare_cached(sql)?;
        let mut rows = select.query([place])?;
        while let Some(row) = rows.next()? {
            let bytes: Vec<u8> = row.get(1)?;
            attachments.push(Attachment {
                digest: Digest(row.get(0)?),
                bytes: bytes.into(),
            });
        }
    }
    let seq = place::seq(place);
    if number::count(attachments.len()) != count {
        return Err(Fault::Corrupt(format!("record {seq} misses an attachment")));
    }
    Ok(StoredRecord {
        seq,
        bytes: bytes.into(),
        link: Digest(link),
        attachments,
    })
}

/// Checks that the last record of a log, if there is one, can be read.
pub(super) fn check_end(db: &Connection, log: &LogId) -> Result<(), Fault> {
    let Some(end) = end(db, log)?.filter(|end| end.head.0 > 0) else {
        return Ok(());
    };
    let before = Seq(end.head.0 - 1);
    let cursor = Cursor {
        log: log.clone(),
        key: Some(end.key),
        at: before,
        link: None,
        limit: 1,
    };
    let (last, _) = part(db, cursor)?.open(|record, before| record.open(before));
    last.into_iter()
        .try_for_each(|item| item.map(drop))
        .map_err(Fault::from)
}

/// The last saved fold, if it is complete and matches the first records of the log.
pub(super) fn load_fold(db: &Connection, log: &LogId) -> Result<Option<Folded>, Fault> {
    let Some(key) = place::key(db, log)? else {
        return Ok(None);
    };
    let sql = "SELECT seq, link, format, digest, bytes FROM folded WHERE log = ?1";
    let read = |row: &Row<'_>| {
        let (link, digest): ([u8; 32], [u8; 32]) = (row.get(1)?, row.get(3)?);
        let (seq, format, bytes): (i64, String, Vec<u8>) = (row.get(0)?, row.get(2)?, row.get(4)?);
        let folded = Folded {
            seq: Seq(number::read(seq)),
            format: format.into(),
            bytes: bytes.into(),
        };
        Ok((Digest(link), Digest(digest), folded))
    };
    let Some((link, digest, folded)) = db.prepare_cached(sql)?.query_row([key], read).optional()?
    else {
        return Ok(None);
    };
    let stands =
        place::link(db, key, folded.seq)? == Some(link) && Digest::compute(&folded.bytes) == digest;
    Ok(stands.then_some(folded))
}

fn lacks(log: &LogId, seq: Seq) -> JournalError {
    corrupt(format!("log {:?} lacks record {seq}", log.0))
}

fn corrupt(why: String) -> JournalError {
    JournalError::new(JournalErrorKind::Corrupt, why)
}

fn cannot_read(fault: Fault, log: &LogId) -> JournalError {
    fault.journal(|| format!("cannot read log {:?}", log.0))
}

fn task_stopped_error() -> JournalError {
    JournalError::new(
        JournalErrorKind::Io,
        "cannot read on: the reading task was stopped",
    )
}

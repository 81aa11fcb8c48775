//! Reading a log, a batch at a time: checked and parsed where it is read, while the batch before is being used.

use std::{pin::Pin, sync::Arc};

use adjutant_agent::{Attachment, Digest, Folded, JournalError, JournalErrorKind, LogId, Seq, StoredRecord};
use futures_core::Stream;
use futures_util::{StreamExt, stream};
use rusqlite::{Connection, OptionalExtension, Row, params};
use tokio::task::JoinHandle;

use super::{
    super::{number, store::Store},
    Fault, place,
};

/// How many records the first batch has, and the largest ones have.
const BATCH: (i64, i64) = (32, 1024);
/// How many bytes a batch has before it takes no more records.
const BATCH_BYTES: usize = 2 * 1024 * 1024;

/// Makes an item of a record and of the link before it.
type Open<T> = fn(StoredRecord, &Digest) -> Result<T, JournalError>;

/// How far a log is read.
#[derive(Debug, Clone)]
struct Cursor {
    log: LogId,
    /// Known from the first batch on, so that another log of the same name is not taken for this one.
    key: Option<i64>,
    at: Seq,
    /// The link of the record there.
    link: Option<Digest>,
    limit: i64,
}

/// A part of a log, and where the next one begins.
struct Batch<T> {
    items: Vec<Result<T, JournalError>>,
    next: Option<Cursor>,
}

/// What a reader does next.
enum Next<T> {
    Load(Cursor),
    Await(JoinHandle<Batch<T>>),
}

/// The records of a log after a place, as `open` makes them.
pub(super) fn stream<T: Send + 'static>(
    store: Arc<Store>,
    log: &LogId,
    after: Seq,
    open: Open<T>,
) -> Pin<Box<dyn Stream<Item = Result<T, JournalError>> + Send>> {
    let first = Cursor { log: log.clone(), key: None, at: after, link: None, limit: BATCH.0 };
    let batches = stream::unfold(Some(Next::Load(first)), move |next| {
        let store = Arc::clone(&store);
        async move {
            let batch = match next? {
                Next::Load(cursor) => load(store.clone(), cursor, open).await,
                Next::Await(batch) => batch.await.unwrap_or_else(|_| Batch::failed(gone())),
            };
            let ahead = |cursor| Next::Await(tokio::spawn(load(store, cursor, open)));
            Some((stream::iter(batch.items), batch.next.map(ahead)))
        }
    });
    Box::pin(batches.flatten())
}

impl<T> Batch<T> {
    fn failed(error: JournalError) -> Self {
        Self { items: vec![Err(error)], next: None }
    }
}

async fn load<T: Send + 'static>(store: Arc<Store>, cursor: Cursor, open: Open<T>) -> Batch<T> {
    let log = cursor.log.clone();
    let read = store.read(move |db| batch(db, cursor.clone(), open)).await;
    read.unwrap_or_else(|fault| Batch::failed(fault.journal(|| format!("cannot read log {:?}", log.0))))
}

/// The end of a log.
struct End {
    key: i64,
    head: Seq,
    link: Digest,
}

fn end(db: &Connection, log: &LogId) -> Result<Option<End>, Fault> {
    let read =
        |row: &Row<'_>| Ok(End { key: row.get(0)?, head: Seq(number::read(row.get(1)?)), link: Digest(row.get(2)?) });
    Ok(db.prepare_cached("SELECT key, head, link FROM logs WHERE id = ?1")?.query_row([&*log.0], read).optional()?)
}

fn batch<T>(db: &Connection, mut cursor: Cursor, open: Open<T>) -> Result<Batch<T>, Fault> {
    let known = end(db, &cursor.log)?.filter(|end| cursor.key.is_none_or(|key| key == end.key));
    let end = known.ok_or_else(|| JournalError::missing(&cursor.log))?;
    cursor.key = Some(end.key);
    if cursor.at >= end.head {
        return Ok(Batch { items: Vec::new(), next: None });
    }
    let mut link = match cursor.link {
        Some(link) => link,
        None => place::link(db, end.key, cursor.at)?.ok_or_else(|| lacks(&cursor.log, cursor.at))?,
    };
    let sql = "SELECT place, link, bytes, attachments FROM records WHERE place > ?1 AND place <= ?2 \
               ORDER BY place LIMIT ?3";
    let mut select = db.prepare_cached(sql)?;
    let (from, upto) = (place::of(end.key, cursor.at), place::of(end.key, end.head));
    let mut rows = select.query(params![from, upto, cursor.limit])?;
    let (mut items, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()?.filter(|_| bytes < BATCH_BYTES) {
        let record = record(db, row)?;
        bytes += record.bytes.len() + record.attachments.iter().map(|part| part.bytes.len()).sum::<usize>();
        let (seq, after) = (record.seq, record.link);
        let due = Seq(cursor.at.0 + 1);
        let opened = if seq == due { open(record, &link) } else { Err(lacks(&cursor.log, due)) };
        let is_last = opened.is_err();
        items.push(opened);
        if is_last {
            return Ok(Batch { items, next: None });
        }
        (cursor.at, link) = (seq, after);
    }
    if items.is_empty() {
        items.push(Err(lacks(&cursor.log, Seq(cursor.at.0 + 1))));
        return Ok(Batch { items, next: None });
    }
    if cursor.at == end.head && link != end.link {
        items.push(Err(corrupt(format!("log {:?} does not end with what was written last", cursor.log.0))));
    }
    cursor.limit = (cursor.limit * 4).min(BATCH.1);
    let next = (cursor.at < end.head).then_some(Cursor { link: Some(link), ..cursor });
    Ok(Batch { items, next })
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
            attachments.push(Attachment { digest: Digest(row.get(0)?), bytes: bytes.into() });
        }
    }
    let seq = place::seq(place);
    if number::count(attachments.len()) != count {
        return Err(Fault::Corrupt(format!("record {seq} misses an attachment")));
    }
    Ok(StoredRecord { seq, bytes: bytes.into(), link: Digest(link), attachments })
}

/// Checks that the last record of a log, if there is one, can be read.
pub(super) fn check_end(db: &Connection, log: &LogId) -> Result<(), Fault> {
    let Some(end) = end(db, log)?.filter(|end| end.head.0 > 0) else { return Ok(()) };
    let before = Seq(end.head.0 - 1);
    let cursor = Cursor { log: log.clone(), key: Some(end.key), at: before, link: None, limit: 1 };
    let last = batch(db, cursor, |record, before| record.open(before))?;
    last.items.into_iter().try_for_each(|item| item.map(drop)).map_err(Fault::from)
}

/// The fold that was kept last, if it is whole and stands for the first records of the log.
pub(super) fn folded(db: &Connection, log: &LogId) -> Result<Option<Folded>, Fault> {
    let Some(key) = place::key(db, log)? else { return Ok(None) };
    let sql = "SELECT seq, link, format, digest, bytes FROM folded WHERE log = ?1";
    let read = |row: &Row<'_>| {
        let (link, digest): ([u8; 32], [u8; 32]) = (row.get(1)?, row.get(3)?);
        let (seq, format, bytes): (i64, String, Vec<u8>) = (row.get(0)?, row.get(2)?, row.get(4)?);
        let folded = Folded { seq: Seq(number::read(seq)), format: format.into(), bytes: bytes.into() };
        Ok((Digest(link), Digest(digest), folded))
    };
    let Some((link, digest, folded)) = db.prepare_cached(sql)?.query_row([key], read).optional()? else {
        return Ok(None);
    };
    let stands = place::link(db, key, folded.seq)? == Some(link) && Digest::of(&folded.bytes) == digest;
    Ok(stands.then_some(folded))
}

fn lacks(log: &LogId, seq: Seq) -> JournalError {
    corrupt(format!("log {:?} lacks record {seq}", log.0))
}

fn corrupt(why: String) -> JournalError {
    JournalError::new(JournalErrorKind::Corrupt, why)
}

fn gone() -> JournalError {
    JournalError::new(JournalErrorKind::Io, "cannot read on: the reading task was stopped")
}

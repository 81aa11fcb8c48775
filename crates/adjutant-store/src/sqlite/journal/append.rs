//! Appending to a log that is owned: the end moves and the rows come, or neither.

use std::sync::Arc;

use adjutant_core::{
    Attachment, Digest, Folded, JournalError, JournalErrorKind, LogId, Seq, Stamped, Work,
};
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};

use super::{
    super::{number, owners::Tenure},
    Fault, due, place,
};

/// The most bytes that a record, or one of its large parts, may have: SQLite keeps up to 1,000,000,000 in a value.
const MAX_PART_BYTES: usize = 512 * 1024 * 1024;

/// A batch of records to append.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) tenure: Tenure,
    /// The record that it follows.
    pub(super) before: Seq,
    /// Its last record.
    pub(super) head: Seq,
    pub(super) link: Digest,
    pub(super) at_ms: u64,
    pub(super) rows: Vec<RecordRow>,
    /// The work that the log holds from here on, if it changes.
    pub(super) mark: Option<Work>,
    /// True if earlier lost owners no longer count.
    pub(super) has_progressed: bool,
}

/// A record as it is kept.
#[derive(Debug)]
pub(super) struct RecordRow {
    seq: Seq,
    pub(super) link: Digest,
    bytes: Bytes,
    attachments: Vec<Attachment>,
}

impl RecordRow {
    /// The row of a record that follows one with this link.
    pub(super) fn from_stamped(
        stamped: &Arc<Stamped>,
        before: &Digest,
    ) -> Result<Self, JournalError> {
        let (bytes, attachments) = (stamped.bytes()?.clone(), stamped.attachments()?.to_vec());
        let largest = attachments
            .iter()
            .map(|attachment| attachment.bytes.len())
            .chain([bytes.len()])
            .max();
        let why = match largest {
            _ if stamped.seq.0 > place::MAX_SEQ => {
                format!("a log may have {} records", place::MAX_SEQ)
            }
            Some(found) if found > MAX_PART_BYTES => {
                format!(
                    "record {} has a part of {found} bytes; it may have {MAX_PART_BYTES}",
                    stamped.seq
                )
            }
            _ => {
                return Ok(Self {
                    seq: stamped.seq,
                    link: before.then(&bytes),
                    bytes,
                    attachments,
                });
            }
        };
        Err(JournalError::new(JournalErrorKind::Invalid, why))
    }
}

impl Batch {
    /// Returns the number of bytes that it writes, about.
    pub(super) fn bytes(&self) -> usize {
        let attached = |row: &RecordRow| {
            row.attachments
                .iter()
                .map(|part| part.bytes.len())
                .sum::<usize>()
        };
        self.rows
            .iter()
            .map(|row| row.bytes.len() + attached(row))
            .sum()
    }
}

/// Appends a batch.
pub(super) fn append(db: &Connection, log: &LogId, batch: &Batch) -> Result<(), Fault> {
    let (key, epoch) = batch.tenure;
    let bytes: usize = batch.rows.iter().map(|row| row.bytes.len()).sum();
    // A batch without records changes a number at least, or there would be nothing to flush. A clock may go backwards.
    let sql = "UPDATE logs SET head = ?4, link = ?5, bytes = bytes + ?6, updated_ms = max(updated_ms, ?7), \
               flushes = flushes + 1 WHERE key = ?1 AND epoch = ?2 AND head = ?3";
    let end = params![
        key,
        epoch,
        number::to_i64(batch.before.0),
        number::to_i64(batch.head.0),
        batch.link.0,
        number::count(bytes),
        number::to_i64(batch.at_ms),
    ];
    if db.prepare_cached(sql)?.execute(end)? == 0 {
        check(db, log, batch.tenure)?;
        let message = format!(
            "log {:?} does not end with record {} any more; own it again",
            log.0, batch.before
        );
        return Err(JournalError::new(JournalErrorKind::Corrupt, message).into());
    }
    if let Some(mark) = &batch.mark {
        let (work, waits, until_ms) = due::columns(mark);
        let sql = "UPDATE logs SET work = ?2, waits = ?3, until_ms = ?4, lost = CASE ?2 WHEN 1 THEN lost ELSE 0 END \
                   WHERE key = ?1";
        db.prepare_cached(sql)?
            .execute(params![key, work, waits, until_ms])?;
    }
    if batch.has_progressed {
        db.prepare_cached("UPDATE logs SET lost = 0 WHERE key = ?1 AND lost > 0")?
            .execute([key])?;
    }
    let mut insert = db.prepare_cached(
        "INSERT INTO records(place, link, bytes, attachments) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for row in &batch.rows {
        let place = place::record_place(key, row.seq);
        insert.execute(params![
            place,
            row.link.0,
            &row.bytes[..],
            number::count(row.attachments.len())
        ])?;
        attach(db, place, &row.attachments)?;
    }
    Ok(())
}

fn attach(db: &Connection, place: i64, attachments: &[Attachment]) -> Result<(), Fault> {
    for (no, attachment) in (0_i64..).zip(attachments) {
        let (digest, bytes) = (attachment.digest.0, &attachment.bytes[..]);
        let keep = "INSERT OR IGNORE INTO attachments(digest, bytes) VALUES (?1, ?2)";
        db.prepare_cached(keep)?.execute(params![digest, bytes])?;
        let refer = "INSERT INTO attached(place, no, digest) VALUES (?1, ?2, ?3)";
        db.prepare_cached(refer)?
            .execute(params![place, no, digest])?;
    }
    Ok(())
}

/// Keeps a fold of a log's first records.
pub(super) fn keep(
    db: &Connection,
    log: &LogId,
    tenure: Tenure,
    folded: &Folded,
) -> Result<(), Fault> {
    check(db, log, tenure)?;
    let missing = || Fault::Invalid(format!("it has no record {}", folded.seq));
    let link = place::link(db, tenure.0, folded.seq)?.ok_or_else(missing)?;
    let sql = "INSERT OR REPLACE INTO folded(log, seq, link, format, digest, bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let (seq, digest) = (number::to_i64(folded.seq.0), Digest::compute(&folded.bytes));
    db.prepare_cached(sql)?.execute(params![
        tenure.0,
        seq,
        link.0,
        &*folded.format,
        digest.0,
        &folded.bytes[..]
    ])?;
    Ok(())
}

/// Fails if another owner has taken over the log.
pub(super) fn check(db: &Connection, log: &LogId, (key, epoch): Tenure) -> Result<(), Fault> {
    let mut select = db.prepare_cached("SELECT epoch FROM logs WHERE key = ?1")?;
    let found: Option<i64> = select.query_row([key], |row| row.get(0)).optional()?;
    if found == Some(epoch) {
        Ok(())
    } else {
        Err(JournalError::for_log(JournalErrorKind::Fenced, log).into())
    }
}

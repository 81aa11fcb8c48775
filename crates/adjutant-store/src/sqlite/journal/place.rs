//! The place of a record: the key of its log and its number in one 64-bit number, so that the records of a log lie
//! together.

use adjutant_core::{Digest, LogId, Seq};
use rusqlite::{Connection, OptionalExtension, params};

use super::Fault;

/// The number of bits that the number of a record has.
const SEQ_BITS: u32 = 36;
/// The largest number of a record.
pub(super) const MAX_SEQ: u64 = (1 << SEQ_BITS) - 1;
/// The largest key of a log.
pub(super) const MAX_KEY: i64 = (1 << (63 - SEQ_BITS)) - 1;

/// The place of a record.
pub(super) fn record_place(key: i64, seq: Seq) -> i64 {
    // At most 2^36 - 1, so it fits.
    (key << SEQ_BITS) | seq.0.min(MAX_SEQ) as i64
}

/// The number of the record at a place.
pub(super) fn seq(place: i64) -> Seq {
    Seq(place as u64 & MAX_SEQ)
}

/// The key of a log, if there is one of that name.
pub(super) fn key(db: &Connection, log: &LogId) -> rusqlite::Result<Option<i64>> {
    db.prepare_cached("SELECT key FROM logs WHERE id = ?1")?
        .query_row([&*log.0], |row| row.get(0))
        .optional()
}

/// The link of a record; that before the first one is known.
pub(super) fn link(db: &Connection, key: i64, seq: Seq) -> Result<Option<Digest>, Fault> {
    if seq.0 == 0 {
        return Ok(Some(Digest::GENESIS));
    }
    let mut select = db.prepare_cached("SELECT link FROM records WHERE place = ?1")?;
    let link = select
        .query_row(params![record_place(key, seq)], |row| {
            row.get::<_, [u8; 32]>(0)
        })
        .optional()?;
    Ok(link.map(Digest))
}

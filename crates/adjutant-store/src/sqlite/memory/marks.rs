//! The places up to which sources were read for an owner.

use rusqlite::{Connection, OptionalExtension, params};

use super::super::fault::Fault;

/// Returns the place up to which a source was read; 0 if none is kept.
pub(super) fn read_mark(db: &Connection, owner: i64, source: &str) -> Result<u64, Fault> {
    let mut select =
        db.prepare_cached("SELECT upto FROM marks WHERE owner = ?1 AND source = ?2")?;
    let upto: Option<i64> = select
        .query_row(params![owner, source], |row| row.get(0))
        .optional()?;
    Ok(upto.unwrap_or(0).cast_unsigned())
}

/// Keeps how far a source was read, if it was read so far; whether it was.
pub(super) fn mark(
    db: &Connection,
    owner: i64,
    source: &str,
    from: u64,
    to: u64,
) -> Result<bool, Fault> {
    if read_mark(db, owner, source)? != from {
        return Ok(false);
    }
    // Marks are only compared with each other, so all 64 bits can be kept.
    let sql = "INSERT OR REPLACE INTO marks(owner, source, upto) VALUES (?1, ?2, ?3)";
    db.prepare_cached(sql)?
        .execute(params![owner, source, to.cast_signed()])?;
    Ok(true)
}

//! Changing keys of a key-value store: all of them, or none.

use std::sync::Arc;

use adjutant_core::kv::{KvStoreError, Version, When};
use rusqlite::{Connection, OptionalExtension, Row as Found, params};

use super::super::{fault::Fault, number, words};

/// The number of removals of a key-value store that a watch can report.
const MAX_REMOVED: i64 = 10_000;
/// At every which version the oldest ones are forgotten, and how many at once are forgotten without waiting for it: to
/// find the oldest, all that are kept are walked over.
const FORGET_EVERY: i64 = 64;

/// A change of a key.
#[derive(Debug)]
pub(super) struct ChangeRow {
    pub(super) key: Arc<str>,
    pub(super) when: When,
    pub(super) put: Option<Put>,
}

/// A value.
#[derive(Debug)]
pub(super) struct Put {
    pub(super) json: String,
    pub(super) text: Arc<str>,
}

/// The present entry of a key.
struct Present {
    row: i64,
    version: Version,
    is_removed: bool,
}

/// Changes keys.
pub(super) fn write(
    db: &Connection,
    kv: &str,
    rows: &[ChangeRow],
    now_ms: u64,
) -> Result<Version, Fault> {
    db.prepare_cached("INSERT OR IGNORE INTO shelves(name) VALUES (?1)")?
        .execute([kv])?;
    let step = i64::from(!rows.is_empty());
    let sql = "UPDATE shelves SET newest = newest + ?2 WHERE name = ?1 RETURNING key, newest";
    let numbered = params![kv, step];
    let (key, version): (i64, i64) = db
        .prepare_cached(sql)?
        .query_row(numbered, |row| Ok((row.get(0)?, row.get(1)?)))?;
    for row in rows {
        change(db, key, version, row, number::to_i64(now_ms))?;
    }
    let removed = rows.iter().filter(|row| row.put.is_none()).count();
    if version % FORGET_EVERY == 0 || number::to_i64(removed as u64) >= FORGET_EVERY {
        forget(db, key)?;
    }
    Ok(Version(number::read(version)))
}

fn change(
    db: &Connection,
    kv: i64,
    version: i64,
    row: &ChangeRow,
    now_ms: i64,
) -> Result<(), Fault> {
    let ChangeRow { key, when, put } = row;
    let known = present(db, kv, key)?;
    let found = known
        .as_ref()
        .filter(|known| !known.is_removed)
        .map(|known| known.version);
    let holds = match when {
        When::Any => true,
        When::Absent => found.is_none(),
        When::Is(wanted) => found == Some(*wanted),
    };
    if !holds {
        return Err(KvStoreError::conflict(Arc::clone(key), found).into());
    }
    if let Some(Present {
        row,
        is_removed: false,
        ..
    }) = known
    {
        db.prepare_cached("DELETE FROM item_words WHERE rowid = ?1")?
            .execute([row])?;
    } else if put.is_none() {
        return Ok(());
    }
    let (json, text) = put
        .as_ref()
        .map_or((None, ""), |put| (Some(&put.json), &*put.text));
    let sql = "INSERT INTO items(shelf, key, json, text, version, changed_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
               ON CONFLICT(shelf, key) DO UPDATE SET json = excluded.json, text = excluded.text, \
               version = excluded.version, changed_ms = excluded.changed_ms RETURNING row";
    let item = params![kv, key.as_bytes(), json, text, version, now_ms];
    let row: i64 = db.prepare_cached(sql)?.query_row(item, |row| row.get(0))?;
    if !text.is_empty() {
        let sql = "INSERT INTO item_words(rowid, owner, text) VALUES (?1, ?2, ?3)";
        db.prepare_cached(sql)?
            .execute(params![row, words::owner_word(kv), text])?;
    }
    Ok(())
}

fn present(db: &Connection, kv: i64, key: &str) -> Result<Option<Present>, Fault> {
    let read = |row: &Found<'_>| {
        let version = Version(number::read(row.get(1)?));
        Ok(Present {
            row: row.get(0)?,
            version,
            is_removed: row.get(2)?,
        })
    };
    let sql = "SELECT row, version, json IS NULL FROM items WHERE shelf = ?1 AND key = ?2";
    Ok(db
        .prepare_cached(sql)?
        .query_row(params![kv, key.as_bytes()], read)
        .optional()?)
}

/// Forgets the oldest removals when there are too many.
fn forget(db: &Connection, kv: i64) -> Result<(), Fault> {
    let sql = "DELETE FROM items WHERE shelf = ?1 AND json IS NULL AND version <= (SELECT version FROM items \
               WHERE shelf = ?1 AND json IS NULL ORDER BY version DESC LIMIT 1 OFFSET ?2)";
    db.prepare_cached(sql)?.execute([kv, MAX_REMOVED])?;
    Ok(())
}

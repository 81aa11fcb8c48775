//! Reads values: a single one, a range of keys, or all with a word.

use adjutant_core::kv::{Hit, Item, Scan, Version};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::super::{fault::Fault, json, number, words};

/// The columns that are read of a value.
pub(super) const COLUMNS: &str = "items.key, json, items.text, version, changed_ms";
/// The bytes that come behind every key: no UTF-8 has this byte.
pub(super) const LAST: &[u8] = &[0xff];

/// The value of a key.
pub(super) fn get(db: &Connection, kv: &str, key: &str) -> Result<Option<Item>, Fault> {
    let Some(kv) = key_of(db, kv)? else {
        return Ok(None);
    };
    let sql = format!("SELECT {COLUMNS} FROM items WHERE shelf = ?1 AND key = ?2");
    let mut select = db.prepare_cached(&sql)?;
    let mut rows = select.query(params![kv, key.as_bytes()])?;
    Ok(rows.next()?.map(item).transpose()?.flatten())
}

/// The values of a range of keys.
pub(super) fn scan(db: &Connection, kv: &str, scan: &Scan) -> Result<Vec<Item>, Fault> {
    let Some(kv) = key_of(db, kv)? else {
        return Ok(Vec::new());
    };
    let (from, to) = range(&scan.prefix);
    let after = scan.after.as_ref().map(|after| after.as_bytes());
    let sql = format!(
        "SELECT {COLUMNS} FROM items WHERE shelf = ?1 AND key >= ?2 AND key < ?3 AND (?4 IS NULL OR key > ?4) \
         AND json IS NOT NULL ORDER BY key LIMIT ?5"
    );
    let mut select = db.prepare_cached(&sql)?;
    // A scan that starts after a key does not read the keys before it.
    let from = after.map_or(from.as_slice(), |after| after.max(from.as_slice()));
    let mut rows = select.query(params![
        kv,
        from,
        to,
        after,
        scan.limit.map_or(-1, number::count)
    ])?;
    let mut items = Vec::new();
    while let Some(row) = rows.next()? {
        items.extend(item(row)?);
    }
    Ok(items)
}

/// The newest version of a key-value store.
pub(super) fn newest(db: &Connection, kv: &str) -> Result<Version, Fault> {
    let mut select = db.prepare_cached("SELECT newest FROM shelves WHERE name = ?1")?;
    let newest: Option<i64> = select.query_row([kv], |row| row.get(0)).optional()?;
    Ok(Version(newest.map_or(0, number::read)))
}

/// The values that have one of the words, best first.
pub(super) fn search(
    db: &Connection,
    kv: &str,
    prefix: &str,
    query: &str,
    limit: usize,
) -> Result<Vec<Hit>, Fault> {
    let Some(kv) = key_of(db, kv)? else {
        return Ok(Vec::new());
    };
    let Some(words) = words::one_of(query, kv) else {
        return Ok(Vec::new());
    };
    let (from, to) = range(prefix);
    let sql = format!(
        "SELECT {COLUMNS}, bm25(item_words, 0.0, 1.0) AS fit FROM item_words JOIN items ON items.row = item_words.rowid \
         WHERE item_words MATCH ?1 AND shelf = ?2 AND key >= ?3 AND key < ?4 AND json IS NOT NULL \
         ORDER BY fit, key LIMIT ?5"
    );
    let mut select = db.prepare_cached(&sql)?;
    let mut rows = select.query(params![words, kv, from, to, number::count(limit)])?;
    let mut hits = Vec::new();
    while let Some(row) = rows.next()? {
        if let Some(item) = item(row)? {
            hits.push(Hit {
                item,
                score: words::score(row.get(5)?),
            });
        }
    }
    Ok(hits)
}

/// The key of a key-value store, if anything was ever written to it.
pub(super) fn key_of(db: &Connection, kv: &str) -> Result<Option<i64>, Fault> {
    let mut select = db.prepare_cached("SELECT key FROM shelves WHERE name = ?1")?;
    Ok(select.query_row([kv], |row| row.get(0)).optional()?)
}

/// The keys that begin like this: from the first, up to but without the second.
pub(super) fn range(prefix: &str) -> (Vec<u8>, Vec<u8>) {
    let from = prefix.as_bytes().to_vec();
    let mut to = from.clone();
    match to.last_mut() {
        // No byte of UTF-8 is the last one.
        Some(last) => *last += 1,
        None => to = LAST.to_vec(),
    }
    (from, to)
}

/// The value of a row; `None` if it was removed.
pub(super) fn item(row: &Row<'_>) -> Result<Option<Item>, Fault> {
    let (json, text): (Option<String>, String) = (row.get(1)?, row.get(2)?);
    let Some(json) = json else { return Ok(None) };
    let (version, changed_ms) = (
        Version(number::read(row.get(3)?)),
        number::read(row.get(4)?),
    );
    let value = json::read(&json, "a value")?;
    Ok(Some(Item {
        key: key(row)?.into(),
        value,
        text: text.into(),
        version,
        changed_ms,
    }))
}

/// The key of a row.
pub(super) fn key(row: &Row<'_>) -> Result<String, Fault> {
    String::from_utf8(row.get(0)?)
        .map_err(|error| Fault::Corrupt(format!("a key is not text: {error}")))
}

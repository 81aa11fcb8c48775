//! Adding, changing and deleting facts, each of one owner.

use std::sync::Arc;

use adjutant_core::memory::{
    Fact, FactChange, FactId, MAX_FACTS, MAX_METADATA_BYTES, MemoryError, MemoryErrorKind,
    Metadata, NewFact, OwnerId, Vector,
};
use rusqlite::{Connection, OptionalExtension, params};

use super::{
    super::{fault::Fault, json, number, words},
    find, limits, vectors,
};

/// A fact as it is kept.
#[derive(Debug)]
pub(super) struct FactRow {
    id: FactId,
    text: Arc<str>,
    metadata: String,
    vector: Option<Vector>,
    now_ms: i64,
}

impl FactRow {
    /// The row of a fact, if it may be one.
    pub(super) fn from_fact(fact: NewFact) -> Result<Self, Fault> {
        let NewFact {
            id,
            text,
            metadata,
            vector,
            now_ms,
            ..
        } = fact;
        limits::check_id(&id)?;
        limits::check_text(&text)?;
        vector.as_ref().map_or(Ok(()), limits::check_vector)?;
        Ok(Self {
            id,
            text,
            metadata: encode_metadata(&metadata)?,
            vector,
            now_ms: number::to_i64(now_ms),
        })
    }
}

/// Adds facts.
pub(super) fn add(db: &Connection, owner_id: &OwnerId, rows: &[FactRow]) -> Result<(), Fault> {
    let key = owner(db, owner_id)?;
    let sql = "UPDATE owners SET facts = facts + ?2 WHERE key = ?1 RETURNING facts";
    let added = number::count(rows.len());
    let facts: i64 = db
        .prepare_cached(sql)?
        .query_row([key, added], |row| row.get(0))?;
    if facts > number::count(MAX_FACTS) {
        let message = format!(
            "{:?} would have {facts} facts; it may have {MAX_FACTS}",
            owner_id.0
        );
        return Err(MemoryError::new(MemoryErrorKind::Full, message).into());
    }
    for row in rows {
        let sql = "INSERT OR IGNORE INTO facts(owner, id, text, metadata, created_ms, updated_ms) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?5) RETURNING row";
        let fact = params![key, &*row.id.0, &*row.text, row.metadata, row.now_ms];
        let added: Option<i64> = db
            .prepare_cached(sql)?
            .query_row(fact, |row| row.get(0))
            .optional()?;
        let Some(added) = added else {
            let message = format!("{:?} has a fact {:?} already", owner_id.0, row.id.0);
            return Err(MemoryError::new(MemoryErrorKind::Exists, message).into());
        };
        index(db, key, added, &row.text)?;
        vectors::set(db, key, added, row.vector.as_ref())?;
    }
    Ok(())
}

/// Changes a fact; returns its new state, if the owner has it.
pub(super) fn update(
    db: &Connection,
    owner: i64,
    id: &FactId,
    change: &FactChange,
) -> Result<Option<Fact>, Fault> {
    let Some((row, mut fact)) = find::row(db, owner, id)? else {
        return Ok(None);
    };
    for (name, value) in &change.metadata {
        if value.is_null() {
            fact.metadata.remove(name);
        } else {
            fact.metadata.insert(Arc::clone(name), value.clone());
        }
    }
    if let Some((text, vector)) = &change.text {
        fact.text = Arc::clone(text);
        index(db, owner, row, text)?;
        vectors::set(db, owner, row, vector.as_ref())?;
    }
    let updated_ms = number::to_i64(change.now_ms);
    fact.updated_ms = number::read(updated_ms);
    let sql =
        "UPDATE facts SET text = ?3, metadata = ?4, updated_ms = ?5 WHERE owner = ?1 AND row = ?2";
    let metadata = encode_metadata(&fact.metadata)?;
    db.prepare_cached(sql)?
        .execute(params![owner, row, &*fact.text, metadata, updated_ms])?;
    Ok(Some(fact))
}

/// Deletes a fact; whether the owner had it.
pub(super) fn delete(db: &Connection, owner: i64, id: &FactId) -> Result<bool, Fault> {
    let sql = "DELETE FROM facts WHERE owner = ?1 AND id = ?2 RETURNING row";
    let deleted: Option<i64> = db
        .prepare_cached(sql)?
        .query_row(params![owner, &*id.0], |row| row.get(0))
        .optional()?;
    let Some(row) = deleted else { return Ok(false) };
    db.prepare_cached("DELETE FROM fact_words WHERE rowid = ?1")?
        .execute([row])?;
    vectors::set(db, owner, row, None)?;
    db.prepare_cached("UPDATE owners SET facts = facts - 1 WHERE key = ?1")?
        .execute([owner])?;
    Ok(true)
}

/// The key of an owner, who is registered if new.
pub(super) fn owner(db: &Connection, owner: &OwnerId) -> Result<i64, Fault> {
    db.prepare_cached("INSERT OR IGNORE INTO owners(name) VALUES (?1)")?
        .execute([&*owner.0])?;
    let mut select = db.prepare_cached("SELECT key FROM owners WHERE name = ?1")?;
    Ok(select.query_row([&*owner.0], |row| row.get(0))?)
}

/// Makes a fact be found by the words of this text.
fn index(db: &Connection, owner: i64, row: i64, text: &str) -> Result<(), Fault> {
    let sql = "INSERT OR REPLACE INTO fact_words(rowid, owner, text) VALUES (?1, ?2, ?3)";
    db.prepare_cached(sql)?
        .execute(params![row, words::owner_word(owner), text])?;
    Ok(())
}

fn encode_metadata(metadata: &Metadata) -> Result<String, Fault> {
    let json = json::write(metadata, "the metadata")?;
    if json.len() > MAX_METADATA_BYTES {
        let why = format!(
            "the metadata has {} bytes; it may have {MAX_METADATA_BYTES}",
            json.len()
        );
        return Err(Fault::Invalid(why));
    }
    Ok(json)
}

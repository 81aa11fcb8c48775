//! Reading facts of one owner: by name, by age, by words.

use adjutant_core::memory::{Fact, FactId, ScoredFact};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::super::{fault::Fault, json, number, words};

/// The columns that are read of a fact.
const COLUMNS: &str = "facts.row, id, facts.text, metadata, created_ms, updated_ms";

/// A fact.
pub(super) fn get(db: &Connection, owner: i64, id: &FactId) -> Result<Option<Fact>, Fault> {
    Ok(row(db, owner, id)?.map(|(_, fact)| fact))
}

/// A fact with the number of its row.
pub(super) fn row(db: &Connection, owner: i64, id: &FactId) -> Result<Option<(i64, Fact)>, Fault> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM facts WHERE facts.owner = ?1 AND id = ?2"
    ))?;
    let mut rows = select.query(params![owner, &*id.0])?;
    rows.next()?
        .map(|row| Ok((row.get(0)?, fact(row)?)))
        .transpose()
}

/// A fact by the number of its row, if it is the owner's.
pub(super) fn at(db: &Connection, owner: i64, row: i64) -> Result<Option<Fact>, Fault> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM facts WHERE facts.owner = ?1 AND facts.row = ?2"
    ))?;
    let mut rows = select.query([owner, row])?;
    rows.next()?.map(fact).transpose()
}

/// Facts behind a place, oldest first.
pub(super) fn list(
    db: &Connection,
    owner: i64,
    after: Option<&FactId>,
    limit: usize,
) -> Result<Vec<Fact>, Fault> {
    let mut age = db.prepare_cached("SELECT created_ms FROM facts WHERE owner = ?1 AND id = ?2")?;
    let place = match after {
        Some(after) => age
            .query_row(params![owner, &*after.0], |row| row.get(0))
            .optional()?
            .map(|age| (age, &*after.0)),
        None => Some((i64::MIN, "")),
    };
    // Behind a fact that is gone nothing is known to be.
    let Some((created_ms, id)) = place else {
        return Ok(Vec::new());
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM facts WHERE owner = ?1 AND (created_ms, id) > (?2, ?3) ORDER BY created_ms, id LIMIT ?4"
    );
    let mut select = db.prepare_cached(&sql)?;
    let mut rows = select.query(params![owner, created_ms, id, number::count(limit)])?;
    let mut facts = Vec::new();
    while let Some(row) = rows.next()? {
        facts.push(fact(row)?);
    }
    Ok(facts)
}

/// Facts that have one of the words, best first.
pub(super) fn by_words(
    db: &Connection,
    owner: i64,
    query: &str,
    limit: usize,
) -> Result<Vec<ScoredFact>, Fault> {
    let Some(words) = words::one_of(query, owner) else {
        return Ok(Vec::new());
    };
    let sql = format!(
        "SELECT {COLUMNS}, bm25(fact_words, 0.0, 1.0) AS fit FROM fact_words JOIN facts ON facts.row = fact_words.rowid \
         WHERE fact_words MATCH ?1 AND facts.owner = ?2 ORDER BY fit, created_ms, id LIMIT ?3"
    );
    let mut select = db.prepare_cached(&sql)?;
    let mut rows = select.query(params![words, owner, number::count(limit)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(ScoredFact {
            fact: fact(row)?,
            score: words::score(row.get(6)?),
        });
    }
    Ok(found)
}

fn fact(row: &Row<'_>) -> Result<Fact, Fault> {
    let (id, text, metadata): (String, String, String) = (row.get(1)?, row.get(2)?, row.get(3)?);
    let metadata = json::read(&metadata, "the metadata of a fact")?;
    let mut fact = Fact::new(FactId(id.into()), text, metadata, number::read(row.get(4)?));
    fact.updated_ms = number::read(row.get(5)?);
    Ok(fact)
}

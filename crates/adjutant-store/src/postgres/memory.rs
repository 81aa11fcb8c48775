//! Facts in PostgreSQL. Every statement names the owner; vectors are compared here, so that no extension is needed.

mod nearest;
mod update;

use std::sync::Arc;

use adjutant_core::{
    Memory,
    memory::{
        Fact, FactChange, FactId, MAX_FACT_BYTES, MAX_FACTS, MAX_METADATA_BYTES, MemoryError,
        MemoryErrorKind, Metadata, NewFact, OwnerId, ScoredFact, Vector,
    },
};
use async_trait::async_trait;
use tokio_postgres::{Row, error::SqlState};

use super::{
    database::{Database, Values},
    fault::Fault,
    json,
    row::{read_u64, text, to_i64},
    words,
};

/// The most bytes that the name of an owner or a fact may have.
const MAX_NAME: usize = 512;

/// The most bytes that the name of a source may have.
const MAX_SOURCE: usize = 1_024;

/// The most numbers that a vector may have.
const MAX_NUMBERS: usize = 65_536;

const ADD: &str = "with room as ( \
        insert into owners (owner, facts) values ($1, $2) \
        on conflict (owner) do update set facts = owners.facts + excluded.facts \
        where owners.facts + excluded.facts <= $3 returning owner \
    ), added as ( \
        insert into facts (owner, id, text, words, metadata, model, vector, created_ms, updated_ms) \
        select room.owner, new.id, new.text, new.words::tsvector, new.metadata, new.model, new.vector, new.at, new.at \
        from room, unnest($4::bytea[], $5::bytea[], $6::text[], $7::bytea[], $8::bytea[], $9::bytea[], $10::bigint[]) \
            as new (id, text, words, metadata, model, vector, at) \
    ) select 1 from room";

const GET: &str =
    "select id, text, metadata, created_ms, updated_ms from facts where owner = $1 and id = $2";

const DELETE: &str = "with gone as (delete from facts where owner = $1 and id = $2 returning owner) \
    update owners set facts = facts - 1 where owner = $1 and exists (select 1 from gone)";

const LIST: &str = "select id, text, metadata, created_ms, updated_ms from facts where owner = $1 \
    and ($2::bytea is null or (created_ms, id) > \
        (select last.created_ms, last.id from facts as last where last.owner = $1 and last.id = $2)) \
    order by created_ms, id limit $3";

const BY_WORDS: &str = concat!(
    words::weights!("facts", "one.owner = $2"),
    "select one.id, one.text, one.metadata, one.created_ms, one.updated_ms, \
        sum(weight * ts_rank(one.words, query, 1))::float8 as score \
    from facts as one join weights on one.words @@ query \
    where one.owner = $2 group by one.owner, one.id order by score desc, one.created_ms, one.id limit $3"
);

const MARKED: &str = "select at from marks where owner = $1 and source = $2";

const MARK_FIRST: &str = "insert into marks (owner, source, at) values ($1, $2, $4) \
    on conflict (owner, source) do update set at = excluded.at where marks.at = $3";

const MARK: &str = "update marks set at = $4 where owner = $1 and source = $2 and at = $3";

/// The facts of a [`Postgres`](super::Postgres) database; clones share its connections.
#[derive(Debug, Clone)]
pub struct PostgresMemory {
    database: Arc<Database>,
}

impl PostgresMemory {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self { database }
    }

    /// Adds facts in the database's form.
    async fn put(&self, owner: &OwnerId, batch: &FactBatch<'_>) -> Result<bool, Fault> {
        let (count, most) = (to_i64(batch.ids.len() as u64), to_i64(MAX_FACTS as u64));
        let FactBatch {
            ids,
            texts,
            words,
            metadata,
            models,
            vectors,
            times,
        } = batch;
        let owner = owner.0.as_bytes();
        let values: Values<'_> = &[
            &owner, &count, &most, ids, texts, words, metadata, models, vectors, times,
        ];
        Ok(self.database.row(ADD, values).await?.is_some())
    }
}

#[async_trait]
impl Memory for PostgresMemory {
    async fn add(&self, owner: &OwnerId, facts: Vec<NewFact>) -> Result<(), MemoryError> {
        check_name("an owner", &owner.0)?;
        if facts.is_empty() {
            return Ok(());
        }
        let full = || {
            MemoryError::new(
                MemoryErrorKind::Full,
                format!("an owner may have {MAX_FACTS} facts"),
            )
        };
        if facts.len() > MAX_FACTS {
            return Err(full());
        }
        match self.put(owner, &FactBatch::from_facts(&facts)?).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(full()),
            Err(fault) if fault.is(&SqlState::UNIQUE_VIOLATION) => Err(MemoryError::new(
                MemoryErrorKind::Exists,
                "the owner has a fact of one of these names",
            )),
            Err(fault) => Err(fault.memory("add facts")),
        }
    }

    async fn get(&self, owner: &OwnerId, id: &FactId) -> Result<Option<Fact>, MemoryError> {
        let row = self
            .database
            .row(GET, &[&owner.0.as_bytes(), &id.0.as_bytes()])
            .await;
        let found = row.and_then(|row| row.as_ref().map(fact).transpose());
        found.map_err(|fault| fault.memory("read a fact"))
    }

    async fn update(
        &self,
        owner: &OwnerId,
        id: &FactId,
        change: FactChange,
    ) -> Result<Fact, MemoryError> {
        update::update(&self.database, owner, id, change).await
    }

    async fn delete(&self, owner: &OwnerId, id: &FactId) -> Result<(), MemoryError> {
        match self
            .database
            .execute(DELETE, &[&owner.0.as_bytes(), &id.0.as_bytes()])
            .await
        {
            Ok(0) => Err(missing(id)),
            Ok(_) => Ok(()),
            Err(fault) => Err(fault.memory("delete a fact")),
        }
    }

    async fn list(
        &self,
        owner: &OwnerId,
        after: Option<&FactId>,
        limit: usize,
    ) -> Result<Vec<Fact>, MemoryError> {
        let after = after.map(|after| after.0.as_bytes());
        let rows = self
            .database
            .rows(LIST, &[&owner.0.as_bytes(), &after, &to_i64(limit as u64)])
            .await;
        let facts = rows.and_then(|rows| rows.iter().map(fact).collect());
        facts.map_err(|fault| fault.memory("list facts"))
    }

    async fn by_words(
        &self,
        owner: &OwnerId,
        query: &str,
        limit: usize,
    ) -> Result<Vec<ScoredFact>, MemoryError> {
        let asked = words::query_words(query);
        if asked.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let rows = self
            .database
            .rows(
                BY_WORDS,
                &[&asked, &owner.0.as_bytes(), &to_i64(limit as u64)],
            )
            .await;
        let found = |row: &Row| {
            Ok(ScoredFact {
                fact: fact(row)?,
                score: row.try_get(5)?,
            })
        };
        let found = rows.and_then(|rows| rows.iter().map(found).collect());
        found.map_err(|fault| fault.memory("search facts"))
    }

    async fn by_vector(
        &self,
        owner: &OwnerId,
        vector: &Vector,
        limit: usize,
    ) -> Result<Vec<ScoredFact>, MemoryError> {
        nearest::nearest(&self.database, owner, vector, limit)
            .await
            .map_err(|fault| fault.memory("search facts by a vector"))
    }

    async fn read_mark(&self, owner: &OwnerId, source: &str) -> Result<u64, MemoryError> {
        let row = self
            .database
            .row(MARKED, &[&owner.0.as_bytes(), &source.as_bytes()])
            .await;
        // Marks are compared, never ordered: all 64 bits are theirs.
        let marked = row
            .and_then(|row| row.map_or(Ok(0), |row| Ok(row.try_get::<_, i64>(0)?.cast_unsigned())));
        marked.map_err(|fault| fault.memory("read a mark"))
    }

    async fn mark(
        &self,
        owner: &OwnerId,
        source: &str,
        from: u64,
        to: u64,
    ) -> Result<bool, MemoryError> {
        check_name("an owner", &owner.0)?;
        if source.len() > MAX_SOURCE {
            let message = format!(
                "the name of a source has {} bytes; it may have {MAX_SOURCE}",
                source.len()
            );
            return Err(invalid(message));
        }
        let sql = if from == 0 { MARK_FIRST } else { MARK };
        let (from, to) = (from.cast_signed(), to.cast_signed());
        let marked = self
            .database
            .execute(sql, &[&owner.0.as_bytes(), &source.as_bytes(), &from, &to])
            .await;
        marked
            .map(|rows| rows > 0)
            .map_err(|fault| fault.memory("keep a mark"))
    }
}

/// Facts in the database's form.
#[derive(Default)]
struct FactBatch<'a> {
    ids: Vec<&'a [u8]>,
    texts: Vec<&'a [u8]>,
    words: Vec<String>,
    metadata: Vec<Vec<u8>>,
    models: Vec<Option<&'a [u8]>>,
    vectors: Vec<Option<Vec<u8>>>,
    times: Vec<i64>,
}

impl<'a> FactBatch<'a> {
    fn from_facts(facts: &'a [NewFact]) -> Result<Self, MemoryError> {
        let mut batch = Self::default();
        for fact in facts {
            check_name("a fact", &fact.id.0)?;
            check_text(&fact.text)?;
            check_vector(fact.vector.as_ref())?;
            batch.ids.push(fact.id.0.as_bytes());
            batch.texts.push(fact.text.as_bytes());
            batch.words.push(words::vector(&fact.text));
            batch.metadata.push(metadata(&fact.metadata)?);
            batch
                .models
                .push(fact.vector.as_ref().map(|vector| vector.model.0.as_bytes()));
            batch.vectors.push(
                fact.vector
                    .as_ref()
                    .map(|vector| nearest::bytes(&vector.numbers)),
            );
            batch.times.push(to_i64(fact.now_ms));
        }
        Ok(batch)
    }
}

fn check_name(what: &str, name: &str) -> Result<(), MemoryError> {
    match name.len() {
        1..=MAX_NAME => Ok(()),
        bytes => Err(invalid(format!(
            "the name of {what} has {bytes} bytes; it may have 1 to {MAX_NAME}"
        ))),
    }
}

fn check_text(text: &str) -> Result<(), MemoryError> {
    match text.len() {
        1..=MAX_FACT_BYTES => Ok(()),
        bytes => Err(invalid(format!(
            "the text of a fact has {bytes} bytes; it may have 1 to {MAX_FACT_BYTES}"
        ))),
    }
}

fn check_vector(vector: Option<&Vector>) -> Result<(), MemoryError> {
    let Some(vector) = vector else { return Ok(()) };
    if vector.numbers.len() > MAX_NUMBERS || vector.numbers.iter().any(|number| !number.is_finite())
    {
        return Err(invalid(format!(
            "a vector has more than {MAX_NUMBERS} numbers, or one that is not finite"
        )));
    }
    Ok(())
}

/// The bytes of metadata that can be kept.
fn metadata(metadata: &Metadata) -> Result<Vec<u8>, MemoryError> {
    let bytes = json::bytes(metadata).filter(|bytes| bytes.len() <= MAX_METADATA_BYTES);
    let message = || {
        format!(
            "the metadata of a fact is nested too deeply, or larger than {MAX_METADATA_BYTES} bytes"
        )
    };
    bytes.ok_or_else(|| invalid(message()))
}

fn invalid(message: String) -> MemoryError {
    MemoryError::new(MemoryErrorKind::Invalid, message)
}

fn missing(id: &FactId) -> MemoryError {
    MemoryError::new(
        MemoryErrorKind::Missing,
        format!("the owner has no fact {:?}", id.0),
    )
}

/// The fact of a row of name, text, metadata and two times.
fn fact(row: &Row) -> Result<Fact, Fault> {
    let metadata: &[u8] = row.try_get(2)?;
    let metadata =
        serde_json::from_slice(metadata).map_err(|_| Fault::Stored("the metadata of a fact"))?;
    let mut fact = Fact::new(
        FactId(text(row, 0)?),
        text(row, 1)?,
        metadata,
        read_u64(row, 3)?,
    );
    fact.updated_ms = read_u64(row, 4)?;
    Ok(fact)
}

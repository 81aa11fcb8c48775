//! A key-value store in PostgreSQL: writes follow each other by a lock on the row of the key-value store, which counts
//! its versions.

mod watch;
mod write;

use std::sync::Arc;

use adjutant_core::kv::{
    Change, ChangeStream, Hit, Item, KvStore, KvStoreError, KvStoreErrorKind, MAX_KEY_BYTES, Scan,
    Version,
};
use async_trait::async_trait;
use tokio_postgres::Row;

use super::{
    database::Database,
    fault::Fault,
    json,
    row::{behind, read_u64, text, to_i64},
    words,
};

/// The most bytes that the name of a key-value store may have.
const MAX_NAME: usize = 512;

const GET: &str = "select key, value, text, version, changed_ms from items \
    where shelf = (select id from shelves where name = $1) and key = $2";

const SCAN: &str = "select key, value, text, version, changed_ms from items \
    where shelf = (select id from shelves where name = $1) and key >= $2 and ($3::bytea is null or key < $3) \
    and ($4::bytea is null or key > $4) order by key limit $5";

const NEWEST: &str = "select newest from shelves where name = $1";

const SEARCH: &str = concat!(
    words::weights!(
        "items",
        "one.shelf = (select id from shelves where name = $2) and one.key >= $3 and ($4::bytea is null or one.key < $4)"
    ),
    "select one.key, one.value, one.text, one.version, one.changed_ms, \
        sum(weight * ts_rank(one.words, query, 1))::float8 as score \
    from items as one join weights on one.words @@ query \
    where one.shelf = (select id from shelves where name = $2) and one.key >= $3 and ($4::bytea is null or one.key < $4) \
    group by one.shelf, one.key order by score desc, one.key limit $5"
);

/// A key-value store of a [`Postgres`](super::Postgres) database, which any number of processes write to.
///
/// A watch reports the newest 10,000 removals, and some older ones. A text is found by its first 30,000 words or so.
#[derive(Debug, Clone)]
pub struct PostgresKvStore {
    database: Arc<Database>,
    name: Arc<str>,
}

impl PostgresKvStore {
    pub(super) fn new(database: Arc<Database>, name: Arc<str>) -> Self {
        Self { database, name }
    }

    fn check_name(&self) -> Result<(), KvStoreError> {
        match self.name.len() {
            1..=MAX_NAME => Ok(()),
            bytes => Err(invalid(format!(
                "the name of a key-value store has {bytes} bytes; it may have 1 to {MAX_NAME}"
            ))),
        }
    }

    fn store_error(&self, doing: &str, fault: Fault) -> KvStoreError {
        fault.kv(format_args!("{doing} key-value store {:?}", self.name))
    }
}

#[async_trait]
impl KvStore for PostgresKvStore {
    async fn get(&self, key: &str) -> Result<Option<Item>, KvStoreError> {
        self.check_name()?;
        check_key(key)?;
        let row = self
            .database
            .row(GET, &[&self.name.as_bytes(), &key.as_bytes()])
            .await;
        let found = row.and_then(|row| row.as_ref().map(item).transpose());
        found.map_err(|fault| self.store_error("read", fault))
    }

    async fn write(&self, changes: Vec<Change>) -> Result<Version, KvStoreError> {
        self.check_name()?;
        write::write(&self.database, &self.name, &changes).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Vec<Item>, KvStoreError> {
        self.check_name()?;
        let (prefix, end) = (scan.prefix.as_bytes(), behind(scan.prefix.as_bytes()));
        let after = scan.after.as_ref().map(|after| after.as_bytes());
        let limit = to_i64(scan.limit.map_or(u64::MAX, |limit| limit as u64));
        let rows = self
            .database
            .rows(
                SCAN,
                &[&self.name.as_bytes(), &prefix, &end, &after, &limit],
            )
            .await;
        let items = rows.and_then(|rows| rows.iter().map(item).collect());
        items.map_err(|fault| self.store_error("scan", fault))
    }

    async fn newest(&self) -> Result<Version, KvStoreError> {
        self.check_name()?;
        let row = self.database.row(NEWEST, &[&self.name.as_bytes()]).await;
        let newest = row.and_then(|row| row.map_or(Ok(0), |row| read_u64(&row, 0)));
        newest
            .map(Version)
            .map_err(|fault| self.store_error("read", fault))
    }

    fn watch(&self, prefix: &str, after: Version) -> ChangeStream {
        watch::watch(&self.database, &self.name, prefix, after)
    }

    async fn search(
        &self,
        prefix: &str,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Hit>, KvStoreError> {
        self.check_name()?;
        let asked = words::query_words(query);
        if asked.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let (prefix, end) = (prefix.as_bytes(), behind(prefix.as_bytes()));
        let values = [
            &asked as _,
            &self.name.as_bytes() as _,
            &prefix as _,
            &end as _,
            &to_i64(limit as u64) as _,
        ];
        let hit = |row: &Row| {
            Ok(Hit {
                item: item(row)?,
                score: row.try_get(5)?,
            })
        };
        let hits = self
            .database
            .rows(SEARCH, &values)
            .await
            .and_then(|rows| rows.iter().map(hit).collect());
        hits.map_err(|fault| self.store_error("search", fault))
    }
}

/// Checks that a key can be.
fn check_key(key: &str) -> Result<(), KvStoreError> {
    match key.len() {
        1..=MAX_KEY_BYTES => Ok(()),
        bytes => Err(invalid(format!(
            "a key has {bytes} bytes; it may have 1 to {MAX_KEY_BYTES}"
        ))),
    }
}

fn invalid(message: String) -> KvStoreError {
    KvStoreError::new(KvStoreErrorKind::Invalid, message)
}

/// The item of a row of key, value, text, version and time.
fn item(row: &Row) -> Result<Item, Fault> {
    let value = json::value(row.try_get(1)?).ok_or(Fault::Stored("a value"))?;
    let (key, text) = (text(row, 0)?, text(row, 2)?);
    Ok(Item {
        key,
        value,
        text,
        version: Version(read_u64(row, 3)?),
        changed_ms: read_u64(row, 4)?,
    })
}

//! Changes of keys, all of them or none.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use adjutant_core::kv::{Change, KvStoreError, MAX_VALUE_BYTES, MAX_WRITE, Version, When};
use tokio_postgres::{Row, Transaction};

use super::{check_key, invalid};
use crate::postgres::{
    database::Database,
    fault::Fault,
    json,
    row::{read_u64, text, to_i64},
    wake, words,
};

/// The number of removals that a watch can report.
const KEPT_REMOVALS: i64 = 10_000;

/// At every which version the oldest ones are forgotten, and how many at once are forgotten without waiting for it: to
/// find the oldest, all that are kept are walked over.
const FORGET_EVERY: u64 = 64;

/// The most bytes that the values of one write may have together: the server takes no message of more than 1 GiB.
const MAX_BYTES: usize = 512 * 1024 * 1024;

const COUNT: &str = "insert into shelves (name, newest) values ($1, 1) \
    on conflict (name) do update set newest = shelves.newest + 1 returning id, newest";

const STANDING: &str = "select key, version from items where shelf = $1 and key = any($2)";

const APPLY: &str = "with removed as (delete from items where shelf = $1 and key = any($3) returning key), \
    told as ( \
        insert into removals (shelf, key, version) select $1, key, $2 from removed \
        on conflict (shelf, key) do update set version = excluded.version \
    ), put as ( \
        insert into items (shelf, version, changed_ms, key, value, text, words) \
        select $1, $2, $4, new.key, new.value, new.text, new.words::tsvector \
        from unnest($5::bytea[], $6::bytea[], $7::bytea[], $8::text[]) as new (key, value, text, words) \
        on conflict (shelf, key) do update set version = excluded.version, changed_ms = excluded.changed_ms, \
            value = excluded.value, text = excluded.text, words = excluded.words \
    ), back as (delete from removals where shelf = $1 and key = any($5)) \
    select pg_notify($9, $10)";

const FORGET: &str = "delete from removals where shelf = $1 and version <= \
    (select version from removals where shelf = $1 order by version desc offset $2 limit 1)";

/// Changes keys; returns the version of the write.
pub(super) async fn write(
    database: &Database,
    name: &str,
    changes: &[Change],
) -> Result<Version, KvStoreError> {
    let batch = ChangeBatch::from_changes(changes)?;
    let failed = |fault: Fault| fault.kv(format_args!("write to key-value store {name:?}"));
    let mut client = database.client().await.map_err(failed)?;
    let change = client
        .transaction()
        .await
        .map_err(|error| failed(error.into()))?;
    let (kv, version, standing) = count(&change, name, changes).await.map_err(failed)?;
    for change in changes {
        let found = standing.get(&change.key).copied();
        let is_met = match change.when {
            When::Any => true,
            When::Absent => found.is_none(),
            When::Is(version) => found == Some(version),
        };
        if !is_met {
            return Err(KvStoreError::conflict(Arc::clone(&change.key), found));
        }
    }
    let done = async {
        let (now, channel, topic) = (
            to_i64(database.world.now_ms()),
            database.channel(),
            wake::changes(name),
        );
        let apply = change.prepare_cached(APPLY).await?;
        let stamp = to_i64(version.0);
        let ChangeBatch {
            keys,
            values,
            texts,
            words,
            removed,
        } = &batch;
        change
            .query(
                &apply,
                &[
                    &kv, &stamp, removed, &now, keys, values, texts, words, &channel, &topic,
                ],
            )
            .await?;
        if version.0 % FORGET_EVERY == 0 || removed.len() as u64 >= FORGET_EVERY {
            let forget = change.prepare_cached(FORGET).await?;
            change.execute(&forget, &[&kv, &KEPT_REMOVALS]).await?;
        }
        change.commit().await
    };
    done.await.map_err(|error| failed(error.into()))?;
    Ok(version)
}

/// Takes the next version, which makes other writers wait; also returns the versions of the keys.
async fn count(
    change: &Transaction<'_>,
    name: &str,
    changes: &[Change],
) -> Result<(i64, Version, HashMap<Arc<str>, Version>), Fault> {
    let row = change.query_one(COUNT, &[&name.as_bytes()]).await?;
    let (kv, version) = (row.try_get(0)?, Version(read_u64(&row, 1)?));
    let keys: Vec<&[u8]> = changes.iter().map(|change| change.key.as_bytes()).collect();
    let rows = change.query(STANDING, &[&kv, &keys]).await?;
    let standing = |row: &Row| Ok((text(row, 0)?, Version(read_u64(row, 1)?)));
    let standing: Result<_, Fault> = rows.iter().map(standing).collect();
    Ok((kv, version, standing?))
}

/// Changes in the database's form.
#[derive(Default)]
struct ChangeBatch<'a> {
    keys: Vec<&'a [u8]>,
    values: Vec<Vec<u8>>,
    texts: Vec<&'a [u8]>,
    words: Vec<String>,
    removed: Vec<&'a [u8]>,
}

impl<'a> ChangeBatch<'a> {
    fn from_changes(changes: &'a [Change]) -> Result<Self, KvStoreError> {
        if changes.is_empty() || changes.len() > MAX_WRITE {
            return Err(invalid(format!(
                "a write has {} changes; it may have 1 to {MAX_WRITE}",
                changes.len()
            )));
        }
        let (mut batch, mut seen, mut size) = (Self::default(), BTreeSet::new(), 0);
        for change in changes {
            check_key(&change.key)?;
            if !seen.insert(&change.key) {
                return Err(invalid(format!(
                    "key {:?} appears twice in a write",
                    change.key
                )));
            }
            size += batch.push(change)?;
        }
        if size > MAX_BYTES {
            return Err(invalid(format!(
                "the values of a write have {size} bytes; they may have {MAX_BYTES}"
            )));
        }
        Ok(batch)
    }

    fn push(&mut self, change: &'a Change) -> Result<usize, KvStoreError> {
        let Some((value, text)) = &change.put else {
            self.removed.push(change.key.as_bytes());
            return Ok(0);
        };
        let value = json::bytes(value);
        let value = value.ok_or_else(|| {
            invalid(format!(
                "the value of key {:?} is nested too deeply",
                change.key
            ))
        })?;
        let size = value.len() + text.len();
        if size > MAX_VALUE_BYTES {
            let message = format!(
                "the value of key {:?} has {size} bytes; it may have {MAX_VALUE_BYTES}",
                change.key
            );
            return Err(invalid(message));
        }
        self.keys.push(change.key.as_bytes());
        self.values.push(value);
        self.texts.push(text.as_bytes());
        self.words.push(words::vector(text));
        Ok(size)
    }
}

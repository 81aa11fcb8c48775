//! The changes of a key-value store in the order of their versions.

use std::{collections::VecDeque, sync::Arc};

use adjutant_core::kv::{ChangeStream, Changed, KvStoreError, Version};
use futures_util::stream;
use tokio_postgres::Row;

use super::item;
use crate::postgres::{
    database::Database,
    fault::Fault,
    row::{behind, read_u64, text, to_i64},
    wake::{self, Waiter},
};

/// The largest number of changes that are fetched at once.
const PAGE: i64 = 200;

/// The largest number of bytes that are fetched at once, if there is more than one change.
const PAGE_BYTES: i64 = 16 * 1024 * 1024;

const CHANGES: &str = "with here as ( \
        select id from shelves where name = $1 \
    ), seen as ( \
        (select key, value, text, version, changed_ms from items \
            where shelf = (select id from here) and key >= $2 and ($3::bytea is null or key < $3) \
            and (version > $4 or (version = $4 and key > $5)) order by version, key limit $6) \
        union all \
        (select key, null, null, version, 0 from removals \
            where shelf = (select id from here) and key >= $2 and ($3::bytea is null or key < $3) \
            and (version > $4 or (version = $4 and key > $5)) order by version, key limit $6) \
    ), sized as ( \
        select *, coalesce(sum(octet_length(value) + octet_length(text)) over before, 0) as before \
        from (select * from seen order by version, key limit $6) as page \
        window before as (order by version, key rows between unbounded preceding and 1 preceding) \
    ) select key, value, text, version, changed_ms from sized where before < $7 order by version, key";

/// The changes of keys with a prefix after a version.
pub(super) fn watch(
    database: &Arc<Database>,
    kv: &Arc<str>,
    prefix: &str,
    after: Version,
) -> ChangeStream {
    let watch = Watch {
        database: Arc::clone(database),
        kv: Arc::clone(kv),
        prefix: prefix.into(),
        version: after,
        key: None,
        page: VecDeque::new(),
        waiter: None,
    };
    Box::pin(stream::unfold(watch, async |mut watch| {
        Some((watch.next().await, watch))
    }))
}

/// The progress of a watch.
struct Watch {
    database: Arc<Database>,
    kv: Arc<str>,
    prefix: Box<str>,
    version: Version,
    /// The last reported key of the version; `None` if all of them were reported.
    key: Option<Arc<str>>,
    page: VecDeque<Row>,
    /// There once it has looked and found all.
    waiter: Option<Waiter>,
}

impl Watch {
    async fn next(&mut self) -> Result<Changed, KvStoreError> {
        loop {
            let changed = match self.page.pop_front() {
                Some(row) => self.read_change(&row).map(Some),
                None => self.look().await.map(|()| None),
            };
            match changed {
                Ok(Some(changed)) => return Ok(changed),
                Ok(None) => {}
                Err(fault) => {
                    return Err(fault.kv(format_args!("watch key-value store {:?}", self.kv)));
                }
            }
        }
    }

    async fn look(&mut self) -> Result<(), Fault> {
        let waiter = match &mut self.waiter {
            Some(waiter) => {
                waiter.wait().await;
                waiter
            }
            waiter => waiter.insert(Waiter::new(
                Arc::clone(&self.database),
                wake::changes(&self.kv),
            )),
        };
        waiter.looks();
        let (kv, prefix, key) = (Arc::clone(&self.kv), self.prefix.clone(), self.key.clone());
        let version = to_i64(self.version.0);
        let look = async move |database: Arc<Database>| {
            let (prefix, end) = (prefix.as_bytes(), behind(prefix.as_bytes()));
            let key = key.as_ref().map(|key| key.as_bytes());
            let values = [
                &kv.as_bytes() as _,
                &prefix as _,
                &end as _,
                &version as _,
                &key as _,
                &PAGE as _,
                &PAGE_BYTES as _,
            ];
            database.rows(CHANGES, &values).await
        };
        let rows = self.database.apart(look).await?;
        if !rows.is_empty() {
            // There may be more of them.
            self.waiter = None;
        }
        self.page = rows.into();
        Ok(())
    }

    fn read_change(&mut self, row: &Row) -> Result<Changed, Fault> {
        let (key, version) = (text(row, 0)?, Version(read_u64(row, 3)?));
        // A change that cannot be read is reported once.
        (self.version, self.key) = (version, Some(Arc::clone(&key)));
        let is_there = row.try_get::<_, Option<&[u8]>>(1)?.is_some();
        let item = is_there.then(|| item(row)).transpose()?;
        Ok(Changed { key, version, item })
    }
}

//! An owned log: each batch is one statement, which does all of it or nothing.

use std::{collections::BTreeMap, sync::Arc};

use adjutant_core::{
    Digest, Flush, Folded, Head, JournalError, JournalErrorKind, Log, PostNo, Seq, Stamped, Work,
};
use async_trait::async_trait;

use super::{due, lease::Lease};
use crate::{
    folds::FOLD_EVERY,
    postgres::{fault::Fault, row::to_i64},
};

/// The most bytes that a batch may have, attachments included: the server takes no message of more than 1 GiB.
const MAX_BATCH: usize = 512 * 1024 * 1024;

/// The lock that is shared by writers of references to attachments, and exclusive for their removal.
pub(super) const ATTACHMENTS: i64 = 0x6164_6a75_7461_7474;

/// The head moves if it is where the batch begins and the epoch is the owner's; everything else hangs on that.
macro_rules! append {
    ($attached:literal) => {
        concat!(
            "with head as ( \
                update logs set seq = $4, link = $5, updated_ms = greatest(updated_ms, $6), bytes = logs.bytes + $7, \
                    until = clock_timestamp() + lease, work = coalesce($13, work), \
                    waits = case when $13 is null then waits else $14 end, \
                    until_ms = case when $13 is null then until_ms else $15 end, \
                    lost = case when $13 <> 1 or $16 then 0 else lost end \
                where id = $1 and epoch = $2 and seq = $3 returning id \
            ), kept as ( \
                insert into records (log, seq, link, bytes, attached) \
                select head.id, new.seq, new.link, new.bytes, new.attached from head, \
                    unnest($8::bigint[], $9::bytea[], $10::bytea[], $11::int[]) as new (seq, link, bytes, attached) \
            )",
            $attached,
            " select (select count(*) from head), case \
                when $12 then set_config('synchronous_commit', 'off', true) \
                when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', true) \
            end"
        )
    };
}

const APPEND: &str = append!("");

const APPEND_ATTACHED: &str = append!(
    ", guard as materialized (select pg_advisory_xact_lock_shared($17) from head), \
    large as ( \
        insert into attachments (digest, bytes) select new.digest, new.bytes \
        from guard, unnest($18::bytea[], $19::bytea[]) as new (digest, bytes) on conflict do nothing \
    ), linked as ( \
        insert into attached (log, seq, place, digest) select head.id, new.seq, new.place, new.digest \
        from head, unnest($20::bigint[], $21::int[], $22::bytea[]) as new (seq, place, digest) \
    )"
);

const STANDING: &str = "select 1 from logs where id = $1 and epoch = $2";

const KEEP: &str = "insert into folds (log, seq, link, format, bytes) \
    select logs.id, $3, records.link, $4, $5 from logs join records on records.log = logs.id and records.seq = $3 \
    where logs.id = $1 and logs.epoch = $2 for update of logs on conflict (log) do update \
    set seq = excluded.seq, link = excluded.link, format = excluded.format, bytes = excluded.bytes";

const HEEDED: &str = "with head as ( \
        update logs set heeded = greatest(heeded, $3), posted = greatest(posted, $3) \
        where id = $1 and epoch = $2 returning id \
    ), gone as (delete from posts using head where log = head.id and no <= $3) \
    select 1 from head";

/// An owned log.
#[derive(Debug)]
pub(super) struct PostgresLog {
    pub(super) lease: Lease,
    pub(super) seq: Seq,
    /// The link of the newest record.
    pub(super) link: Digest,
    /// An append may have happened or not.
    is_broken: bool,
    /// The work to store with the next append.
    mark: Option<Work>,
    has_progressed: bool,
}

/// A batch in the database's form.
#[derive(Default)]
struct RecordBatch<'a> {
    seqs: Vec<i64>,
    links: Vec<Digest>,
    records: Vec<&'a [u8]>,
    counts: Vec<i32>,
    size: usize,
    large: BTreeMap<Digest, &'a [u8]>,
    places: Vec<(i64, i32, Digest)>,
}

#[async_trait]
impl Log for PostgresLog {
    fn head(&self) -> Head {
        Head {
            seq: self.seq,
            epoch: self.lease.epoch,
        }
    }

    async fn append(&mut self, batch: &[Arc<Stamped>], flush: Flush) -> Result<Head, JournalError> {
        if self.is_broken {
            let message = format!(
                "an append to log {:?} broke off; it must be owned again",
                self.lease.log.0
            );
            return Err(JournalError::new(JournalErrorKind::Io, message));
        }
        let updated_ms = batch.last().map_or(0, |newest| to_i64(newest.at_ms));
        let batch = match self.batch(batch) {
            Ok(batch) => batch,
            // A fenced owner gets `Fenced`, independent of other errors.
            Err(error) if error.kind == JournalErrorKind::Corrupt => {
                return Err(self.misses(error).await);
            }
            Err(error) => return Err(error),
        };
        let link = batch.links.last().copied().unwrap_or(self.link);
        let seq = Seq(self.seq.0 + batch.seqs.len() as u64);
        self.is_broken = true;
        let hit = self.put(&batch, seq, link, updated_ms, flush).await;
        let hit = hit.map_err(|fault| fault.journal(self.doing("append to")))?;
        self.is_broken = false;
        (self.mark, self.has_progressed) = (None, false);
        if !hit {
            return Err(self.misses(self.does_not_follow()).await);
        }
        (self.seq, self.link) = (seq, link);
        Ok(self.head())
    }

    fn mark(&mut self, work: Work) {
        self.mark = Some(work);
    }

    fn mark_progress(&mut self) {
        self.has_progressed = true;
    }

    fn keeps(&self) -> Option<u64> {
        Some(FOLD_EVERY)
    }

    async fn keep(&mut self, folded: Folded) -> Result<(), JournalError> {
        let (row, epoch) = (self.lease.row, to_i64(self.lease.epoch.0));
        let values = [
            &row as _,
            &epoch as _,
            &to_i64(folded.seq.0) as _,
            &folded.format.as_bytes() as _,
            &&*folded.bytes as _,
        ];
        match self.lease.database.execute(KEEP, &values).await {
            Ok(0) => {
                let message = format!(
                    "log {:?} has no record {} that could be folded",
                    self.lease.log.0, folded.seq
                );
                Err(self
                    .misses(JournalError::new(JournalErrorKind::Invalid, message))
                    .await)
            }
            Ok(_) => Ok(()),
            Err(fault) => Err(fault.journal(self.doing("keep a fold of"))),
        }
    }

    async fn mark_consumed(&mut self, upto: PostNo) -> Result<(), JournalError> {
        let (row, epoch) = (self.lease.row, to_i64(self.lease.epoch.0));
        match self
            .lease
            .database
            .row(HEEDED, &[&row, &epoch, &to_i64(upto.0)])
            .await
        {
            Ok(None) => Err(JournalError::for_log(
                JournalErrorKind::Fenced,
                &self.lease.log,
            )),
            Ok(Some(_)) => Ok(()),
            Err(fault) => Err(fault.journal(self.doing("heed posts to"))),
        }
    }
}

impl PostgresLog {
    /// A log that was taken, with its end.
    pub(super) fn new(lease: Lease, seq: Seq, link: Digest) -> Self {
        Self {
            lease,
            seq,
            link,
            is_broken: false,
            mark: None,
            has_progressed: false,
        }
    }

    fn batch<'a>(&self, records: &'a [Arc<Stamped>]) -> Result<RecordBatch<'a>, JournalError> {
        let mut batch = RecordBatch::default();
        let (mut seq, mut link) = (self.seq.0, self.link);
        for stamped in records {
            seq += 1;
            if stamped.seq.0 != seq {
                return Err(self.does_not_follow());
            }
            let bytes = stamped.bytes()?;
            link = link.then(bytes);
            batch.push(stamped, bytes, link)?;
        }
        if batch.size > MAX_BATCH {
            let message = format!(
                "records of {} bytes are too large to be appended at once: {MAX_BATCH}",
                batch.size
            );
            return Err(JournalError::new(JournalErrorKind::Invalid, message));
        }
        Ok(batch)
    }

    /// Writes a batch; true if the head was where it was expected.
    async fn put(
        &self,
        batch: &RecordBatch<'_>,
        seq: Seq,
        link: Digest,
        updated_ms: i64,
        flush: Flush,
    ) -> Result<bool, Fault> {
        let links: Vec<&[u8]> = batch.links.iter().map(|link| &link.0[..]).collect();
        let bytes = batch.records.iter().map(|bytes| bytes.len()).sum::<usize>() as i64;
        let (epoch, before, seq) = (
            to_i64(self.lease.epoch.0),
            to_i64(self.seq.0),
            to_i64(seq.0),
        );
        let (link, is_lazy) = (&link.0[..], flush == Flush::Lazy);
        let digests: Vec<&[u8]> = batch.large.keys().map(|digest| &digest.0[..]).collect();
        let large: Vec<&[u8]> = batch.large.values().copied().collect();
        let seqs: Vec<i64> = batch.places.iter().map(|(seq, ..)| *seq).collect();
        let places: Vec<i32> = batch.places.iter().map(|(_, place, _)| *place).collect();
        let linked: Vec<&[u8]> = batch
            .places
            .iter()
            .map(|(.., digest)| &digest.0[..])
            .collect();
        let mark = self.mark.as_ref().map(due::columns);
        let (work, waits, until_ms) = match mark {
            Some((work, waits, until_ms)) => (Some(work), waits, until_ms),
            None => (None, None, None),
        };
        let mut values: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> = vec![
            &self.lease.row,
            &epoch,
            &before,
            &seq,
            &link,
            &updated_ms,
            &bytes,
        ];
        values.extend_from_slice(&[&batch.seqs, &links, &batch.records, &batch.counts, &is_lazy]);
        values.extend_from_slice(&[&work, &waits, &until_ms, &self.has_progressed]);
        let sql = if linked.is_empty() {
            APPEND
        } else {
            values.extend_from_slice(&[&ATTACHMENTS, &digests, &large, &seqs, &places, &linked]);
            APPEND_ATTACHED
        };
        let row = self.lease.database.row(sql, &values).await?;
        Ok(row.is_some_and(|row| row.get::<_, i64>(0) > 0))
    }

    /// Returns the reason why a statement found nothing to change: another owner has taken over, or `otherwise`.
    async fn misses(&self, otherwise: JournalError) -> JournalError {
        let values = [&self.lease.row as _, &to_i64(self.lease.epoch.0) as _];
        match self.lease.database.row(STANDING, &values).await {
            Ok(None) => JournalError::for_log(JournalErrorKind::Fenced, &self.lease.log),
            Ok(Some(_)) => otherwise,
            Err(fault) => fault.journal(self.doing("write to")),
        }
    }

    fn does_not_follow(&self) -> JournalError {
        let message = format!(
            "a batch does not follow record {} of log {:?}",
            self.seq, self.lease.log.0
        );
        JournalError::new(JournalErrorKind::Corrupt, message)
    }

    fn doing(&self, what: &str) -> String {
        format!("{what} log {:?}", self.lease.log.0)
    }
}

impl<'a> RecordBatch<'a> {
    fn push(
        &mut self,
        stamped: &'a Stamped,
        bytes: &'a [u8],
        link: Digest,
    ) -> Result<(), JournalError> {
        let seq = to_i64(stamped.seq.0);
        let attachments = stamped.attachments()?;
        self.seqs.push(seq);
        self.links.push(link);
        self.records.push(bytes);
        self.size += bytes.len();
        self.counts.push(attachments.len() as i32);
        for (place, attachment) in (0..).zip(attachments) {
            self.places.push((seq, place, attachment.digest));
            if self
                .large
                .insert(attachment.digest, &attachment.bytes)
                .is_none()
            {
                self.size += attachment.bytes.len();
            }
        }
        Ok(())
    }
}

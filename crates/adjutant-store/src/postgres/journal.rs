//! Logs in PostgreSQL: one row for the head of each, one for each record, ordered by number alone.

mod due;
mod keeping;
mod lease;
mod log;
mod posts;
mod records;

use std::{pin::pin, sync::Arc};

use adjutant_core::{
    Backlog, Digest, DueLog, DueWork, Epoch, Folded, GcReport, Journal, JournalError,
    JournalErrorKind, Log, LogId, LogInfo, LogPage, LogQuery, Owner, Post, PostNo, PostStream,
    Posted, RecordStream, Seq, SessionMeta, StoredStream,
};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryStreamExt;

pub(super) use self::lease::Leases;
use self::{
    lease::{Lease, is_owned},
    log::PostgresLog,
};
use super::{
    database::Database,
    fault::Fault,
    row::{digest, read_u64, text, to_i64},
};

const OWN: &str = concat!(
    "insert into logs (name, owner, until, lease, link, created_ms, updated_ms, about) \
    values ($1, $2, clock_timestamp() + make_interval(secs => $3), make_interval(secs => $3), $4, $5, $5, $6) \
    on conflict (name) do update \
    set epoch = logs.epoch + 1, owner = excluded.owner, until = excluded.until, lease = excluded.lease \
    where $7 or logs.owner = excluded.owner or not ",
    is_owned!(),
    " returning id, epoch, seq, link"
);

const HOLDER: &str =
    "select owner, extract(epoch from until - clock_timestamp())::float8 from logs where name = $1";

const FOLDED: &str = "select folds.seq, folds.format, folds.bytes from folds join logs on logs.id = folds.log \
    join records on records.log = logs.id and records.seq = folds.seq and records.link = folds.link \
    where logs.name = $1 and folds.seq <= logs.seq";

/// The logs of a [`Postgres`](super::Postgres) database; clones share its connections.
///
/// A log whose owner's process has died is free when its lease ends, by the server's clock; `Owned` contains the
/// remaining time. A record, or the records of one append, can have 512 MiB in total.
#[derive(Debug, Clone)]
pub struct PostgresJournal {
    database: Arc<Database>,
}

impl PostgresJournal {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self { database }
    }

    /// Takes the log; `None` if another owner has it.
    async fn take(&self, log: &LogId, owner: &Owner) -> Result<Option<PostgresLog>, Fault> {
        let (name, owner_id, takes_over) =
            (log.0.as_bytes(), owner.id.as_bytes(), owner.takes_over);
        let (lease, now) = (
            self.database.lease.as_secs_f64(),
            to_i64(self.database.world.now_ms()),
        );
        let (genesis, about) = (&Digest::GENESIS.0[..], &b"{}"[..]);
        let values = [
            &name as _,
            &owner_id as _,
            &lease as _,
            &genesis as _,
            &now as _,
            &about as _,
            &takes_over as _,
        ];
        let Some(row) = self.database.row(OWN, &values).await? else {
            return Ok(None);
        };
        let lease = Lease::new(
            &self.database,
            log,
            row.try_get(0)?,
            Epoch(read_u64(&row, 1)?),
        );
        Ok(Some(PostgresLog::new(
            lease,
            Seq(read_u64(&row, 2)?),
            digest(&row, 3)?,
        )))
    }

    /// Sees that the newest record is there and can be read.
    async fn check_end(&self, log: &PostgresLog) -> Result<(), JournalError> {
        let Some(before) = log.seq.0.checked_sub(1) else {
            return Ok(());
        };
        let id = &log.lease.log;
        let newest = pin!(records::read_linked(
            Arc::clone(&self.database),
            id.clone(),
            Seq(before)
        ))
        .try_next()
        .await?;
        match newest {
            Some((record, before)) if record.link == log.link => record.open(&before).map(|_| ()),
            _ => {
                let message = format!("the end of log {:?} is not what was written", id.0);
                Err(JournalError::new(JournalErrorKind::Corrupt, message))
            }
        }
    }
}

#[async_trait]
impl Journal for PostgresJournal {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        log.check()?;
        self.database.leases.wait_for_release(log).await;
        let failed = |fault: Fault| fault.journal(format_args!("own log {:?}", log.0));
        let (journal, id, claim) = (self.clone(), log.clone(), owner.clone());
        // On a separate task: if the caller is gone, the log is released immediately, not when its lease ends.
        let taken = tokio::spawn(async move { journal.take(&id, &claim).await })
            .await
            .map_err(|error| {
                let message = format!("cannot own log {:?}: its task ended early", log.0);
                JournalError::new(JournalErrorKind::Io, message).with_source(error)
            })?;
        let Some(owned) = taken.map_err(failed)? else {
            let row = self
                .database
                .row(HOLDER, &[&log.0.as_bytes()])
                .await
                .map_err(failed)?;
            return Err(keeping::refusal(log, row.as_ref(), 0));
        };
        self.check_end(&owned).await?;
        Ok(Box::new(owned))
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        records::read(&self.database, log, after)
    }

    fn read_stored(&self, log: &LogId, after: Seq) -> StoredStream {
        records::read_stored(&self.database, log, after)
    }

    async fn post(&self, log: &LogId, post: Post) -> Result<PostNo, JournalError> {
        posts::post(&self.database, log, &post).await
    }

    fn posts(&self, log: &LogId, after: PostNo) -> Option<PostStream> {
        Some(posts::posts(&self.database, log, after))
    }

    async fn read_posts(&self, log: &LogId, after: PostNo) -> Result<Vec<Posted>, JournalError> {
        posts::read_posts(&self.database, log, after).await
    }

    async fn info(&self, log: &LogId) -> Result<LogInfo, JournalError> {
        keeping::info(&self.database, log).await
    }

    async fn list(&self, query: &LogQuery) -> Result<LogPage, JournalError> {
        keeping::list(&self.database, query).await
    }

    async fn describe(&self, log: &LogId, about: SessionMeta) -> Result<(), JournalError> {
        keeping::describe(&self.database, log, &about).await
    }

    async fn rename(&self, from: &LogId, to: &LogId) -> Result<(), JournalError> {
        keeping::rename(&self.database, from, to).await
    }

    async fn delete(&self, log: &LogId) -> Result<(), JournalError> {
        keeping::delete(&self.database, log).await
    }

    async fn sweep(&self) -> Result<GcReport, JournalError> {
        keeping::sweep(&self.database).await
    }

    async fn load_fold(&self, log: &LogId) -> Result<Option<Folded>, JournalError> {
        let folded = async {
            let Some(row) = self.database.row(FOLDED, &[&log.0.as_bytes()]).await? else {
                return Ok(None);
            };
            let bytes: &[u8] = row.try_get(2)?;
            let (seq, format) = (Seq(read_u64(&row, 0)?), text(&row, 1)?);
            Ok(Some(Folded {
                seq,
                format,
                bytes: Bytes::copy_from_slice(bytes),
            }))
        };
        folded
            .await
            .map_err(|fault: Fault| fault.journal(format_args!("read the fold of log {:?}", log.0)))
    }
}

#[async_trait]
impl DueWork for PostgresJournal {
    async fn due(&self, owner: &Owner, most: usize) -> Result<Vec<DueLog>, JournalError> {
        let (journal, owner) = (self.clone(), owner.clone());
        // As in `own`: if the caller is gone, the claimed logs are released immediately.
        let claimed = tokio::spawn(async move { journal.claim(&owner, most).await })
            .await
            .map_err(|error| {
                let message = "cannot take due logs: their task ended early";
                JournalError::new(JournalErrorKind::Io, message).with_source(error)
            })?;
        claimed.map_err(|fault| fault.journal("take due logs"))
    }

    async fn until_due(&self) {
        self.woken().await;
    }

    async fn pass_over(&self, log: &LogId, upto: PostNo) -> Result<(), JournalError> {
        self.pass(log, upto).await
    }

    async fn set_aside(&self, log: &LogId, why: &str) -> Result<(), JournalError> {
        self.put_aside(log, why).await
    }

    async fn retry(&self, log: &LogId) -> Result<bool, JournalError> {
        self.try_again(log).await
    }

    async fn backlog(&self) -> Result<Backlog, JournalError> {
        self.numbers()
            .await
            .map_err(|fault| fault.journal("count due logs"))
    }
}

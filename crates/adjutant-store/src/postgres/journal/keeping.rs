//! Functions that look after logs without reading them: information, lists, other names, deletion, the clean-up of
//! attachments.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use adjutant_core::{
    GcReport, Holder, JournalError, JournalErrorKind, LogId, LogInfo, LogPage, LogQuery, Seq,
    SessionMeta,
};
use tokio_postgres::{Row, Transaction, error::SqlState};

use super::{due, lease::is_owned, log::ATTACHMENTS};
use crate::postgres::{
    database::Database,
    fault::Fault,
    json,
    row::{read_u64, text, to_i64},
};

/// The largest number of bytes of a log's metadata.
const MAX_ABOUT: usize = 1024 * 1024;

/// The columns of a log.
macro_rules! fields {
    () => {
        concat!(
            "name, created_ms, updated_ms, seq, bytes, about, parent, parent_seq, ",
            $crate::postgres::journal::lease::is_owned!(),
            ", logs.id, epoch, link, work, waits, until_ms, aside, logs.owner, due_ms"
        )
    };
}
pub(super) use fields;

const FIELDS: &str = concat!("select ", fields!(), " from logs ");

const LISTED: &str = "where ($1::bytea is null or agent = $1) and ($2::bytea is null or $2 = any(labels)) \
    and ($3::bytea is null or parent = $3) and ($4::bigint is null or updated_ms >= $4) \
    and ($5::bigint is null or updated_ms < $5) \
    and ($6::bigint is null or updated_ms < $6 or (updated_ms = $6 and name > $7)) \
    order by updated_ms desc, name limit $8";

const DESCRIBE: &str = "update logs set about = $2, agent = $3, labels = $4, parent = $5, parent_seq = $6 where name = $1";

const HOLD: &str = concat!(
    "select id, ",
    is_owned!(),
    ", owner, extract(epoch from until - clock_timestamp())::float8 from logs where name = $1 for update"
);

/// The statements that delete the parts of a log; the log itself comes last.
const PARTS: [&str; 5] = [
    "delete from records where log = $1",
    "delete from attached where log = $1",
    "delete from folds where log = $1",
    "delete from posts where log = $1",
    "delete from logs where id = $1",
];

const SWEEP: &str = "with gone as ( \
        delete from attachments where not exists ( \
            select 1 from attached where attached.digest = attachments.digest) \
        returning octet_length(bytes)::bigint as size \
    ) select count(*), coalesce(sum(size), 0)::bigint from gone";

/// Returns the information about a log.
pub(super) async fn info(database: &Database, log: &LogId) -> Result<LogInfo, JournalError> {
    let failed = |fault: Fault| fault.journal(format_args!("tell of log {:?}", log.0));
    let leaving = database.leases.leaving();
    let row = database
        .row(&format!("{FIELDS} where name = $1"), &[&log.0.as_bytes()])
        .await
        .map_err(failed)?;
    let row = row.ok_or_else(|| JournalError::for_log(JournalErrorKind::Missing, log))?;
    read_info(&row, &leaving).map_err(failed)
}

/// A page of the logs.
pub(super) async fn list(database: &Database, query: &LogQuery) -> Result<LogPage, JournalError> {
    let failed = |fault: Fault| fault.journal("list logs");
    let bytes = |text: &Option<_>| {
        text.as_ref()
            .map(|text: &Arc<str>| text.as_bytes().to_vec())
    };
    let limit = query.limit.max(1);
    let (agent, label) = (bytes(&query.agent), bytes(&query.label));
    let parent = query.parent.as_ref().map(|parent| parent.0.as_bytes());
    let (since, before) = (query.since_ms.map(to_i64), query.before_ms.map(to_i64));
    let mark = query.after.as_ref();
    let (mark_ms, mark_log) = (
        mark.map(|mark| to_i64(mark.updated_ms)),
        mark.map(|mark| mark.log.0.as_bytes()),
    );
    // One extra row shows whether there is another page.
    let rows_wanted = to_i64(limit as u64).saturating_add(1);
    let leaving = database.leases.leaving();
    let rows = database
        .rows(
            &format!("{FIELDS}{LISTED}"),
            &[
                &agent,
                &label,
                &parent,
                &since,
                &before,
                &mark_ms,
                &mark_log,
                &rows_wanted,
            ],
        )
        .await
        .map_err(failed)?;
    let logs: Result<Vec<LogInfo>, Fault> = rows
        .iter()
        .take(limit)
        .map(|row| read_info(row, &leaving))
        .collect();
    Ok(LogPage::new(logs.map_err(failed)?, rows.len() > limit))
}

/// Sets the metadata of a log.
pub(super) async fn describe(
    database: &Database,
    log: &LogId,
    about: &SessionMeta,
) -> Result<(), JournalError> {
    let large = || {
        format!(
            "the metadata of log {:?} has more than {MAX_ABOUT} bytes",
            log.0
        )
    };
    let bytes = json::bytes(about).filter(|bytes| bytes.len() <= MAX_ABOUT);
    let bytes = bytes.ok_or_else(|| JournalError::new(JournalErrorKind::Invalid, large()))?;
    let agent = about.agent.as_ref().map(|agent| agent.as_bytes());
    let labels: Vec<&[u8]> = about.labels.iter().map(|label| label.as_bytes()).collect();
    let parent = about.parent.as_ref().map(|(parent, _)| parent.0.as_bytes());
    let shared = about.parent.as_ref().map(|(_, seq)| to_i64(seq.0));
    let values = [
        &log.0.as_bytes() as _,
        &bytes as _,
        &agent as _,
        &labels as _,
        &parent as _,
        &shared as _,
    ];
    match database.execute(DESCRIBE, &values).await {
        Ok(0) => Err(JournalError::for_log(JournalErrorKind::Missing, log)),
        Ok(_) => Ok(()),
        Err(fault) => Err(fault.journal(format_args!("describe log {:?}", log.0))),
    }
}

/// Renames a log.
pub(super) async fn rename(
    database: &Database,
    from: &LogId,
    to: &LogId,
) -> Result<(), JournalError> {
    to.check()?;
    database.leases.wait_for_release(from).await;
    let failed = |fault: Fault| match fault.is(&SqlState::UNIQUE_VIOLATION) {
        true => JournalError::for_log(JournalErrorKind::Exists, to),
        false => fault.journal(format_args!("rename log {:?}", from.0)),
    };
    let mut client = database.client().await.map_err(failed)?;
    let change = client
        .transaction()
        .await
        .map_err(|error| failed(error.into()))?;
    let row = hold(&change, from).await?;
    if from == to {
        return Err(JournalError::for_log(JournalErrorKind::Exists, to));
    }
    let (old, new) = (from.0.as_bytes(), to.0.as_bytes());
    let renamed = async {
        change
            .execute("update logs set name = $2 where id = $1", &[&row, &new])
            .await?;
        change
            .execute(
                "update logs set parent = $2 where parent = $1",
                &[&old, &new],
            )
            .await?;
        change.commit().await
    };
    renamed.await.map_err(|error| failed(error.into()))
}

/// Deletes a log with all that belongs to it.
pub(super) async fn delete(database: &Database, log: &LogId) -> Result<(), JournalError> {
    database.leases.wait_for_release(log).await;
    let failed = |fault: Fault| fault.journal(format_args!("delete log {:?}", log.0));
    let mut client = database.client().await.map_err(failed)?;
    let change = client
        .transaction()
        .await
        .map_err(|error| failed(error.into()))?;
    let row = hold(&change, log).await?;
    let deleted = async {
        for part in PARTS {
            change.execute(part, &[&row]).await?;
        }
        change.commit().await
    };
    deleted.await.map_err(|error| failed(error.into()))
}

/// Removes attachments that no log refers to.
pub(super) async fn sweep(database: &Database) -> Result<GcReport, JournalError> {
    let failed = |fault: Fault| fault.journal("sweep attachments");
    let mut client = database.client().await.map_err(failed)?;
    let swept = async {
        let change = client.transaction().await?;
        // While this lock is held, no unreferenced attachment can gain a reference.
        change
            .execute("select pg_advisory_xact_lock($1)", &[&ATTACHMENTS])
            .await?;
        let row = change.query_one(SWEEP, &[]).await?;
        change.commit().await?;
        Ok(GcReport {
            attachments: read_u64(&row, 0)?,
            bytes: read_u64(&row, 1)?,
        })
    };
    swept.await.map_err(failed)
}

/// Locks an unowned log until the transaction ends; returns the id of its row.
async fn hold(change: &Transaction<'_>, log: &LogId) -> Result<i64, JournalError> {
    let row = change.query_opt(HOLD, &[&log.0.as_bytes()]).await;
    let row =
        row.map_err(|error| Fault::from(error).journal(format_args!("find log {:?}", log.0)))?;
    let row = row.ok_or_else(|| JournalError::for_log(JournalErrorKind::Missing, log))?;
    if row.get(1) {
        Err(refusal(log, Some(&row), 2))
    } else {
        Ok(row.get(0))
    }
}

/// A log is not free: its owner, and in the next column how much is left of the lease.
pub(super) fn refusal(log: &LogId, row: Option<&Row>, column: usize) -> JournalError {
    let owner: Option<&[u8]> = row.and_then(|row| row.get(column));
    let mut holder = Holder {
        owner: String::from_utf8_lossy(owner.unwrap_or_default()).into(),
        ..Holder::default()
    };
    let left: Option<f64> = row.and_then(|row| row.get(column + 1));
    holder.left = left.and_then(|left| Duration::try_from_secs_f64(left).ok());
    JournalError::already_owned(log, holder)
}

/// Reads the information in a row; a log that this program was about to release before the row was read counts as
/// free.
pub(super) fn read_info(row: &Row, leaving: &BTreeSet<(i64, i64)>) -> Result<LogInfo, Fault> {
    let log = LogId(text(row, 0)?);
    let about: &[u8] = row.try_get(5)?;
    let mut about: SessionMeta =
        serde_json::from_slice(about).map_err(|_| Fault::Stored("the metadata of a log"))?;
    // Renaming the parent changes the column only.
    about.parent = match row.try_get::<_, Option<&[u8]>>(6)? {
        Some(_) => Some((LogId(text(row, 6)?), Seq(read_u64(row, 7)?))),
        None => None,
    };
    let mut info = LogInfo::new(log, read_u64(row, 1)?);
    info.updated_ms = read_u64(row, 2)?;
    info.head = Seq(read_u64(row, 3)?);
    info.bytes = read_u64(row, 4)?;
    info.is_owned = row.try_get(8)? && !leaving.contains(&(row.try_get(9)?, row.try_get(10)?));
    if info.is_owned {
        info.owner = Some(text(row, 16)?);
    }
    info.work = Some(due::work(row, 12)?);
    info.due_ms = row
        .try_get::<_, Option<i64>>(17)?
        .and_then(|at| u64::try_from(at).ok());
    info.about = about;
    Ok(info)
}

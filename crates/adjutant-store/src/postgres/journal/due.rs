//! Due logs: listing, claiming and counting them.

use std::time::Duration;

use adjutant_core::{
    Backlog, DueLog, Epoch, JournalError, JournalErrorKind, LogId, MAX_LOST_OWNERS, Owner, PostNo,
    SUSPECT_AFTER, SUSPECT_BARS, SUSPECT_RESTS, Work,
};

use super::{
    PostgresJournal, keeping,
    lease::{Lease, is_owned},
    log::PostgresLog,
};
use crate::postgres::{
    database::Values,
    fault::Fault,
    row::{digest, read_u64, text, to_i64},
    wake::{self, Waiter},
};

/// Logs whose owner died start a rest if they are suspects by then. The result is a suspect that has rested, if there
/// is one and the owner is not barred from it, or other logs: concurrent claims get different ones. Apart from logs
/// that are owned or have lost owners, only as many due logs are read as were requested. The rests of neighbours
/// differ in length. The time since the last renewal of the lease counts as rest.
const CLAIM: &str = concat!(
    "with died as (select id from logs where due_ms <= $1 and lost > 0 and lost + 1 >= $5 and lost + 1 < $6 \
        and owner is not null and not ",
    is_owned!(),
    " for update skip locked), \
    tired as (update logs set epoch = epoch + 1, owner = null, until = null, lost = lost + 1, \
        rest_ms = $1 + greatest(0, ($7::bigint << (lost + 1 - $5)) * (65536 + ((logs.id * 40503) & 65535)) / 65536 \
            - greatest(0, extract(epoch from clock_timestamp() - (until - lease)) * 1000)::bigint) \
        from died where logs.id = died.id), \
    suspect as (select id, lost::int as lost, true as is_open from logs where due_ms <= $1 and lost > 0 and lost >= $5 \
        and lost < $6 and owner is null and rest_ms <= $1 and not exists (select from logs where owner = $3 \
            and lost > 0 and lost >= $5 and rest_ms > $1 - $8::bigint and ",
    is_owned!(),
    ") order by due_ms, updated_ms limit 1 for update skip locked), \
    other as (select id, lost + (owner is not null)::int as lost, work = 1 as is_open from logs \
        where due_ms <= $1 and not ",
    is_owned!(),
    " and not lost + (owner is not null)::int between $5 and $6 - 1 order by due_ms, updated_ms \
        limit case when exists (select from suspect) then 0 else $2::bigint end for update skip locked), \
    due as (select * from suspect union all select * from other) \
    update logs set epoch = epoch + 1, owner = $3, lease = make_interval(secs => $4), \
        until = clock_timestamp() + make_interval(secs => $4), \
        lost = case when is_open then due.lost else logs.lost end, rest_ms = $1 \
    from due where logs.id = due.id returning ",
    keeping::fields!(),
    ", posted, logs.lost"
);

const PASS: &str = "update logs set passed = greatest(passed, $2) where name = $1";

const ASIDE: &str = "update logs set aside = $2 where name = $1";

const RETRY: &str = "with was as (select id, aside from logs where name = $1 for update), \
    tried as (update logs set aside = null, lost = 0 from was where logs.id = was.id returning was.aside is not null) \
    select *, pg_notify($2, $3) from tried";

const BACKLOG: &str = concat!(
    "select count(*) filter (where not owned), count(*) filter (where owned), \
        (select count(*) from logs where work = 2 and aside is null and coalesce(due_ms, $1 + 1) > $1), \
        (select count(*) from logs where aside is not null), min(updated_ms) filter (where not owned) \
    from (select updated_ms, ",
    is_owned!(),
    " as owned from logs where due_ms <= $1) as due"
);

impl PostgresJournal {
    pub(super) async fn claim(&self, owner: &Owner, most: usize) -> Result<Vec<DueLog>, Fault> {
        let (now, lease) = (
            to_i64(self.database.world.now_ms()),
            self.database.lease.as_secs_f64(),
        );
        let (most, owner) = (to_i64(most as u64), owner.id.as_bytes());
        let (suspect, last) = (i32::from(SUSPECT_AFTER), i32::from(MAX_LOST_OWNERS));
        let [rests, bars] = [SUSPECT_RESTS, SUSPECT_BARS]
            .map(|time| i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
        let values = [
            &now as _,
            &most as _,
            &owner as _,
            &lease as _,
            &suspect as _,
            &last as _,
            &rests as _,
            &bars as _,
        ];
        let leaving = self.database.leases.leaving();
        let rows = self.database.rows(CLAIM, &values).await?;
        // A row that cannot be read is free again when its lease ends: nothing renews it.
        let due = |row| {
            let info = keeping::read_info(row, &leaving)?;
            let (id, epoch) = (row.try_get(9)?, Epoch(read_u64(row, 10)?));
            let lease = Lease::new(&self.database, &info.log, id, epoch);
            let (seq, link) = (info.head, digest(row, 11)?);
            let newest_post = PostNo(read_u64(row, 18)?);
            let lost = u16::try_from(row.try_get::<_, i16>(19)?).unwrap_or(0);
            Ok(DueLog {
                info,
                newest_post,
                lost,
                log: Box::new(PostgresLog::new(lease, seq, link)),
            })
        };
        rows.iter().map(due).collect()
    }

    pub(super) async fn woken(&self) {
        Waiter::new(std::sync::Arc::clone(&self.database), wake::DUE.to_owned())
            .wait()
            .await;
    }

    pub(super) async fn pass(&self, log: &LogId, upto: PostNo) -> Result<(), JournalError> {
        self.change(log, PASS, &[&log.0.as_bytes(), &to_i64(upto.0)])
            .await
    }

    pub(super) async fn put_aside(&self, log: &LogId, why: &str) -> Result<(), JournalError> {
        self.change(log, ASIDE, &[&log.0.as_bytes(), &why.as_bytes()])
            .await
    }

    async fn change(&self, log: &LogId, sql: &str, values: Values<'_>) -> Result<(), JournalError> {
        match self.database.execute(sql, values).await {
            Ok(0) => Err(JournalError::for_log(JournalErrorKind::Missing, log)),
            Ok(_) => Ok(()),
            Err(fault) => Err(fault.journal(format_args!("change log {:?}", log.0))),
        }
    }

    pub(super) async fn try_again(&self, log: &LogId) -> Result<bool, JournalError> {
        let channel = self.database.channel();
        match self
            .database
            .row(RETRY, &[&log.0.as_bytes(), &channel, &wake::DUE])
            .await
        {
            Ok(None) => Err(JournalError::for_log(JournalErrorKind::Missing, log)),
            Ok(Some(row)) => Ok(row.get(0)),
            Err(fault) => Err(fault.journal(format_args!("drive log {:?} again", log.0))),
        }
    }

    pub(super) async fn numbers(&self) -> Result<Backlog, Fault> {
        let now = self.database.world.now_ms();
        let row = self
            .database
            .row(BACKLOG, &[&to_i64(now)])
            .await?
            .ok_or(Fault::Stored("the number of due logs"))?;
        let mut told = Backlog::default();
        (told.due, told.at_work) = (read_u64(&row, 0)?, read_u64(&row, 1)?);
        (told.parked, told.aside) = (read_u64(&row, 2)?, read_u64(&row, 3)?);
        let oldest = row.try_get::<_, Option<i64>>(4)?;
        told.oldest = oldest
            .map(|at| Duration::from_millis(now.saturating_sub(u64::try_from(at).unwrap_or(0))));
        Ok(told)
    }
}

/// Work in its columns: the number, the content and the deadline.
pub(super) fn columns(work: &Work) -> (i16, Option<&[u8]>, Option<i64>) {
    match work {
        Work::Open => (1, None, None),
        Work::Parked { on, until_ms } => (2, Some(on.as_bytes()), until_ms.map(to_i64)),
        _ => (0, None, None),
    }
}

/// Reads work from its columns, which begin here: number, waits, until, aside.
pub(super) fn work(row: &tokio_postgres::Row, from: usize) -> Result<Work, Fault> {
    let words = |column| {
        row.try_get::<_, Option<&[u8]>>(column)
            .map(|it| it.map(|_| text(row, column)).transpose())
    };
    if let Some(why) = words(from + 3)?? {
        return Ok(Work::Aside { why });
    }
    let until_ms = row
        .try_get::<_, Option<i64>>(from + 2)?
        .and_then(|at| u64::try_from(at).ok());
    Ok(match row.try_get::<_, i16>(from)? {
        0 => Work::Idle,
        1 => Work::Open,
        _ => Work::Parked {
            on: words(from + 1)??.unwrap_or_default(),
            until_ms,
        },
    })
}

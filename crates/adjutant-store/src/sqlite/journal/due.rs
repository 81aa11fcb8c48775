//! Due logs: listing, claiming and counting them.

use std::time::Duration;

use adjutant_core::{
    Backlog, JournalError, JournalErrorKind, LogId, LogInfo, MAX_LOST_OWNERS, Owner, PostNo,
    SUSPECT_AFTER, SUSPECT_BARS, SUSPECT_RESTS, Work,
};
use rusqlite::{Connection, OptionalExtension, params};

use super::{
    super::{number, owners::Owners},
    Fault, own, place, sessions,
};

/// The largest number of due logs that are read to find a free one.
const MAX_LOOKED_AT: i64 = 100_000;

/// True if a log is due, free and rested: looking is cheaper than a transaction that writes.
pub(super) fn is_any(db: &Connection, owners: &Owners, now_ms: u64) -> Result<bool, Fault> {
    let mut is_any = false;
    due(db, now_ms, |due| {
        is_any = !due.rests(now_ms) && !due.holder.is_alive(owners)?;
        Ok(!is_any)
    })?;
    Ok(is_any)
}

/// A claimed due log: its info, its newest post, the owners it lost, and the ownership.
pub(super) type Claimed = (LogInfo, PostNo, u16, own::Owned);

/// Claims due logs for an owner, with a limit.
pub(super) fn claim(
    db: &Connection,
    owners: &Owners,
    owner: &Owner,
    now_ms: u64,
    most: usize,
) -> Result<Vec<Claimed>, Fault> {
    owners.enroll(db)?;
    let is_barred = is_barred(db, owners, owner, now_ms)?;
    let (mut free, mut tired) = (Vec::new(), Vec::new());
    due(db, now_ms, |mut due| {
        if due.rests(now_ms) || due.holder.is_alive(owners).unwrap_or(true) {
            return Ok(true);
        }
        // Its owner died without releasing it; a released log has no holder.
        let has_died = due.is_open && due.holder.is_held();
        due.lost = due.lost.saturating_add(u16::from(has_died));
        let is_suspect = due.is_suspect();
        if is_suspect && (has_died || due.rest_ms == 0) {
            tired.push(due);
            return Ok(true);
        }
        if is_suspect && is_barred {
            return Ok(true);
        }
        if is_suspect {
            // Alone; the others are free as before.
            free.clear();
        }
        free.push(due);
        Ok(!is_suspect && free.len() < most)
    })?;
    free.truncate(most);
    for due in tired {
        let sql = "UPDATE logs SET epoch = epoch + 1, owner = NULL, instance = NULL, lost = ?2, rest_ms = ?3 WHERE key = ?1";
        let until = number::to_i64(now_ms).saturating_add(due.rest());
        db.prepare_cached(sql)?
            .execute(params![due.holder.key, due.lost, until])?;
    }
    let mut claimed = Vec::new();
    for DueRow {
        log, holder, lost, ..
    } in free
    {
        let given = params![holder.key, lost, number::to_i64(now_ms)];
        db.prepare_cached("UPDATE logs SET lost = ?2, rest_ms = ?3 WHERE key = ?1")?
            .execute(given)?;
        let mut newest = db.prepare_cached("SELECT newest_post FROM logs WHERE key = ?1")?;
        let newest = PostNo(number::read(
            newest.query_row([holder.key], |row| row.get(0))?,
        ));
        let info = sessions::info(db, owners, &log)?;
        let owner = Owner {
            takes_over: true,
            ..owner.clone()
        };
        claimed.push((
            info,
            newest,
            lost,
            own::own(db, owners, &own::Claim { log, owner, now_ms })?,
        ));
    }
    Ok(claimed)
}

/// True if the owner was given a suspect a short time ago that got no further.
fn is_barred(db: &Connection, owners: &Owners, owner: &Owner, now_ms: u64) -> Result<bool, Fault> {
    let sql = "SELECT key, epoch, owner, instance FROM logs WHERE lost > 0 AND lost >= ?1 AND owner = ?2 AND rest_ms > ?3";
    let mut select = db.prepare_cached(sql)?;
    let since = number::to_i64(now_ms) - millis(SUSPECT_BARS);
    for held in select.query_map(params![SUSPECT_AFTER, &*owner.id, since], own::Holder::read)? {
        if held?.is_alive(owners)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A due log with any owner.
struct DueRow {
    log: LogId,
    holder: own::Holder,
    is_open: bool,
    /// The owners that it lost in a row.
    lost: u16,
    /// The time when it was given, or until which it rests.
    rest_ms: i64,
}

impl DueRow {
    fn is_suspect(&self) -> bool {
        (SUSPECT_AFTER..MAX_LOST_OWNERS).contains(&self.lost)
    }

    fn rests(&self, now_ms: u64) -> bool {
        self.is_suspect() && self.rest_ms > number::to_i64(now_ms)
    }

    /// The time that a suspect rests, in milliseconds; neighbours do not rest equally long.
    fn rest(&self) -> i64 {
        let rest = millis(SUSPECT_RESTS) << (self.lost - SUSPECT_AFTER);
        rest + rest * (self.holder.key.wrapping_mul(40_503) & 0xffff) / 0x1_0000
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Calls `look` with the due logs, the oldest first, until it returns `false`.
fn due(
    db: &Connection,
    now_ms: u64,
    mut look: impl FnMut(DueRow) -> Result<bool, Fault>,
) -> Result<(), Fault> {
    let sql = "SELECT key, epoch, owner, instance, id, work = 1, lost, rest_ms FROM logs WHERE due_ms <= ?1 \
               ORDER BY due_ms, updated_ms LIMIT ?2";
    let mut select = db.prepare_cached(sql)?;
    let mut rows = select.query(params![number::to_i64(now_ms), MAX_LOOKED_AT])?;
    while let Some(row) = rows.next()? {
        let log = LogId::from(row.get::<_, String>(4)?);
        let (holder, is_open) = (own::Holder::read(row)?, row.get(5)?);
        let due = DueRow {
            log,
            holder,
            is_open,
            lost: row.get(6)?,
            rest_ms: row.get(7)?,
        };
        if !look(due)? {
            break;
        }
    }
    Ok(())
}

/// The posts up to this one no longer make a log due.
pub(super) fn pass_over(db: &Connection, log: &LogId, upto: PostNo) -> Result<(), Fault> {
    let sql = "UPDATE logs SET passed = max(passed, ?2) WHERE id = ?1";
    match db
        .prepare_cached(sql)?
        .execute(params![&*log.0, number::to_i64(upto.0)])?
    {
        0 => Err(JournalError::for_log(JournalErrorKind::Missing, log).into()),
        _ => Ok(()),
    }
}

/// Sets a log aside, or returns it; true if it was set aside.
pub(super) fn set_aside(db: &Connection, log: &LogId, why: Option<&str>) -> Result<bool, Fault> {
    let key = place::key(db, log)?
        .ok_or_else(|| JournalError::for_log(JournalErrorKind::Missing, log))?;
    let mut was = db.prepare_cached("SELECT aside IS NOT NULL FROM logs WHERE key = ?1")?;
    let was_aside = was.query_row([key], |row| row.get(0))?;
    let sql = "UPDATE logs SET aside = ?2, lost = CASE WHEN ?2 IS NULL THEN 0 ELSE lost END WHERE key = ?1";
    db.prepare_cached(sql)?.execute(params![key, why])?;
    Ok(was_aside)
}

/// Returns the work of the journal in numbers.
pub(super) fn backlog(db: &Connection, owners: &Owners, now_ms: u64) -> Result<Backlog, Fault> {
    let mut told = Backlog::default();
    due(db, now_ms, |due| {
        let info = sessions::info(db, owners, &due.log)?;
        if info.is_owned {
            told.at_work += 1;
        } else {
            let since = Duration::from_millis(now_ms.saturating_sub(info.updated_ms));
            (told.due, told.oldest) = (told.due + 1, told.oldest.max(Some(since)));
        }
        Ok(true)
    })?;
    let count = |sql: &str| {
        db.prepare_cached(sql)?
            .query_row([], |row| row.get::<_, i64>(0))
            .optional()
    };
    let now_ms = number::to_i64(now_ms);
    let parked = format!(
        "SELECT count(*) FROM logs WHERE work = 2 AND aside IS NULL AND (due_ms IS NULL OR due_ms > {now_ms})"
    );
    told.parked = number::read(count(&parked)?.unwrap_or(0));
    told.aside =
        number::read(count("SELECT count(*) FROM logs WHERE aside IS NOT NULL")?.unwrap_or(0));
    Ok(told)
}

/// Work in its columns: the number, the content and the deadline.
pub(super) fn columns(work: &Work) -> (i64, Option<&str>, Option<i64>) {
    match work {
        Work::Open => (1, None, None),
        Work::Parked { on, until_ms } => (2, Some(on), until_ms.map(number::to_i64)),
        _ => (0, None, None),
    }
}

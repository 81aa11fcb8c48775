//! Looking after sessions without reading them.

use std::{collections::BTreeSet, sync::Arc};

use adjutant_core::{
    GcReport, JournalError, JournalErrorKind, LogId, LogInfo, LogPage, LogQuery, Seq, SessionMeta,
    Work,
};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params, params_from_iter};

use super::{
    super::{json, number, owners::Owners},
    Fault, own, place,
};

/// The columns that are read of a log.
const COLUMNS: &str = "key, id, created_ms, updated_ms, head, bytes, epoch, instance, title, agent, parent, parent_seq, \
                       (SELECT json_group_array(label) FROM labels WHERE log = key), work, waits, until_ms, aside, owner, due_ms";

/// Returns the information about a log.
pub(super) fn info(db: &Connection, owners: &Owners, log: &LogId) -> Result<LogInfo, Fault> {
    let mut select = db.prepare_cached(&format!("SELECT {COLUMNS} FROM logs WHERE id = ?1"))?;
    let mut rows = select.query([&*log.0])?;
    match rows.next()? {
        Some(row) => read(row, owners),
        None => Err(JournalError::for_log(JournalErrorKind::Missing, log).into()),
    }
}

/// A page of logs.
pub(super) fn list(db: &Connection, owners: &Owners, query: &LogQuery) -> Result<LogPage, Fault> {
    let limit = query.limit.max(1);
    let (sql, values) = select(query, limit);
    let mut select = db.prepare_cached(&sql)?;
    let mut rows = select.query(params_from_iter(values))?;
    let mut logs = Vec::new();
    while let Some(row) = rows.next()? {
        if logs.len() == limit {
            return Ok(LogPage::new(logs, true));
        }
        logs.push(read(row, owners)?);
    }
    Ok(LogPage::new(logs, false))
}

/// Only the conditions that there are, so that an index serves them; with one log more than the page has.
fn select(query: &LogQuery, limit: usize) -> (String, Vec<Box<dyn ToSql>>) {
    let (mut conditions, mut values) = (vec!["1"], Vec::<Box<dyn ToSql>>::new());
    let mut only = |condition, value: Option<Box<dyn ToSql>>| {
        if let Some(value) = value {
            conditions.push(condition);
            values.push(value);
        }
    };
    let text = |text: &Arc<str>| -> Box<dyn ToSql> { Box::new(text.to_string()) };
    let time = |at: &u64| -> Box<dyn ToSql> { Box::new(number::to_i64(*at)) };
    only("agent = ?", query.agent.as_ref().map(text));
    only(
        "key IN (SELECT log FROM labels WHERE label = ?)",
        query.label.as_ref().map(text),
    );
    only(
        "parent = ?",
        query.parent.as_ref().map(|parent| text(&parent.0)),
    );
    only("updated_ms >= ?", query.since_ms.as_ref().map(time));
    only("updated_ms < ?", query.before_ms.as_ref().map(time));
    if let Some(mark) = &query.after {
        only("updated_ms <= ?", Some(time(&mark.updated_ms)));
        only("(updated_ms < ?", Some(time(&mark.updated_ms)));
    }
    let mut sql = format!(
        "SELECT {COLUMNS} FROM logs WHERE {}",
        conditions.join(" AND ")
    );
    if let Some(mark) = &query.after {
        sql.push_str(" OR id > ?)");
        values.push(text(&mark.log.0));
    }
    sql.push_str(" ORDER BY updated_ms DESC, id LIMIT ?");
    values.push(Box::new(number::count(limit).saturating_add(1)));
    (sql, values)
}

fn read(row: &Row<'_>, owners: &Owners) -> Result<LogInfo, Fault> {
    let (key, id, created_ms): (i64, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let (updated_ms, head, bytes, epoch): (i64, i64, i64, i64) =
        (row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?);
    let instance: Option<String> = row.get(7)?;
    let text = |column| {
        row.get::<_, Option<String>>(column)
            .map(|text| text.map(Arc::<str>::from))
    };
    let (parent, shared): (Option<String>, Option<i64>) = (row.get(10)?, row.get(11)?);
    let labels: String = row.get(12)?;
    let mut about = SessionMeta::default();
    (about.title, about.agent) = (text(8)?, text(9)?);
    about.labels = json::read::<BTreeSet<Arc<str>>>(&labels, "the labels of a log")?;
    about.parent =
        parent.map(|parent| (LogId::from(parent), Seq(number::read(shared.unwrap_or(0)))));
    let mut info = LogInfo::new(LogId::from(id), number::read(created_ms));
    info.updated_ms = number::read(updated_ms);
    info.head = Seq(number::read(head));
    info.bytes = number::read(bytes);
    info.is_owned = match instance {
        Some(instance) => owners.is_alive(&instance, (key, epoch))?,
        None => false,
    };
    info.owner = text(17)?.filter(|_| info.is_owned);
    info.work = Some(match (text(16)?, row.get::<_, i64>(13)?) {
        (Some(why), _) => Work::Aside { why },
        (None, 0) => Work::Idle,
        (None, 1) => Work::Open,
        (None, _) => {
            let until_ms = row.get::<_, Option<i64>>(15)?.map(number::read);
            Work::Parked {
                on: text(14)?.unwrap_or_default(),
                until_ms,
            }
        }
    });
    info.due_ms = row.get::<_, Option<i64>>(18)?.map(number::read);
    info.about = about;
    Ok(info)
}

/// Sets the metadata of a log.
pub(super) fn describe(db: &Connection, log: &LogId, about: &SessionMeta) -> Result<(), Fault> {
    let key = place::key(db, log)?
        .ok_or_else(|| JournalError::for_log(JournalErrorKind::Missing, log))?;
    let parent = about
        .parent
        .as_ref()
        .map(|(parent, seq)| (&*parent.0, number::to_i64(seq.0)));
    let sql = "UPDATE logs SET title = ?2, agent = ?3, parent = ?4, parent_seq = ?5 WHERE key = ?1";
    let (of, shared) = parent.unzip();
    db.prepare_cached(sql)?.execute(params![
        key,
        about.title.as_deref(),
        about.agent.as_deref(),
        of,
        shared
    ])?;
    db.prepare_cached("DELETE FROM labels WHERE log = ?1")?
        .execute([key])?;
    let mut insert = db.prepare_cached("INSERT INTO labels(label, log) VALUES (?1, ?2)")?;
    for label in &about.labels {
        insert.execute(params![&**label, key])?;
    }
    Ok(())
}

/// Renames a log.
pub(super) fn rename(
    db: &Connection,
    owners: &Owners,
    from: &LogId,
    to: &LogId,
) -> Result<(), Fault> {
    let key = own::nobodys(db, owners, from)?;
    if place::key(db, to)?.is_some() {
        return Err(JournalError::for_log(JournalErrorKind::Exists, to).into());
    }
    db.prepare_cached("UPDATE logs SET id = ?2 WHERE key = ?1")?
        .execute(params![key, &*to.0])?;
    db.prepare_cached("UPDATE logs SET parent = ?2 WHERE parent = ?1")?
        .execute([&*from.0, &*to.0])?;
    Ok(())
}

/// Deletes a log; its attachments wait for a sweep, for other logs may have them too.
pub(super) fn delete(db: &Connection, owners: &Owners, log: &LogId) -> Result<(), Fault> {
    let key = own::nobodys(db, owners, log)?;
    let (first, last) = (
        place::record_place(key, Seq(0)),
        place::record_place(key, Seq(place::MAX_SEQ)),
    );
    for sql in [
        "DELETE FROM records WHERE place BETWEEN ?1 AND ?2",
        "DELETE FROM attached WHERE place BETWEEN ?1 AND ?2",
    ] {
        db.prepare_cached(sql)?.execute([first, last])?;
    }
    for sql in [
        "DELETE FROM posts WHERE log = ?1",
        "DELETE FROM folded WHERE log = ?1",
        "DELETE FROM labels WHERE log = ?1",
        "DELETE FROM logs WHERE key = ?1",
    ] {
        db.prepare_cached(sql)?.execute([key])?;
    }
    Ok(())
}

/// Removes attachments that no record has.
pub(super) fn sweep(db: &Connection) -> Result<GcReport, Fault> {
    let orphans = "FROM attachments WHERE NOT EXISTS (SELECT 1 FROM attached WHERE digest = attachments.digest)";
    let count = format!("SELECT count(*), coalesce(sum(length(bytes)), 0) {orphans}");
    let (attachments, bytes): (i64, i64) = db
        .query_row(&count, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?
        .unwrap_or_default();
    db.execute(&format!("DELETE {orphans}"), [])?;
    Ok(GcReport {
        attachments: number::read(attachments),
        bytes: number::read(bytes),
    })
}

//! The retention of sessions that runs keep by default.

use std::{
    fs::{self, OpenOptions},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use adjutant::{
    agent::{JournalError, LogQuery},
    llm::private,
};

use crate::store::Store;

/// The label of a session that a run kept by default.
pub(crate) const LABEL: &str = "auto";
/// The maximum age of such a session since its last change.
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 3_600);
/// The maximum size of all such sessions in bytes.
const MAX_BYTES: u64 = 1 << 30;
/// The interval between two checks.
const CHECK_EVERY: Duration = Duration::from_secs(24 * 3_600);
/// The number of sessions in a page.
const PAGE: usize = 1_000;

/// Deletes old sessions that runs kept by default, once a day. A session that waits for an answer stays.
///
/// # Errors
/// The first error of the store.
pub(crate) async fn prune(store: &Store) -> Result<(), JournalError> {
    let Some(mark) = store.pruned() else {
        return Ok(());
    };
    let now = SystemTime::now();
    let checked = fs::metadata(&mark).and_then(|found| found.modified());
    if checked.is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age < CHECK_EVERY)) {
        return Ok(());
    }
    // Without the mark, the next run checks again.
    let options = &mut OpenOptions::new();
    let marked = private::file(options.write(true).create(true).truncate(true)).open(&mark);
    drop(marked.and_then(|file| file.set_modified(now)));
    let oldest = now
        .checked_sub(MAX_AGE)
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let oldest = oldest.map_or(0, |at| u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
    delete_before(store, oldest, MAX_BYTES).await
}

/// Deletes sessions that changed before this time, and the oldest ones beyond this number of bytes.
async fn delete_before(store: &Store, oldest: u64, most: u64) -> Result<(), JournalError> {
    let sessions = store.sessions();
    let mut query = LogQuery::default();
    (query.limit, query.label) = (PAGE, Some(LABEL.into()));
    let (mut bytes, mut old) = (0_u64, Vec::new());
    loop {
        let page = sessions.list(&query).await?;
        for info in page.logs {
            bytes = bytes.saturating_add(info.bytes);
            if info.updated_ms < oldest || bytes > most {
                old.push(info);
            }
        }
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    for info in old {
        let waits = sessions
            .open_run(&info)
            .await?
            .is_some_and(|run| !run.pauses.is_empty());
        if !waits && !info.is_owned {
            sessions.delete(&info.log).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use adjutant::agent::{LogId, SessionMeta};

    use super::*;

    #[tokio::test]
    async fn only_old_sessions_that_were_kept_by_default_are_deleted() {
        let store = Store::in_memory();
        let sessions = store.sessions();
        for (name, label) in [
            ("named", None),
            ("auto-1", Some(LABEL)),
            ("auto-2", Some(LABEL)),
        ] {
            let about = SessionMeta {
                labels: label.into_iter().map(Into::into).collect(),
                ..SessionMeta::default()
            };
            sessions
                .create(&LogId::from(name), about)
                .await
                .expect("it is new");
        }
        let names = async || {
            let page = sessions
                .list(&LogQuery::default())
                .await
                .expect("it is read");
            page.logs.len()
        };
        delete_before(&store, 0, u64::MAX)
            .await
            .expect("it is checked");
        assert_eq!(names().await, 3);
        delete_before(&store, u64::MAX, u64::MAX)
            .await
            .expect("it is checked");
        assert_eq!(names().await, 1);
    }
}

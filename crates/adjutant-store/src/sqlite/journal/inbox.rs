//! The posts of others to sessions.

use std::{collections::VecDeque, sync::Arc};

use adjutant_core::{JournalError, JournalErrorKind, LogId, PostNo, PostStream, Posted};
use futures_util::stream;
use rusqlite::{Connection, OptionalExtension, params};

use super::{
    super::{
        changes::{Listener, POLL, Topic},
        json, number,
        owners::Tenure,
        store::Store,
    },
    Fault, append, place,
};

/// The largest number of posts that may wait in one log.
const MAX_POSTS: i64 = 10_000;
/// The largest number of posts that are read at once.
const PAGE: i64 = 100;

/// Adds a post.
pub(super) fn post(db: &Connection, log: &LogId, json: &str) -> Result<PostNo, Fault> {
    let sql =
        "UPDATE logs SET newest_post = newest_post + 1 WHERE id = ?1 RETURNING key, newest_post";
    let numbered = db
        .prepare_cached(sql)?
        .query_row([&*log.0], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (key, no): (i64, i64) =
        numbered.ok_or_else(|| JournalError::for_log(JournalErrorKind::Missing, log))?;
    // Posts are only removed from the front, so the waiting ones need not be counted.
    let mut oldest = db.prepare_cached("SELECT coalesce(min(no), ?2) FROM posts WHERE log = ?1")?;
    let oldest: i64 = oldest.query_row([key, no], |row| row.get(0))?;
    if no - oldest >= MAX_POSTS {
        let message = format!("log {:?} takes no more posts: {MAX_POSTS} wait", log.0);
        return Err(JournalError::new(JournalErrorKind::Invalid, message).into());
    }
    db.prepare_cached("INSERT INTO posts(log, no, json) VALUES (?1, ?2, ?3)")?
        .execute(params![key, no, json])?;
    Ok(PostNo(number::read(no)))
}

/// Removes posts that are in the log.
pub(super) fn consume_posts(
    db: &Connection,
    log: &LogId,
    tenure: Tenure,
    upto: PostNo,
) -> Result<(), Fault> {
    append::check(db, log, tenure)?;
    // In a copied log, posts to the original may already be processed.
    let number = "UPDATE logs SET newest_post = max(newest_post, ?2), heeded = max(heeded, ?2) WHERE key = ?1";
    db.prepare_cached(number)?
        .execute([tenure.0, number::to_i64(upto.0)])?;
    let mut delete = db.prepare_cached("DELETE FROM posts WHERE log = ?1 AND no <= ?2")?;
    delete.execute([tenure.0, number::to_i64(upto.0)])?;
    Ok(())
}

/// A log's inbox with a read position.
struct InboxReader {
    store: Arc<Store>,
    log: LogId,
    after: PostNo,
    waiting: VecDeque<Posted>,
    listener: Listener,
    /// True if the last look failed, so that the next one is not at once.
    is_failing: bool,
}

/// The posts after a place, as they come.
pub(super) fn stream(store: Arc<Store>, log: LogId, after: PostNo) -> PostStream {
    let listener = store.changes.listen(Topic::Posts);
    let inbox = InboxReader {
        store,
        log,
        after,
        waiting: VecDeque::new(),
        listener,
        is_failing: false,
    };
    Box::pin(stream::unfold(inbox, |mut inbox| async move {
        Some((inbox.next().await, inbox))
    }))
}

impl InboxReader {
    async fn next(&mut self) -> Result<Posted, JournalError> {
        loop {
            if let Some(posted) = self.waiting.pop_front() {
                self.after = posted.no;
                return Ok(posted);
            }
            if std::mem::take(&mut self.is_failing) {
                tokio::time::sleep(POLL).await;
            }
            self.listener.looks();
            let (log, after) = (self.log.clone(), self.after);
            match self.store.read(move |db| page(db, &log, after, PAGE)).await {
                Ok(posts) if posts.is_empty() => self.listener.wait_for_change().await,
                Ok(posts) => self.waiting = posts.into(),
                Err(fault) => {
                    self.is_failing = true;
                    return Err(
                        fault.journal(|| format!("cannot read the posts of log {:?}", self.log.0))
                    );
                }
            }
        }
    }
}

/// The posts after a place that are there now.
pub(super) fn read_posts(
    db: &Connection,
    log: &LogId,
    after: PostNo,
) -> Result<Vec<Posted>, Fault> {
    place::key(db, log)?.ok_or_else(|| JournalError::for_log(JournalErrorKind::Missing, log))?;
    page(db, log, after, MAX_POSTS)
}

fn page(db: &Connection, log: &LogId, after: PostNo, limit: i64) -> Result<Vec<Posted>, Fault> {
    let sql = "SELECT no, json FROM posts WHERE log = (SELECT key FROM logs WHERE id = ?1) AND no > ?2 \
               ORDER BY no LIMIT ?3";
    let mut select = db.prepare_cached(sql)?;
    let mut rows = select.query(params![&*log.0, number::to_i64(after.0), limit])?;
    let mut posts = Vec::new();
    while let Some(row) = rows.next()? {
        let (no, post): (i64, String) = (row.get(0)?, row.get(1)?);
        posts.push(Posted {
            no: PostNo(number::read(no)),
            post: json::read(&post, "a post")?,
        });
    }
    Ok(posts)
}

//! The posts to a log, as they come from any process.

use std::{collections::VecDeque, sync::Arc};

use adjutant_core::{JournalError, JournalErrorKind, LogId, Post, PostNo, PostStream, Posted};
use futures_util::stream;
use tokio_postgres::Row;

use super::lease::is_owned;
use crate::postgres::{
    database::Database,
    fault::Fault,
    json,
    row::{read_u64, to_i64},
    wake::{self, Waiter},
};

/// The largest number of posts that may wait in one log.
const MAX_POSTS: i64 = 10_000;

/// The most bytes that a post may have.
const MAX_POST: usize = 8 * 1024 * 1024;

/// The largest number of posts that are fetched at once.
const PAGE: i64 = 100;

const POST: &str = concat!(
    "with head as ( \
        update logs set posted = posted + 1 where name = $1 and posted - heeded < $3 returning id, posted, ",
    is_owned!(),
    " as owned \
    ), kept as (insert into posts (log, no, post) select id, posted, $2 from head) \
    select posted, pg_notify($4, $5), case when not owned then pg_notify($4, $6) end from head"
);

const POSTS: &str = "select no, post from posts join logs on logs.id = posts.log \
    where logs.name = $1 and no > $2 order by no limit $3";

const EXISTS: &str = "select 1 from logs where name = $1";

/// Puts a post into the inbox of a log.
pub(super) async fn post(
    database: &Database,
    log: &LogId,
    post: &Post,
) -> Result<PostNo, JournalError> {
    let bytes = json::bytes(post).filter(|bytes| bytes.len() <= MAX_POST);
    let large = || {
        format!(
            "a post to log {:?} is nested too deeply, or larger than {MAX_POST} bytes",
            log.0
        )
    };
    let bytes = bytes.ok_or_else(|| JournalError::new(JournalErrorKind::Invalid, large()))?;
    let failed = |fault: Fault| fault.journal(format_args!("post to log {:?}", log.0));
    let name = log.0.as_bytes();
    let (channel, topic) = (database.channel(), wake::posts(&log.0));
    let row = database
        .row(
            POST,
            &[&name, &bytes, &MAX_POSTS, &channel, &topic, &wake::DUE],
        )
        .await
        .map_err(failed)?;
    if let Some(row) = row {
        return read_u64(&row, 0).map(PostNo).map_err(failed);
    }
    let exists = database.row(EXISTS, &[&name]).await.map_err(failed)?;
    if exists.is_none() {
        return Err(JournalError::for_log(JournalErrorKind::Missing, log));
    }
    let message = format!("log {:?} takes no more posts: {MAX_POSTS} wait", log.0);
    Err(JournalError::new(JournalErrorKind::Invalid, message))
}

/// The posts after a place; those to a log that is not there yet come when it is.
pub(super) fn posts(database: &Arc<Database>, log: &LogId, after: PostNo) -> PostStream {
    let inbox = PostReader {
        database: Arc::clone(database),
        log: log.clone(),
        after,
        page: VecDeque::new(),
        waiter: None,
    };
    Box::pin(stream::unfold(inbox, async |mut inbox| {
        Some((inbox.next().await, inbox))
    }))
}

/// The posts after a place that are there now.
pub(super) async fn read_posts(
    database: &Database,
    log: &LogId,
    after: PostNo,
) -> Result<Vec<Posted>, JournalError> {
    let failed = |fault: Fault| fault.journal(format_args!("look for posts to log {:?}", log.0));
    let name = log.0.as_bytes();
    let rows = database
        .rows(POSTS, &[&name, &to_i64(after.0), &MAX_POSTS])
        .await
        .map_err(failed)?;
    if rows.is_empty()
        && database
            .row(EXISTS, &[&name])
            .await
            .map_err(failed)?
            .is_none()
    {
        return Err(JournalError::for_log(JournalErrorKind::Missing, log));
    }
    rows.iter()
        .map(|row| number(log, row).and_then(|no| read(log, no, row)))
        .collect()
}

/// The progress of reading the posts.
struct PostReader {
    database: Arc<Database>,
    log: LogId,
    after: PostNo,
    page: VecDeque<Row>,
    /// There once it has looked.
    waiter: Option<Waiter>,
}

impl PostReader {
    async fn next(&mut self) -> Result<Posted, JournalError> {
        loop {
            if let Some(row) = self.page.pop_front() {
                return self.read_post(&row);
            }
            match self.look().await {
                Ok(()) => {}
                Err(fault) => {
                    return Err(
                        fault.journal(format_args!("look for posts to log {:?}", self.log.0))
                    );
                }
            }
        }
    }

    /// Fetches the next posts; waits first if there were none when it looked last, or it could not look.
    async fn look(&mut self) -> Result<(), Fault> {
        let waiter = match &mut self.waiter {
            Some(waiter) => {
                waiter.wait().await;
                waiter
            }
            waiter => waiter.insert(Waiter::new(
                Arc::clone(&self.database),
                wake::posts(&self.log.0),
            )),
        };
        waiter.looks();
        let (log, after) = (self.log.clone(), to_i64(self.after.0));
        let look = async move |database: Arc<Database>| {
            database
                .rows(POSTS, &[&log.0.as_bytes() as _, &after as _, &PAGE as _])
                .await
        };
        let rows = self.database.apart(look).await?;
        if rows.len() as i64 == PAGE {
            // There may be more of them.
            self.waiter = None;
        }
        self.page = rows.into();
        Ok(())
    }

    fn read_post(&mut self, row: &Row) -> Result<Posted, JournalError> {
        let no = number(&self.log, row)?;
        // A post that cannot be read is reported once.
        self.after = no;
        read(&self.log, no, row)
    }
}

fn number(log: &LogId, row: &Row) -> Result<PostNo, JournalError> {
    read_u64(row, 0)
        .map(PostNo)
        .map_err(|fault| unread(log, fault))
}

fn read(log: &LogId, no: PostNo, row: &Row) -> Result<Posted, JournalError> {
    let bytes: &[u8] = row
        .try_get(1)
        .map_err(|error| unread(log, Fault::from(error)))?;
    let post = serde_json::from_slice(bytes).map_err(|error| {
        let message = format!("post {no} to log {:?} cannot be read", log.0);
        JournalError::new(JournalErrorKind::Corrupt, message).with_source(error)
    })?;
    Ok(Posted { no, post })
}

fn unread(log: &LogId, fault: Fault) -> JournalError {
    fault.journal(format_args!("read a post to log {:?}", log.0))
}

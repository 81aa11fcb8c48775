//! The inbox of a log: a file that others append to, and that the owner shortens.
//!
//! Shape: `{"upto":7}` in the first line, the post that was forgotten last; then a post in each line.

use std::{
    collections::VecDeque,
    fs::OpenOptions,
    io::Write,
    time::{Duration, SystemTime},
};

use adjutant_core::{
    JournalError, JournalErrorKind, LogId, Post, PostNo, PostStream, Posted,
    json::{MAX_DEPTH, depth},
};
use futures_util::stream;
use serde::{Deserialize, Serialize};

use super::{
    off_thread,
    place::{JournalFolder, LogFolder, contents, io_error, replace, sync_folder},
};

/// The largest number of posts that may wait in one log.
const MAX_POSTS: usize = 10_000;
/// The time between two looks of a waiter for a post.
const EVERY: Duration = Duration::from_millis(250);

#[derive(Debug, Default, Serialize, Deserialize)]
struct InboxHeader {
    upto: PostNo,
}

/// The contents of an inbox.
#[derive(Debug, Default)]
struct InboxFile {
    upto: PostNo,
    posts: Vec<Posted>,
    /// The length of the file up to the last whole line.
    length: u64,
}

impl InboxFile {
    fn read(log: &LogFolder) -> Result<Self, JournalError> {
        let Some(text) = contents(&log.file("posts.jsonl"))? else {
            return Ok(Self::default());
        };
        let corrupt = |error| {
            let message = format!("the inbox of log {:?} is not what was written", log.log.0);
            JournalError::new(JournalErrorKind::Corrupt, message).with_source(error)
        };
        let mut lines = text
            .split_inclusive(|byte| *byte == b'\n')
            .filter(|line| line.ends_with(b"\n"));
        let Some(first) = lines.next() else {
            return Ok(Self::default());
        };
        let InboxHeader { upto } = serde_json::from_slice(first).map_err(corrupt)?;
        let mut inbox = Self {
            upto,
            posts: Vec::new(),
            length: first.len() as u64,
        };
        for line in lines {
            inbox
                .posts
                .push(serde_json::from_slice(line).map_err(corrupt)?);
            inbox.length += line.len() as u64;
        }
        Ok(inbox)
    }

    fn newest(&self) -> PostNo {
        self.posts.last().map_or(self.upto, |posted| posted.no)
    }
}

/// Puts a post into the inbox of a log; it survives a crash of the machine.
pub(super) fn post(place: &JournalFolder, log: &LogId, post: Post) -> Result<PostNo, JournalError> {
    let log = place.log(log);
    let _locked = log.lock()?;
    log.ensure_exists()?;
    let inbox = InboxFile::read(&log)?;
    if inbox.posts.len() >= MAX_POSTS {
        let message = format!("log {:?} takes no more posts: {MAX_POSTS} wait", log.log.0);
        return Err(JournalError::new(JournalErrorKind::Invalid, message));
    }
    let posted = Posted {
        no: PostNo(inbox.newest().0 + 1),
        post,
    };
    let path = log.file("posts.jsonl");
    if inbox.length == 0 {
        replace(&path, &lines(inbox.upto, [&posted])?)?;
        sync_folder(&log.folder)?;
        return Ok(posted.no);
    }
    let text = line(&posted)?;
    let written = OpenOptions::new()
        .append(true)
        .open(&path)
        .and_then(|mut file| {
            // A crash may have left the beginning of a line.
            file.set_len(inbox.length)?;
            file.write_all(&text)
                .inspect_err(|_| drop(file.set_len(inbox.length)))?;
            file.sync_data()
        });
    written.map_err(|error| io_error("write", &path, error))?;
    Ok(posted.no)
}

/// Forgets the posts up to this one; under the lock of the log.
pub(super) fn forget(log: &LogFolder, upto: PostNo) -> Result<(), JournalError> {
    let inbox = InboxFile::read(log)?;
    // Also without a post: in a copied log, posts to the original may already be processed.
    if upto <= inbox.upto {
        return Ok(());
    }
    let left = inbox.posts.iter().filter(|posted| posted.no > upto);
    replace(&log.file("posts.jsonl"), &lines(upto, left)?)?;
    if inbox.length == 0 {
        sync_folder(&log.folder)
    } else {
        Ok(())
    }
}

/// The posts after a place that are there now.
pub(super) fn read_posts(
    place: &JournalFolder,
    log: &LogId,
    after: PostNo,
) -> Result<Vec<Posted>, JournalError> {
    let log = place.log(log);
    log.ensure_exists()?;
    let mut posts = InboxFile::read(&log)?.posts;
    posts.retain(|posted| posted.no > after);
    Ok(posts)
}

fn line(value: &impl Serialize) -> Result<Vec<u8>, JournalError> {
    let mut line = serde_json::to_vec(value).map_err(|error| {
        JournalError::new(
            JournalErrorKind::Invalid,
            "a post cannot be written as JSON",
        )
        .with_source(error)
    })?;
    if depth(&line) > MAX_DEPTH {
        let message = format!("a post is nested deeper than {MAX_DEPTH} levels");
        return Err(JournalError::new(JournalErrorKind::Invalid, message));
    }
    line.push(b'\n');
    Ok(line)
}

fn lines<'a>(
    upto: PostNo,
    posts: impl IntoIterator<Item = &'a Posted>,
) -> Result<Vec<u8>, JournalError> {
    let mut text = line(&InboxHeader { upto })?;
    for posted in posts {
        text.extend(line(posted)?);
    }
    Ok(text)
}

/// A waiter for posts.
struct PostWaiter {
    place: JournalFolder,
    log: LogId,
    after: PostNo,
    ready: VecDeque<Posted>,
    /// The file when it was read last: how long it was, and when it changed.
    seen: Option<(u64, SystemTime)>,
    is_first: bool,
}

/// The posts after a place, as they come.
pub(super) fn watch(place: JournalFolder, log: LogId, after: PostNo) -> PostStream {
    let waiting = PostWaiter {
        place,
        log,
        after,
        ready: VecDeque::new(),
        seen: None,
        is_first: true,
    };
    Box::pin(stream::unfold(waiting, |mut waiting| async move {
        loop {
            if let Some(posted) = waiting.ready.pop_front() {
                waiting.after = posted.no;
                return Some((Ok(posted), waiting));
            }
            if !std::mem::take(&mut waiting.is_first) {
                tokio::time::sleep(EVERY).await;
            }
            let (place, log, seen, after) = (
                waiting.place.clone(),
                waiting.log.clone(),
                waiting.seen,
                waiting.after,
            );
            match off_thread(move || look(&place.log(&log), seen, after)).await {
                Ok(None) => {}
                Ok(Some((seen, posts))) => (waiting.seen, waiting.ready) = (Some(seen), posts),
                Err(error) => return Some((Err(error), waiting)),
            }
        }
    }))
}

type FileStamp = (u64, SystemTime);

/// The posts after a position, if the file has changed.
fn look(
    log: &LogFolder,
    seen: Option<FileStamp>,
    after: PostNo,
) -> Result<Option<(FileStamp, VecDeque<Posted>)>, JournalError> {
    // Before it is read: later writes are seen the next time.
    let Ok(file) = std::fs::metadata(log.file("posts.jsonl")) else {
        return Ok(None);
    };
    let now = (
        file.len(),
        file.modified().unwrap_or(SystemTime::UNIX_EPOCH),
    );
    if seen == Some(now) {
        return Ok(None);
    }
    let posts = InboxFile::read(log)?
        .posts
        .into_iter()
        .filter(|posted| posted.no > after);
    Ok(Some((now, posts.collect())))
}

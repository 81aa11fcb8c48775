//! The messages that other processes send to a session; the owner of its log receives them.

use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
};

use adjutant_llm::{Entry, ThreadId};
use adjutant_tool::Answer;
use futures_core::Stream;
use serde::{Deserialize, Serialize};

use super::JournalError;
use crate::{digest::Digest, number::PostNo, pause::PauseId, record::Lane};

/// A message to a session, from anywhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "post", rename_all = "snake_case")]
pub enum Post {
    /// A message for the queue.
    Message {
        /// The queue.
        lane: Lane,
        /// The message.
        content: Entry,
    },
    /// The answer to a pause.
    Answer {
        /// The pause.
        pause: PauseId,
        /// The answer.
        answer: Answer,
        /// The digest of the displayed pause: an answer to a different one is ignored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<Digest>,
    },
    /// A request to cancel the open run.
    Cancel,
    /// A message or a request to cancel, for a sub-agent; ignored with a warning if the agent is not running.
    To {
        /// Its thread.
        thread: ThreadId,
        /// The message, or the request to cancel.
        said: Box<Post>,
    },
}

/// A post in the inbox of a log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Posted {
    /// Its number; grows with every post to the log.
    pub no: PostNo,
    /// The message.
    pub post: Post,
}

/// The posts to a log, oldest first, as they arrive; it never ends without an error.
pub type PostStream = Pin<Box<dyn Stream<Item = Result<Posted, JournalError>> + Send>>;

/// The largest number of posts in one read.
const MAX_AT_ONCE: usize = 10_000;

/// Returns the posts that a stream gives without waiting.
pub(super) fn at_once(mut posts: PostStream) -> Result<Vec<Posted>, JournalError> {
    let mut found = Vec::new();
    let mut cx = Context::from_waker(Waker::noop());
    while let Poll::Ready(Some(posted)) = posts.as_mut().poll_next(&mut cx) {
        found.push(posted?);
        if found.len() >= MAX_AT_ONCE {
            break;
        }
    }
    Ok(found)
}

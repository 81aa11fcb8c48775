//! The messages that others send to a session from another process: the owner of its log hears them.

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
        /// The digest of the pause that whoever answers has seen: an answer to another one is passed over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<Digest>,
    },
    /// A wish to stop the run that is open.
    Cancel,
    /// A message or a wish to stop for an agent under the first one; passed over, with a warning, if it is not at work.
    To {
        /// Its thread.
        thread: ThreadId,
        /// What is said: a message, or a wish to stop.
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

/// The posts to a log, oldest first, as they come; it never ends by itself.
pub type PostStream = Pin<Box<dyn Stream<Item = Result<Posted, JournalError>> + Send>>;

/// The largest number of posts that are taken at once.
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

//! The common interface of engines that drive sessions, for programs that send messages to one.

use std::fmt;

use async_trait::async_trait;

use super::{DueWork, JournalError, JournalErrorKind, LogId, Owner, Post};

/// An engine that drives sessions, from the view of a sender: workers on a journal, or a server next to it.
///
/// Every journal that knows its due logs is one: workers look for them.
#[async_trait]
pub trait Waker: Send + Sync + fmt::Debug {
    /// Posts a message to a session, which is created if it does not exist, and has it driven.
    ///
    /// # Errors
    /// `Invalid` if the name is not valid or too many posts are pending, `Unsupported`, `Io`: the post may have been
    /// stored anyway.
    async fn say(&self, log: &LogId, post: Post) -> Result<(), JournalError>;

    /// Has a session driven at a time, in milliseconds since 1970-01-01 UTC; at once if that has passed.
    ///
    /// A session without work at that time stays unchanged.
    ///
    /// # Errors
    /// `Missing` if that is known by then, `Io`.
    async fn wake(&self, log: &LogId, at_ms: u64) -> Result<(), JournalError>;
}

#[async_trait]
impl<J: DueWork + ?Sized> Waker for J {
    async fn say(&self, log: &LogId, post: Post) -> Result<(), JournalError> {
        match self.post(log, post.clone()).await {
            Err(error) if error.kind == JournalErrorKind::Missing => {
                // Another process may create it at the same time; it exists then as well.
                match self.own(log, &Owner::default()).await {
                    Err(error) if error.kind != JournalErrorKind::Owned => return Err(error),
                    made => drop(made),
                }
                self.post(log, post).await.map(drop)
            }
            posted => posted.map(drop),
        }
    }

    /// Workers know by themselves when a session has something to do.
    async fn wake(&self, log: &LogId, _at_ms: u64) -> Result<(), JournalError> {
        self.info(log).await.map(drop)
    }
}

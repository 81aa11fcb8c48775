//! A journal that is shared is one.

use std::sync::Arc;

use async_trait::async_trait;

use super::{
    Backlog, DueLog, DueWork, Folded, GcReport, Journal, JournalError, Log, LogId, LogInfo,
    LogPage, LogQuery, Owner, Post, PostNo, PostStream, Posted, RecordStream, SessionMeta,
    StoredStream,
};
use crate::number::Seq;

#[async_trait]
impl<J: Journal + ?Sized> Journal for Arc<J> {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        (**self).own(log, owner).await
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        (**self).read(log, after)
    }

    fn read_stored(&self, log: &LogId, after: Seq) -> StoredStream {
        (**self).read_stored(log, after)
    }

    async fn post(&self, log: &LogId, post: Post) -> Result<PostNo, JournalError> {
        (**self).post(log, post).await
    }

    fn posts(&self, log: &LogId, after: PostNo) -> Option<PostStream> {
        (**self).posts(log, after)
    }

    async fn read_posts(&self, log: &LogId, after: PostNo) -> Result<Vec<Posted>, JournalError> {
        (**self).read_posts(log, after).await
    }

    async fn info(&self, log: &LogId) -> Result<LogInfo, JournalError> {
        (**self).info(log).await
    }

    async fn list(&self, query: &LogQuery) -> Result<LogPage, JournalError> {
        (**self).list(query).await
    }

    async fn describe(&self, log: &LogId, about: SessionMeta) -> Result<(), JournalError> {
        (**self).describe(log, about).await
    }

    async fn rename(&self, from: &LogId, to: &LogId) -> Result<(), JournalError> {
        (**self).rename(from, to).await
    }

    async fn delete(&self, log: &LogId) -> Result<(), JournalError> {
        (**self).delete(log).await
    }

    async fn sweep(&self) -> Result<GcReport, JournalError> {
        (**self).sweep().await
    }

    async fn load_fold(&self, log: &LogId) -> Result<Option<Folded>, JournalError> {
        (**self).load_fold(log).await
    }
}

#[async_trait]
impl<J: DueWork + ?Sized> DueWork for Arc<J> {
    async fn due(&self, owner: &Owner, most: usize) -> Result<Vec<DueLog>, JournalError> {
        (**self).due(owner, most).await
    }

    async fn until_due(&self) {
        (**self).until_due().await;
    }

    async fn pass_over(&self, log: &LogId, upto: PostNo) -> Result<(), JournalError> {
        (**self).pass_over(log, upto).await
    }

    async fn set_aside(&self, log: &LogId, why: &str) -> Result<(), JournalError> {
        (**self).set_aside(log, why).await
    }

    async fn retry(&self, log: &LogId) -> Result<bool, JournalError> {
        (**self).retry(log).await
    }

    async fn backlog(&self) -> Result<Backlog, JournalError> {
        (**self).backlog().await
    }
}

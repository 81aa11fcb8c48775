//! Names that instances had in a session before this program: looked up once in its log, so that none is given twice.

use adjutant_agent::{
    DriveContext, DriveStart, Failure, JournalError, Middleware, NextDrive, Record, RunResult,
};
use adjutant_llm::ThreadId;
use async_trait::async_trait;
use futures_util::StreamExt;

use crate::Registry;

/// Looks up the names of a session before its first drive in this program.
pub(super) struct KnownNames(pub(super) Registry);

#[async_trait]
impl Middleware for KnownNames {
    fn name(&self) -> &str {
        "delegation"
    }

    async fn on_start(&self, cx: &DriveStart) {
        // One look is for all agents of the session.
        let is_new = self.0.is_new(&cx.log, &ThreadId::from(""));
        let is_empty = cx.who.depth == 0 && cx.run.0 <= 1 && !cx.resumes;
        if is_new
            && !is_empty
            && let Err(error) = self.read(cx).await
        {
            tracing::warn!(
                "names that agents of {} had before may be given again: {error}",
                cx.log
            );
        }
    }

    async fn drive(&self, cx: DriveContext, next: NextDrive<'_>) -> Result<RunResult, Failure> {
        next.run(cx).await
    }
}

impl KnownNames {
    async fn read(&self, cx: &DriveStart) -> Result<(), JournalError> {
        let mut records = cx.records();
        while let Some(stamped) = records.next().await {
            if let Record::ChildOpened { who, .. } = &stamped?.record {
                self.0.was_there(&who.name);
            }
        }
        Ok(())
    }
}

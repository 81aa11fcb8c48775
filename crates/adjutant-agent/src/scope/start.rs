//! The start of a drive: what an earlier one left can be found and gone on with, before anything else happens.

use std::{fmt, sync::Arc};

use adjutant_core::{Error, Lane, LogId, RecordStream, RunNo};
use adjutant_llm::{ThreadId, UserMessage};
use adjutant_tool::Identity;

use super::{
    CallScope, Spawn,
    call::opener,
    line::{HasLine, RunLine},
};
use crate::queue::{Manner, Queued};

/// The start of a drive, as [`Middleware::begun`](crate::Middleware::begun) sees it.
#[non_exhaustive]
pub struct DriveStart {
    /// The agent.
    pub who: Arc<Identity>,
    /// The log of its session.
    pub log: LogId,
    /// The run.
    pub run: RunNo,
    /// True if the run was begun by an earlier drive.
    pub resumes: bool,
    /// Opens agents that were kept; they belong to the run.
    pub spawn: Arc<dyn Spawn>,
    scope: Arc<CallScope>,
}

impl DriveStart {
    pub(crate) fn new(scope: Arc<CallScope>, resumes: bool) -> Self {
        let (who, log) = (Arc::clone(&scope.feed.setup.who), scope.writer.name().clone());
        let spawn = Arc::clone(&scope) as Arc<dyn Spawn>;
        Self { who, log, run: scope.place.run, resumes, spawn, scope }
    }

    /// Reads the log from its beginning; what this drive has recorded may be missing.
    pub fn records(&self) -> RecordStream {
        self.scope.writer.records()
    }

    /// True if the log holds more answers of an agent that the open run keeps than so many.
    pub fn is_answered(&self, kept: &ThreadId, heard: usize) -> bool {
        self.scope.writer.threads().answers(kept) > heard
    }

    /// The line of the call that kept an agent, to the run as it goes on.
    pub fn line(&self, kept: &ThreadId) -> RunLine {
        let mut line = self.scope.line();
        line.call = opener(kept, &self.who.thread).map_or(line.call, |(call, _)| call);
        line
    }

    /// Tells the agent something before its next request, also if that is prepared already.
    ///
    /// # Errors
    /// Like [`AgentQueue::steer`](crate::AgentQueue::steer).
    pub fn tell(&self, message: impl Into<UserMessage>) -> Result<Queued, Error> {
        self.scope.feed.queues().push(Lane::Steering, message.into().into(), Manner::Interrupts)
    }
}

impl fmt::Debug for DriveStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriveStart").field("who", &self.who.path).field("run", &self.run).finish_non_exhaustive()
    }
}

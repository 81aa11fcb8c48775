//! The start of a drive: finds and continues the remains of an earlier one, before anything else happens.

use std::sync::Arc;

use adjutant_core::{Error, Lane, RecordStream};
use adjutant_llm::{ThreadId, UserMessage};

use super::{
    CallScope, Spawn,
    call::opener,
    line::{HasLine, RunLine},
};
use crate::{
    middleware::DriveStart,
    queue::{Manner, Queued},
};

/// Starts a drive with the scope of the code that continues earlier agents.
pub(crate) fn start(scope: Arc<CallScope>, (resumes, is_reopened): (bool, bool)) -> DriveStart {
    let (who, log) = (
        Arc::clone(&scope.feed.setup.who),
        scope.writer.name().clone(),
    );
    DriveStart {
        who,
        log,
        run: scope.place.run,
        resumes,
        is_reopened,
        scope,
    }
}

impl DriveStart {
    /// Opens agents that were kept; they belong to the run.
    pub fn spawn(&self) -> Arc<dyn Spawn> {
        self.scope()
    }

    /// Reads the log from its beginning; what this drive has recorded may be missing.
    pub fn records(&self) -> RecordStream {
        self.scope().writer.records()
    }

    /// True if the log contains more than `heard` answers of an agent that the open run keeps.
    pub fn is_answered(&self, kept: &ThreadId, heard: usize) -> bool {
        self.scope().writer.threads().answers(kept) > heard
    }

    /// Returns the line of the call that kept an agent, to the current run.
    pub fn line(&self, kept: &ThreadId) -> RunLine {
        let mut line = self.scope().line();
        line.call = opener(kept, &self.who.thread).map_or(line.call, |(call, _)| call);
        line
    }

    /// Sends the agent a message before its next request, also if that is already prepared.
    ///
    /// # Errors
    /// Like [`AgentQueue::steer`](crate::AgentQueue::steer).
    pub fn tell(&self, message: impl Into<UserMessage>) -> Result<Queued, Error> {
        self.scope()
            .feed
            .queues()
            .push(Lane::Steering, message.into().into(), Manner::Interrupts)
    }

    fn scope(&self) -> Arc<CallScope> {
        Arc::downcast(Arc::clone(&self.scope)).expect("a drive starts with the scope of a call")
    }
}

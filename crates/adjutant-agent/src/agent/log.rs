//! The part of a session's log that was read.

mod explain;
mod preview;
mod watch;

use std::sync::Arc;

use adjutant_core::{Error, Limits, Pause};
use adjutant_llm::{Entry, Transcript};

use super::Agent;
use crate::{
    begin::Begin,
    session::{self, Start},
};

/// A view of the log of an agent's session: its timeline, its events, and its next steps.
#[derive(Debug, Clone, Copy)]
pub struct AgentLog<'a> {
    pub(super) agent: &'a Agent,
}

impl Agent {
    /// Returns the log of the session: its timeline, its events, and its next steps.
    pub fn log(&self) -> AgentLog<'_> {
        AgentLog { agent: self }
    }
}

impl AgentLog<'_> {
    /// Takes over the log of the session and reads it, so that its transcript and its pauses are known; runs nothing.
    ///
    /// # Errors
    /// `Busy` if the session is running, `Journal` if the log could not be read.
    pub async fn open(self) -> Result<(), Error> {
        let claim = self.agent.session.claim()?;
        let begin = Begin::resume(Vec::new());
        session::look(self.start(begin), claim).await
    }

    /// Ends a run that a crash has cut off: its turn is closed, and it was cancelled by the crash. Nothing else is run.
    ///
    /// A run that waits for answers stays waiting. A new run closes the session first in the same way.
    ///
    /// # Errors
    /// `Busy` if the session is running, `Journal` if the log could not be used.
    pub async fn close(self) -> Result<(), Error> {
        let claim = self.agent.session.claim()?;
        let begin = Begin::run(Vec::new(), Limits::clone(&self.agent.limits));
        session::look(self.start(begin), claim).await
    }

    /// Returns the complete conversation of the session, as of the last run that ended.
    pub fn transcript(self) -> Transcript {
        self.agent.session.history()
    }

    /// Returns the pauses of the session, as of the last drive that ended here, in order of their creation.
    ///
    /// For a session that was started elsewhere, call [`open`](AgentLog::open) first.
    pub fn pauses(self) -> Vec<Arc<Pause>> {
        self.agent.session.pauses()
    }

    /// True if a run of the session has not ended: it is running, waits for answers, or was cut off by a crash.
    ///
    /// For a session that was started elsewhere, call [`open`](AgentLog::open) first.
    pub fn has_open_run(self) -> bool {
        self.agent.session.has_open_run()
    }

    /// Adds entries to the conversation, without a request to a model.
    ///
    /// Cancel: the entries are in the log or not.
    ///
    /// # Errors
    /// `Busy` if the session is running, `Paused` if a run waits for answers, `Prompt` if one is a summary, `Journal` if
    /// the log could not be used.
    pub async fn append(self, entries: Vec<Entry>) -> Result<(), Error> {
        if entries
            .iter()
            .any(|entry| matches!(entry, Entry::Summary(_)))
        {
            return Err(Error::Prompt(
                "a summary belongs to a view, not to a history",
            ));
        }
        let session = &self.agent.session;
        let claim = session.claim()?;
        if entries.is_empty() {
            session.give_back(claim);
            return Ok(());
        }
        let begin = Begin::run(Vec::new(), Limits::clone(&self.agent.limits));
        session::append(self.start(begin), claim, entries).await
    }

    fn start(self, begin: Begin) -> Start {
        let (setup, session) = (
            Arc::clone(&self.agent.setup),
            Arc::clone(&self.agent.session),
        );
        Start {
            setup,
            session,
            begin,
            cancel: None,
        }
    }
}

//! The log of a session, as far as it was read.

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

/// A look into the log of an agent's session: what was said and done, what happens, and what would happen next.
#[derive(Debug, Clone, Copy)]
pub struct AgentLog<'a> {
    pub(super) agent: &'a Agent,
}

impl Agent {
    /// The log of the session: what was said and done, what happens, and what would happen next.
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
    /// A run that waits for answers goes on waiting. A new run does the same first.
    ///
    /// # Errors
    /// `Busy` if the session is running, `Journal` if the log could not be used.
    pub async fn close(self) -> Result<(), Error> {
        let claim = self.agent.session.claim()?;
        let begin = Begin::run(Vec::new(), Limits::clone(&self.agent.limits));
        session::look(self.start(begin), claim).await
    }

    /// Everything that was said in the session, as of the newest run that ended.
    pub fn transcript(self) -> Transcript {
        self.agent.session.history()
    }

    /// Returns the pauses of the session, as of the newest drive that ended here, in the order in which they were
    /// asked.
    ///
    /// In a session that was begun elsewhere, it is known after [`open`](AgentLog::open).
    pub fn pauses(self) -> Vec<Arc<Pause>> {
        self.agent.session.pauses()
    }

    /// True if a run of the session has not ended: it is at work, it waits for answers, or a crash has cut it off.
    ///
    /// In a session that was begun elsewhere, it is known after [`open`](AgentLog::open).
    pub fn has_open_run(self) -> bool {
        self.agent.session.has_open_run()
    }

    /// Adds entries to the conversation; no model is asked.
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

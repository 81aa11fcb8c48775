//! Explains the next and the past actions of a session: nothing is owned, recorded or run.

use std::sync::Arc;

use adjutant_core::{
    Error, JournalErrorKind, Replayed, ResumeItem, Rewind, Seq, Sessions, Stamped,
};
use futures_util::StreamExt;

use super::AgentLog;

impl AgentLog<'_> {
    /// Returns the work that a resumed session would do again from the end of its log, with the reasons, including
    /// sub-agents.
    ///
    /// Nothing is owned, recorded or run. While a run is running, this is the work that would be done again if the
    /// program ended now.
    ///
    /// # Errors
    /// `Journal` if the log cannot be read or does not fold.
    pub async fn explain(self) -> Result<Vec<ResumeItem>, Error> {
        let session = &self.agent.session;
        match Sessions::new(Arc::clone(session.journal()))
            .explain(session.id())
            .await
        {
            Err(error) if error.kind == JournalErrorKind::Missing => Ok(Vec::new()),
            again => Ok(again?),
        }
    }

    /// Reads the session's log again, and compares each turn with the request that would be sent today.
    ///
    /// Up to record `until`, the session is in its state at that record; by default, the whole log is walked. No
    /// model is called and no tool is run; toolboxes are resolved for today's fingerprint.
    ///
    /// # Errors
    /// `Journal` if the log cannot be read, `Defect` if it does not fold; and the errors of
    /// [`config`](AgentLog::config).
    pub async fn replay(self, until: Option<Seq>) -> Result<Replayed, Error> {
        Rewind {
            until,
            ..self.rewind().await?
        }
        .play(self.log_at_hand().await?)
    }

    async fn rewind(self) -> Result<Rewind, Error> {
        Ok(Rewind {
            config: Some(self.config().await?),
            ..Rewind::new(Arc::clone(&self.agent.setup.who))
        })
    }

    /// The records of the log; empty if it does not exist yet.
    async fn log_at_hand(self) -> Result<Vec<Arc<Stamped>>, Error> {
        let mut records = self
            .agent
            .session
            .journal()
            .read(self.agent.session.id(), Seq(0));
        let mut all = Vec::new();
        while let Some(stamped) = records.next().await {
            match stamped {
                Ok(stamped) => all.push(stamped),
                Err(error) if error.kind == JournalErrorKind::Missing => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(all)
    }
}

//! A fork: the first records of a log, with the same bytes, in a separate log.

use futures_util::StreamExt;

use super::{Sessions, chain::Chain, corrupt, half::Half, invalid};
use crate::{
    journal::{JournalError, LogId, LogInfo, SessionMeta},
    number::Seq,
};

impl Sessions {
    /// Copies the records up to this one into a new session, or all current ones; the old session can be in use at
    /// the same time.
    ///
    /// The fork records its origin, and has the same agent; title and labels are separate. Within a run it can be
    /// resumed: calls that were launched before keep their keys. If the run waits, the fork waits too, and continues
    /// once its own pause is answered.
    ///
    /// Cancel: a half-made log stays under a hidden name until [`sweep`](Sessions::sweep).
    ///
    /// # Errors
    /// `Missing`, `Exists`, `Invalid` if no record would be copied or the position is after the end, `Corrupt` and
    /// `Version` if one of them cannot be read, `Unsupported`, `Io`. Nothing remains of the fork then.
    pub async fn fork(
        &self,
        from: &LogId,
        at: Option<Seq>,
        to: &LogId,
    ) -> Result<LogInfo, JournalError> {
        let info = self.journal.info(from).await?;
        let at = at.unwrap_or(info.head);
        if at > info.head {
            return Err(invalid(format!(
                "log {:?} has {} records; it cannot be forked at {at}",
                from.0, info.head
            )));
        }
        self.copy(info.about, from, at, to).await
    }

    async fn copy(
        &self,
        about: SessionMeta,
        from: &LogId,
        at: Seq,
        to: &LogId,
    ) -> Result<LogInfo, JournalError> {
        if at == Seq(0) {
            return Err(invalid(format!(
                "a fork of log {:?} would have no record; hint: create a session",
                from.0
            )));
        }
        let mut half = Half::new(self, to).await?;
        let filled = self.fill(&mut half, from, at).await;
        let about = SessionMeta {
            agent: about.agent,
            parent: Some((from.clone(), at)),
            ..SessionMeta::default()
        };
        half.end(filled.map(|()| about), to).await
    }

    async fn fill(&self, half: &mut Half, from: &LogId, at: Seq) -> Result<(), JournalError> {
        let mut chain = Chain::new(from);
        let mut stored = self.journal.read_stored(from, Seq(0));
        while chain.seq < at {
            let Some(stored) = stored.next().await else {
                return Err(corrupt(format!(
                    "record {} of log {:?} is missing",
                    chain.seq.0 + 1,
                    from.0
                )));
            };
            half.push(chain.take(stored?)?).await?;
        }
        match self.journal.load_fold(from).await {
            Ok(Some(folded)) if folded.seq <= at => half.keep(folded).await,
            // Derived data: without it the fork opens later.
            _ => Ok(()),
        }
    }
}

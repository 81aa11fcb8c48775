//! A look at what a session would do, and at what it did: nothing is owned, recorded or run.

use std::{collections::BTreeMap, sync::Arc};

use adjutant_core::{
    CallFate, Error, JournalErrorKind, Record, Replayed, ResumeAction, ResumeItem, Rewind, Run, Seq, Stamped,
};
use adjutant_llm::{CallId, ThreadId};
use futures_util::StreamExt;

use super::AgentLog;

impl AgentLog<'_> {
    /// Returns the work that would be done again if the session went on from the end of its log, with the reasons;
    /// agents under it included.
    ///
    /// Nothing is owned, recorded or run. While a run goes on, it is what would be done if the program ended now.
    ///
    /// # Errors
    /// `Journal` if the log cannot be read, `Defect` if it does not fold.
    pub async fn explain(self) -> Result<Vec<ResumeItem>, Error> {
        let mut log = Folds::default();
        for stamped in self.log_at_hand().await? {
            log.fold(&stamped)?;
        }
        let mut reruns = Vec::new();
        log.explain(&self.agent.setup.who.thread, &mut reruns);
        Ok(reruns)
    }

    /// Walks over the session's log once more, and holds each turn against what a request would be made with today.
    ///
    /// Up to record `until`, the session is what it was when that was written; without it, all of it is walked over.
    /// No model is asked and no tool is run; toolboxes are resolved for today's fingerprint.
    ///
    /// # Errors
    /// `Journal` if the log cannot be read, `Defect` if it does not fold; and those of [`config`](AgentLog::config).
    pub async fn replay(self, until: Option<Seq>) -> Result<Replayed, Error> {
        Rewind { until, ..self.rewind().await? }.play(self.log_at_hand().await?)
    }

    async fn rewind(self) -> Result<Rewind, Error> {
        Ok(Rewind { config: Some(self.config().await?), ..Rewind::new(Arc::clone(&self.agent.setup.who)) })
    }

    /// The records of the log; none if it was not made yet.
    async fn log_at_hand(self) -> Result<Vec<Arc<Stamped>>, Error> {
        let mut records = self.agent.session.journal().read(self.agent.session.id(), Seq(0));
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

/// The folds of a log's conversations, and who opened which.
#[derive(Default)]
struct Folds {
    runs: BTreeMap<ThreadId, Run>,
    opened: BTreeMap<(ThreadId, CallId), Vec<ThreadId>>,
}

impl Folds {
    fn fold(&mut self, stamped: &Stamped) -> Result<(), Error> {
        if let Record::ChildOpened { call, thread, .. } = &stamped.record {
            self.opened.entry((stamped.thread.clone(), *call)).or_default().push(thread.clone());
        }
        self.runs.entry(stamped.thread.clone()).or_default().apply(stamped)?;
        Ok(())
    }

    /// Adds the work that a conversation does again, then that of the conversations under calls that are entered again.
    fn explain(&self, thread: &ThreadId, reruns: &mut Vec<ResumeItem>) {
        let own = self.runs.get(thread).map(Run::explain).unwrap_or_default();
        let entered = own.iter().filter_map(|rerun| match &rerun.redo {
            ResumeAction::Call { call, fate: CallFate::EnterAgain { .. }, .. } => Some(*call),
            _ => None,
        });
        let entered: Vec<CallId> = entered.collect();
        reruns.extend(own);
        for call in entered {
            let children = self.opened.get(&(thread.clone(), call)).into_iter().flatten();
            children.for_each(|child| self.explain(child, reruns));
        }
    }
}

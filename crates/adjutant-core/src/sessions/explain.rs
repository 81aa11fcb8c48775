//! Explains from a log what a session would do again; nothing is owned, recorded or run.

use std::collections::BTreeMap;

use adjutant_llm::{CallId, ThreadId};
use futures_util::StreamExt;

use super::{Sessions, chain};
use crate::{
    journal::{JournalError, LogId},
    number::Seq,
    record::Record,
    run::{CallFate, ResumeAction, ResumeItem, Run},
};

/// The folds of a log's conversations, and who opened which.
#[derive(Default)]
struct OpenWork {
    runs: BTreeMap<ThreadId, Run>,
    opened: BTreeMap<(ThreadId, CallId), Vec<ThreadId>>,
}

impl Sessions {
    /// Returns the work that a resumed session would do again from the end of its log, with the reasons, including
    /// sub-agents. Nothing is owned, recorded or run.
    ///
    /// # Errors
    /// `Missing`, `Corrupt` if the log cannot be read or does not fold, `Version`, `Io`.
    pub async fn explain(&self, id: &LogId) -> Result<Vec<ResumeItem>, JournalError> {
        let (mut work, mut first) = (OpenWork::default(), None);
        let mut records = self.journal.read(id, Seq(0));
        while let Some(stamped) = records.next().await {
            let stamped = stamped?;
            if let Record::ChildOpened { call, thread, .. } = &stamped.record {
                work.opened
                    .entry((stamped.thread.clone(), *call))
                    .or_default()
                    .push(thread.clone());
            }
            first.get_or_insert_with(|| stamped.thread.clone());
            let run = work.runs.entry(stamped.thread.clone()).or_default();
            run.apply(&stamped)
                .map_err(|error| chain::fold_error(id, error))?;
        }
        let mut again = Vec::new();
        if let Some(first) = first {
            work.explain(&first, &mut again);
        }
        Ok(again)
    }
}

impl OpenWork {
    /// Adds the work that a conversation does again, then the work of conversations under calls that are entered
    /// again.
    fn explain(&self, thread: &ThreadId, again: &mut Vec<ResumeItem>) {
        let own = self.runs.get(thread).map(Run::explain).unwrap_or_default();
        let entered = own.iter().filter_map(|item| match &item.redo {
            ResumeAction::Call {
                call,
                fate: CallFate::EnterAgain { .. },
                ..
            } => Some(*call),
            _ => None,
        });
        let entered: Vec<CallId> = entered.collect();
        again.extend(own);
        for call in entered {
            let children = self
                .opened
                .get(&(thread.clone(), call))
                .into_iter()
                .flatten();
            children.for_each(|child| self.explain(child, again));
        }
    }
}

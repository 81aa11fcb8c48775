//! The state of the latest run of a session, derived from the end of its log: the rest is not read.

use std::sync::Arc;

use adjutant_llm::ThreadId;
use futures_util::StreamExt;

use super::Sessions;
use crate::{
    journal::{JournalError, LogInfo, Stamped, Work},
    number::Seq,
    pause::{Pause, PauseId},
    record::{Admission, Record},
};

/// The number of records at the end of a log that are read first.
const TAIL: u64 = 32;
/// The largest number of them.
const MAX_TAIL: u64 = 2_048;

/// A run that has started and not ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct OpenRun {
    /// The pauses that it waits for, the oldest first; empty if it is running, or was interrupted.
    pub pauses: Vec<Arc<Pause>>,
}

/// The state at the end of a log.
pub(super) struct Tail {
    first: ThreadId,
    /// `None` until a record decides it.
    is_open: Option<bool>,
    /// True if a sub-agent was running.
    is_under: bool,
    pauses: Vec<Arc<Pause>>,
}

impl Sessions {
    /// Returns the open run of a session, if one exists. Its log is read back to the latest turn, 2,048 records at
    /// most: earlier questions, for example of a background task of an earlier turn, may be missing.
    ///
    /// # Errors
    /// `Missing`, `Corrupt` if the end cannot be read, `Version`, `Io`.
    pub async fn open_run(&self, info: &LogInfo) -> Result<Option<OpenRun>, JournalError> {
        let Some(first) = self
            .journal
            .read(&info.log, Seq(0))
            .next()
            .await
            .transpose()?
        else {
            return Ok(None);
        };
        let mut most = TAIL;
        loop {
            let after = Seq(info.head.0.saturating_sub(most));
            let (mut tail, mut records) = (
                Tail::new(&first.thread),
                self.journal.read(&info.log, after),
            );
            while let Some(stamped) = records.next().await {
                let stamped = stamped?;
                if stamped.seq > info.head {
                    break;
                }
                tail.take(&stamped);
            }
            if tail.is_open.is_some() || after == Seq(0) || most >= MAX_TAIL {
                return Ok(tail.is_open().then_some(OpenRun {
                    pauses: tail.pauses,
                }));
            }
            most *= 4;
        }
    }
}

impl Tail {
    pub(super) fn new(first: &ThreadId) -> Self {
        Self {
            first: first.clone(),
            is_open: None,
            is_under: false,
            pauses: Vec::new(),
        }
    }

    /// The work of a copy: it waits as the log did, and no time wakes it automatically.
    pub(super) fn work_of_copy(&self) -> Work {
        match self.is_open() && !self.pauses.is_empty() {
            true => Work::from_pauses(self.pauses.iter(), None),
            false => Work::Idle,
        }
    }

    fn is_open(&self) -> bool {
        // Agents under the first one work within a run of it alone.
        self.is_open.unwrap_or(self.is_under)
    }

    pub(super) fn take(&mut self, stamped: &Stamped) {
        let is_first = stamped.thread == self.first;
        self.is_under |= !is_first;
        match &stamped.record {
            Record::Began { .. } | Record::Opened { .. } | Record::Ended { .. } => {
                self.pauses.retain(|pause| pause.thread != stamped.thread);
                if is_first {
                    self.is_open = Some(!matches!(stamped.record, Record::Ended { .. }));
                }
            }
            Record::Admitted {
                admission: Admission::Ask { pause, .. },
                ..
            }
            | Record::Paused { pause } => self.ask(pause),
            Record::Suspended { pauses, .. } => pauses.iter().for_each(|pause| self.ask(pause)),
            Record::Answered { pause, .. } => self.close(pause),
            Record::Resumed { answers, .. } => answers.iter().for_each(|it| self.close(&it.pause)),
            Record::Returned { call, .. } => {
                self.pauses.retain(|pause| {
                    pause.thread != stamped.thread || pause.call_id() != Some(*call)
                });
            }
            _ => {}
        }
    }

    fn ask(&mut self, pause: &Arc<Pause>) {
        self.close(&pause.id);
        self.pauses.push(Arc::clone(pause));
    }

    fn close(&mut self, id: &PauseId) {
        self.pauses.retain(|pause| pause.id != *id);
    }
}

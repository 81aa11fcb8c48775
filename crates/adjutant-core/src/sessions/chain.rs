//! The checks of a log, record by record: the chain over its bytes, its numbers, and that its threads fold.

use std::{collections::BTreeMap, sync::Arc};

use adjutant_llm::{CallId, ThreadId};

use super::corrupt;
use crate::{
    digest::Digest,
    journal::{JournalError, LogId, Stamped, StoredRecord},
    number::Seq,
    record::Record,
    run::{Illegal, Run},
};

/// The chain over the records of a log that were read.
pub(super) struct Chain {
    log: LogId,
    pub(super) seq: Seq,
    pub(super) link: Digest,
    /// The number of bytes of its records together, attachments not counted.
    pub(super) bytes: u64,
    /// The number of attachments of its records together.
    pub(super) attachments: u64,
}

/// The folds of all threads of a log whose calls are open.
#[derive(Default)]
pub(super) struct Folds(BTreeMap<ThreadId, Run>);

impl Chain {
    pub(super) fn new(log: &LogId) -> Self {
        Self {
            log: log.clone(),
            seq: Seq(0),
            link: Digest::GENESIS,
            bytes: 0,
            attachments: 0,
        }
    }

    /// Checks the next record, and reads it.
    ///
    /// # Errors
    /// `Corrupt` and `Version`, with the number of the record.
    pub(super) fn take(&mut self, stored: StoredRecord) -> Result<Arc<Stamped>, JournalError> {
        let next = Seq(self.seq.0 + 1);
        if stored.seq != next {
            let why = format!(
                "record {next} of log {:?} is missing: record {} stands there",
                self.log.0, stored.seq
            );
            return Err(corrupt(why));
        }
        let (link, bytes, attachments) =
            (stored.link, stored.bytes.len(), stored.attachments.len());
        let stamped = stored.open(&self.link).map_err(|error| {
            let message = format!("log {:?} cannot be read at record {next}", self.log.0);
            JournalError::new(error.kind, message).with_source(error)
        })?;
        (self.seq, self.link) = (next, link);
        self.bytes += bytes as u64;
        self.attachments += attachments as u64;
        Ok(stamped)
    }
}

impl Folds {
    /// Folds a record of any thread.
    ///
    /// # Errors
    /// `Corrupt` if it cannot follow the folded records of its thread.
    pub(super) fn take(&mut self, log: &LogId, stamped: &Stamped) -> Result<(), JournalError> {
        let run = self.0.entry(stamped.thread.clone()).or_default();
        run.apply(stamped).map_err(|error| fold_error(log, error))?;
        if let Record::Returned { call, .. } = &stamped.record {
            forget(&mut self.0, &stamped.thread, *call);
        }
        Ok(())
    }
}

/// Drops the state of the threads under a call that has its result: nothing more follows in them.
pub(super) fn forget<T>(known: &mut BTreeMap<ThreadId, T>, thread: &ThreadId, call: CallId) {
    if known.len() < 2 {
        return;
    }
    let prefix = format!("{thread}/{call}/");
    let under = known
        .range(ThreadId::from(prefix.as_str())..)
        .map(|(thread, _)| thread);
    let gone: Vec<ThreadId> = under
        .take_while(|it| it.as_str().starts_with(&prefix))
        .cloned()
        .collect();
    for thread in gone {
        known.remove(&thread);
    }
}

/// A log that was not written by runs.
pub(super) fn fold_error(log: &LogId, error: Illegal) -> JournalError {
    corrupt(format!(
        "log {:?} does not fold at record {}",
        log.0, error.seq
    ))
    .with_source(error)
}

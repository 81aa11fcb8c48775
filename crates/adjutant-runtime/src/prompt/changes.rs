//! The file changes in a session, and the starts of its runs, for undo.

use std::collections::BTreeSet;

use adjutant_agent::{Journal, JournalError, LogId, Record, Seq};
use adjutant_llm::{CallId, ThreadId};
use adjutant_toolkit::FileChange;
use futures_util::StreamExt;

/// The tool whose file changes are not recorded.
const COMMAND: &str = "run_command";

/// The file changes in a session, and the starts of its runs.
#[derive(Debug, Default)]
pub struct FileHistory {
    changes: Vec<(Seq, FileChange)>,
    /// The records that start commands.
    commands: Vec<Seq>,
    /// The records that start runs of the first agent.
    runs: Vec<Seq>,
    first: Option<ThreadId>,
}

impl FileHistory {
    /// Reads the changes of a session.
    ///
    /// # Errors
    /// `Missing`, `Corrupt`, `Version`, `Io`.
    pub async fn read(journal: &dyn Journal, log: &LogId) -> Result<Self, JournalError> {
        let (mut history, mut records) = (Self::default(), journal.read(log, Seq(0)));
        let mut wished: BTreeSet<(ThreadId, CallId)> = BTreeSet::new();
        while let Some(stamped) = records.next().await {
            let stamped = stamped?;
            let first = history.first.get_or_insert_with(|| stamped.thread.clone());
            match &stamped.record {
                Record::Began { .. } if *first == stamped.thread => history.runs.push(stamped.seq),
                Record::Replied { reply, .. } => {
                    let commands = reply.calls().filter(|call| call.name.as_str() == COMMAND);
                    wished.extend(commands.map(|call| (stamped.thread.clone(), call.id)));
                }
                Record::Launched { calls } => {
                    let begun = calls
                        .iter()
                        .filter(|call| wished.remove(&(stamped.thread.clone(), **call)));
                    history.commands.extend(begun.map(|_| stamped.seq));
                }
                Record::App { kind, data, .. } => {
                    history.changes.extend(
                        FileChange::from_note(kind, data).map(|change| (stamped.seq, change)),
                    );
                }
                _ => {}
            }
        }
        Ok(history)
    }

    /// Returns the record before the latest run that changed files and started before this record; `None` without one.
    pub fn before(&self, earlier: Option<Seq>) -> Option<Seq> {
        let end = earlier.unwrap_or(Seq(u64::MAX));
        let (newest, _) = self.changes.iter().rfind(|(seq, _)| *seq <= end)?;
        let run = self.runs.iter().rfind(|run| *run <= newest)?;
        Some(Seq(run.0.saturating_sub(1)))
    }

    /// Returns the changes up to a record, and those after it.
    pub fn parted(&self, at: Seq) -> (Vec<FileChange>, Vec<FileChange>) {
        let (until, since) = self
            .changes
            .split_at(self.changes.partition_point(|(seq, _)| *seq <= at));
        let changes =
            |part: &[(Seq, FileChange)]| part.iter().map(|(_, change)| change.clone()).collect();
        (changes(until), changes(since))
    }

    /// Returns the number of commands that were started after a record.
    pub fn commands_since(&self, at: Seq) -> usize {
        self.commands.iter().filter(|seq| **seq > at).count()
    }

    /// Returns a note about the changes that an undo back to a record does not cover, if commands ran since.
    pub fn uncovered(&self, at: Seq) -> Option<String> {
        match self.commands_since(at) {
            0 => None,
            count => Some(format!(
                "not put back: what commands changed; {count} ran since then"
            )),
        }
    }
}

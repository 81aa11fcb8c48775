//! `adjutant undo`: files are put back as they were before an agent changed them.

use std::{collections::BTreeSet, path::Path};

use adjutant::{
    agent::{Journal, LogId, Record, Seq},
    llm::{CallId, ThreadId},
    toolkit::{FileChange, Files},
};
use futures_util::StreamExt;

use crate::{
    args,
    exit::Exit,
    named, plain,
    problem::Problem,
    screen::{tell, write},
    store::Store,
    trouble,
    work::work,
};

/// The tool whose changes of files nobody keeps.
const COMMAND: &str = "run_command";

/// The changes of files that a session tells of, and where its runs begin.
#[derive(Debug, Default)]
pub(crate) struct History {
    changes: Vec<(Seq, FileChange)>,
    /// The records with which commands were begun.
    commands: Vec<Seq>,
    /// The records that runs of the first agent begin with.
    runs: Vec<Seq>,
    first: Option<ThreadId>,
}

/// Puts back what the agent of a session changed.
pub(crate) fn undo(args: &args::Undo) -> Result<Exit, Problem> {
    work(perform(args))
}

async fn perform(args: &args::Undo) -> Result<Exit, Problem> {
    let store = Store::find(&args.at).await?;
    let sessions = store.sessions();
    let info = match &args.name {
        Some(name) => named::find(&sessions, name).await?,
        None => {
            let none = || Problem::new(Exit::Usage, "this directory has no session").hint("`adjutant sessions list`");
            named::newest(&sessions, Path::new(".")).await?.ok_or_else(none)?
        }
    };
    let directory = named::directory(&info)?.ok_or_else(|| {
        // Whoever wrote the file of an imported session would choose what is changed.
        Problem::new(Exit::Usage, format!("the session has no directory: {}", info.log))
    })?;
    if info.is_owned {
        let problem = Problem::new(Exit::Usage, format!("an agent works in the session: {}", info.log));
        return Err(problem.hint("/undo takes its changes back there"));
    }
    let history = History::read(&*store.journal(), &info.log).await?;
    let after = args.to.map_or_else(|| history.before(None).unwrap_or_default(), Seq);
    let files = Files::new(directory).map_err(|error| Problem::of(Exit::Usage, &error))?;
    let restored = history.restore(&store, &files, after)?;
    if restored.is_empty() {
        tell("nothing is to be put back");
    }
    write(&restored.iter().map(|path| format!("{path}\n")).collect::<String>())?;
    history.uncovered(after).iter().for_each(|line| tell(line));
    Ok(Exit::Finished)
}

impl History {
    /// Reads what a session tells of.
    pub(crate) async fn read(journal: &dyn Journal, log: &LogId) -> Result<Self, Problem> {
        let (mut history, mut records) = (Self::default(), journal.read(log, Seq(0)));
        let mut wished: BTreeSet<(ThreadId, CallId)> = BTreeSet::new();
        while let Some(stamped) = records.next().await {
            let stamped = stamped.map_err(|error| trouble::of_journal(&error))?;
            let first = history.first.get_or_insert_with(|| stamped.thread.clone());
            match &stamped.record {
                Record::Began { .. } if *first == stamped.thread => history.runs.push(stamped.seq),
                Record::Replied { reply, .. } => {
                    let commands = reply.calls().filter(|call| call.name.as_str() == COMMAND);
                    wished.extend(commands.map(|call| (stamped.thread.clone(), call.id)));
                }
                Record::Launched { calls } => {
                    let begun = calls.iter().filter(|call| wished.remove(&(stamped.thread.clone(), **call)));
                    history.commands.extend(begun.map(|_| stamped.seq));
                }
                Record::App { kind, data, .. } => {
                    history.changes.extend(FileChange::of_note(kind, data).map(|change| (stamped.seq, change)));
                }
                _ => {}
            }
        }
        Ok(history)
    }

    /// The record before the newest run that changed files and began before this one; none if there is none.
    pub(crate) fn before(&self, earlier: Option<Seq>) -> Option<Seq> {
        let end = earlier.unwrap_or(Seq(u64::MAX));
        let (newest, _) = self.changes.iter().rfind(|(seq, _)| *seq <= end)?;
        let run = self.runs.iter().rfind(|run| *run <= newest)?;
        Some(Seq(run.0.saturating_sub(1)))
    }

    /// The changes up to a record, and those after it.
    pub(crate) fn parted(&self, at: Seq) -> (Vec<FileChange>, Vec<FileChange>) {
        let (until, since) = self.changes.split_at(self.changes.partition_point(|(seq, _)| *seq <= at));
        let changes = |part: &[(Seq, FileChange)]| part.iter().map(|(_, change)| change.clone()).collect();
        (changes(until), changes(since))
    }

    /// The number of commands that were begun after a record.
    pub(crate) fn commands_since(&self, at: Seq) -> usize {
        self.commands.iter().filter(|seq| **seq > at).count()
    }

    /// A line that says what an undo back to a record does not cover, if commands ran since.
    pub(crate) fn uncovered(&self, at: Seq) -> Option<String> {
        match self.commands_since(at) {
            0 => None,
            count => Some(format!("not put back: what commands changed; {count} ran since then")),
        }
    }

    /// Puts files back as they were at a record, and returns those that are other than before, as they are told.
    ///
    /// # Errors
    /// `Failed` if one was changed by somebody else since: nothing is changed then.
    pub(crate) fn restore(&self, store: &Store, files: &Files, at: Seq) -> Result<Vec<String>, Problem> {
        let restored = store.undo()?.restore(files, &self.parted(at).1);
        let restored = restored.map_err(|error| Problem::of(Exit::Failed, &error))?;
        Ok(restored.iter().map(|path| plain::whole(&path.to_string_lossy())).collect())
    }
}

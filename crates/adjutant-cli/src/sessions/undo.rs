//! `adjutant undo`: files are put back as they were before an agent changed them.

use std::path::Path;

use adjutant::{
    agent::{Journal, LogId, Record, Seq},
    llm::ThreadId,
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

/// The changes of files that a session tells of, and where its runs begin.
#[derive(Debug, Default)]
pub(crate) struct History {
    changes: Vec<(Seq, FileChange)>,
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
    Ok(Exit::Finished)
}

impl History {
    /// Reads what a session tells of.
    pub(crate) async fn read(journal: &dyn Journal, log: &LogId) -> Result<Self, Problem> {
        let (mut history, mut records) = (Self::default(), journal.read(log, Seq(0)));
        while let Some(stamped) = records.next().await {
            let stamped = stamped.map_err(|error| trouble::of_journal(&error))?;
            let first = history.first.get_or_insert_with(|| stamped.thread.clone());
            match &stamped.record {
                Record::Began { .. } if *first == stamped.thread => history.runs.push(stamped.seq),
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

    /// Puts files back as they were at a record, and returns those that are other than before, as they are told.
    ///
    /// # Errors
    /// `Failed` if one was changed by somebody else since: nothing is changed then.
    pub(crate) fn restore(&self, store: &Store, files: &Files, at: Seq) -> Result<Vec<String>, Problem> {
        let changes: Vec<FileChange> =
            self.changes.iter().filter(|(seq, _)| *seq > at).map(|(_, change)| change.clone()).collect();
        let restored = store.undo()?.restore(files, &changes);
        let restored = restored.map_err(|error| Problem::of(Exit::Failed, &error))?;
        Ok(restored.iter().map(|path| plain::whole(&path.to_string_lossy())).collect())
    }
}

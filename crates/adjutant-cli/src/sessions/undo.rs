//! `adjutant undo`: restores files to their state before an agent changed them.

use std::path::Path;

use adjutant::{
    agent::{Journal, LogId, Seq},
    runtime::prompt::FileHistory,
    toolkit::Files,
};

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

/// Restores the files that the agent of a session changed.
pub(crate) fn undo(args: &args::Undo) -> Result<Exit, Problem> {
    work(perform(args))
}

async fn perform(args: &args::Undo) -> Result<Exit, Problem> {
    let store = Store::find(&args.at).await?;
    let sessions = store.sessions();
    let info = match &args.name {
        Some(name) => named::find(&sessions, name).await?,
        None => {
            let none = || {
                Problem::new(Exit::Usage, "this directory has no session")
                    .hint("`adjutant sessions list`")
            };
            named::newest(&sessions, Path::new("."))
                .await?
                .info
                .ok_or_else(none)?
        }
    };
    let directory = named::directory(&info)?.ok_or_else(|| {
        // Otherwise the author of an imported session would choose the files to change.
        Problem::new(
            Exit::Usage,
            format!("the session has no directory: {}", info.log),
        )
    })?;
    if info.is_owned {
        let problem = Problem::new(
            Exit::Usage,
            format!("an agent works in the session: {}", info.log),
        );
        return Err(problem.hint("/undo takes its changes back there"));
    }
    let history = history(&*store.journal(), &info.log).await?;
    let after = args
        .to
        .map_or_else(|| history.before(None).unwrap_or_default(), Seq);
    let files = Files::new(directory).map_err(|error| Problem::from_error(Exit::Usage, &error))?;
    let restored = restore(&history, &store, &files, after)?;
    if restored.is_empty() {
        tell("nothing is to be put back");
    }
    write(
        &restored
            .iter()
            .map(|path| format!("{path}\n"))
            .collect::<String>(),
    )?;
    history.uncovered(after).iter().for_each(|line| tell(line));
    Ok(Exit::Finished)
}

/// Reads the file changes of a session.
pub(crate) async fn history(journal: &dyn Journal, log: &LogId) -> Result<FileHistory, Problem> {
    FileHistory::read(journal, log)
        .await
        .map_err(|error| trouble::journal_problem(&error))
}

/// Restores files to their state at a record, and returns the changed ones as messages.
///
/// # Errors
/// `Failed` if another program changed one since; nothing is changed then.
pub(crate) fn restore(
    history: &FileHistory,
    store: &Store,
    files: &Files,
    at: Seq,
) -> Result<Vec<String>, Problem> {
    let restored = store.undo()?.restore(files, &history.parted(at).1);
    let restored = restored.map_err(|error| Problem::from_error(Exit::Failed, &error))?;
    Ok(restored
        .iter()
        .map(|path| plain::whole(&path.to_string_lossy()))
        .collect())
}

//! Copies of sessions, optionally with the files of their directories.

use std::path::Path;

use adjutant::{
    agent::{LogId, LogInfo, Seq, Sessions},
    toolkit::{ErrorKind, Files, ForkedFiles},
};

use super::{id, undo};
use crate::{
    amount::grouped,
    args::Fork,
    exit::Exit,
    named, plain,
    problem::Problem,
    screen::{tell, write},
    store::Store,
    trouble,
};

/// The maximum number of files in a list of exceptions.
const MAX_NAMED: usize = 8;

/// Copies a session, or its first records; and its files, if requested.
pub(crate) async fn fork(args: &Fork) -> Result<Exit, Problem> {
    let store = Store::find(&args.at).await?;
    let sessions = store.sessions();
    let from = named::find(&sessions, &args.name).await?;
    let (to, at) = (id(&args.new), args.seq.map(Seq));
    let info = match &args.files {
        None => copy(&sessions, &from, at, &to).await?,
        Some(_) if from.is_owned => {
            let text = format!(
                "an agent works in the session, and may change its files: {}",
                from.log
            );
            return Err(Problem::new(Exit::Usage, text).hint("/fork --files DIR copies them there"));
        }
        Some(folder) => {
            let (info, lines) = with_files(&store, &from, at, &to, folder).await?;
            lines.iter().for_each(|line| tell(line));
            info
        }
    };
    store.settle(&to).await;
    let [from, to] = [&from.log, &info.log].map(|log| plain::line(&log.0));
    write(&format!("forked {from} at {} into {to}\n", info.head))?;
    Ok(Exit::Finished)
}

/// Copies a session, or its first records, with its labels.
pub(crate) async fn copy(
    sessions: &Sessions,
    from: &LogInfo,
    until: Option<Seq>,
    to: &LogId,
) -> Result<LogInfo, Problem> {
    let forked = sessions.fork(&from.log, until, to).await;
    let info = forked.map_err(|error| trouble::session_problem(&error, &to.0))?;
    // The labels are copied: they contain the directory, and the tools that need an approval.
    label(sessions, to, from.about.labels.iter().map(|label| &**label)).await?;
    Ok(info)
}

async fn label<'l>(
    sessions: &Sessions,
    to: &LogId,
    labels: impl Iterator<Item = &'l str>,
) -> Result<(), Problem> {
    let labels: Vec<&str> = labels.collect();
    if labels.is_empty() {
        return Ok(());
    }
    sessions
        .label(to, &labels, &[])
        .await
        .map_err(|error| trouble::journal_problem(&error))
}

/// Copies a session, or its first records, and its files into a new directory, in their state at that time. The new
/// session uses that directory. Also returns messages.
///
/// # Errors
/// `Usage` if the session has no directory, or the new directory cannot be used; `Failed` if something cannot be
/// copied. The new session is removed then.
pub(crate) async fn with_files(
    store: &Store,
    from: &LogInfo,
    at: Option<Seq>,
    to: &LogId,
    folder: &Path,
) -> Result<(LogInfo, Vec<String>), Problem> {
    let none = || {
        Problem::new(
            Exit::Usage,
            format!("the session has no directory: {}", from.log),
        )
    };
    let files = Files::new(named::directory(from)?.ok_or_else(none)?);
    let files = files.map_err(|error| Problem::from_error(Exit::Usage, &error))?;
    let sessions = store.sessions();
    let history = undo::history(&*store.journal(), &from.log).await?;
    // The label of the directory is added when the files exist, so that the session is not continued in the original
    // directory.
    let forked = sessions.fork(&from.log, at, to).await;
    let info = forked.map_err(|error| trouble::session_problem(&error, &to.0))?;
    let copied = async {
        let (undo, (until, since)) = (store.undo()?, history.parted(info.head));
        let place = folder.to_owned();
        let copied =
            tokio::task::spawn_blocking(move || undo.fork(&files, &until, &since, place)).await;
        let copied = copied
            .map_err(|error| Problem::new(Exit::Failed, "the copying broke down").cause(&error))?;
        let copied = copied.map_err(|error| match error.kind() {
            ErrorKind::Root => Problem::from_error(Exit::Usage, &error)
                .hint("a new or empty directory takes the files"),
            _ => Problem::from_error(Exit::Failed, &error),
        })?;
        let own = named::label(folder)?;
        let others = from
            .about
            .labels
            .iter()
            .map(|label| &**label)
            .filter(|label| !named::is_directory(label));
        label(&sessions, to, others.chain([&*own])).await?;
        Ok(copied)
    };
    match copied.await {
        Ok(copied) => Ok((
            info.clone(),
            told(&copied, folder, history.commands_since(info.head)),
        )),
        Err(problem) => {
            // Without its files, the session would be incomplete.
            let _ = sessions.delete(to).await;
            Err(problem)
        }
    }
}

/// Returns messages about the copied, omitted and different files.
fn told(copied: &ForkedFiles, folder: &Path, commands: usize) -> Vec<String> {
    let [files, bytes] = [copied.files, copied.bytes].map(grouped);
    let place = plain::word(&plain::whole(&folder.to_string_lossy()));
    let mut lines = vec![format!(
        "copied {files} files, {bytes} bytes; `adjutant -c --root {place}` goes on there"
    )];
    for (what, paths) in [
        ("not copied", &copied.left_out),
        ("not as it was then, but as it is now", &copied.other),
    ] {
        let named = paths.iter().take(MAX_NAMED);
        lines
            .extend(named.map(|path| format!("{what}: {}", plain::whole(&path.to_string_lossy()))));
        if paths.len() > MAX_NAMED {
            lines.push(format!("{what}: {} more", paths.len() - MAX_NAMED));
        }
    }
    if commands > 0 {
        lines.push(format!(
            "as it is now: what commands changed; {commands} ran since then"
        ));
    }
    lines
}

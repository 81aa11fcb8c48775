//! Verifies, deletes, renames and labels sessions.

use adjutant::agent::{JournalErrorKind, LogQuery, Sessions};

use super::id;
use crate::{
    amount::grouped,
    args::{At, Delete, Label, Rename, Verify},
    consent,
    exit::Exit,
    named, plain,
    problem::Problem,
    screen::{tell, write, write_or_tell},
    store::Store,
    trouble,
};

/// The number of sessions in one query.
const PAGE: usize = 500;

/// Checks one session, or all of them.
pub(crate) async fn verify(args: &Verify) -> Result<Exit, Problem> {
    let store = Store::find(&args.at).await?;
    let sessions = store.sessions();
    if let Some(name) = &args.name {
        named::find(&sessions, name).await?;
        return check(&sessions, name).await;
    }
    let mut query = LogQuery {
        limit: PAGE,
        ..LogQuery::default()
    };
    let mut worst = Exit::Finished;
    loop {
        let page = sessions
            .list(&query)
            .await
            .map_err(|error| trouble::journal_problem(&error))?;
        for info in &page.logs {
            let exit = check(&sessions, &info.log.0).await?;
            if exit != Exit::Finished {
                worst = exit;
            }
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(worst),
        }
    }
}

/// Verifies a session, and prints the result; later sessions are verified even if this one is damaged.
async fn check(sessions: &Sessions, name: &str) -> Result<Exit, Problem> {
    let text = plain::line(name);
    match sessions.verify(&id(name)).await {
        Ok(sound) => {
            let [records, bytes] = [sound.records, sound.bytes].map(grouped);
            write(&format!(
                "sound: {text}, {records} records, {bytes} bytes, {}\n",
                sound.link
            ))?;
            Ok(Exit::Finished)
        }
        // It was deleted after the listing.
        Err(error) if error.kind == JournalErrorKind::Missing => Ok(Exit::Finished),
        Err(error) => {
            let what = if error.kind == JournalErrorKind::Corrupt {
                "is damaged"
            } else {
                "cannot be checked"
            };
            let problem =
                Problem::new(Exit::Failed, format!("the session {what}: {text}")).cause_of(&error);
            Ok(problem.report())
        }
    }
}

/// Deletes sessions after a confirmation.
pub(crate) async fn delete(args: &Delete) -> Result<Exit, Problem> {
    let store = Store::find(&args.at).await?;
    let sessions = store.sessions();
    let mut found = Vec::new();
    for name in &args.names {
        found.push(named::find(&sessions, name).await?);
    }
    if !args.yes {
        let lines = found
            .iter()
            .map(|info| format!("{}: {} records\n", plain::line(&info.log.0), info.head));
        if !consents(&lines.collect::<String>())? {
            return Ok(Exit::Finished);
        }
    }
    for info in found {
        let name = &info.log.0;
        match sessions.delete(&info.log).await {
            // It was named twice, or deleted by another process.
            Err(error) if error.kind == JournalErrorKind::Missing => {}
            deleted => {
                deleted.map_err(|error| trouble::session_problem(&error, name))?;
                write(&format!("deleted {}\n", plain::line(name)))?;
            }
        }
    }
    Ok(Exit::Finished)
}

/// Asks for a confirmation on the terminal.
fn consents(lines: &str) -> Result<bool, Problem> {
    if !consent::is_on_terminal() {
        let problem = Problem::new(
            Exit::Usage,
            "sessions are deleted only when someone says yes",
        );
        return Err(problem.hint("--yes confirms it"));
    }
    consent::answered(&format!("{lines}Delete for ever? [y/N] "))
}

/// Renames a session.
pub(crate) async fn rename(args: &Rename) -> Result<Exit, Problem> {
    let store = Store::find(&args.at).await?;
    let sessions = store.sessions();
    let from = named::find(&sessions, &args.from).await?.log;
    let renamed = sessions.rename(&from, &id(&args.to)).await;
    renamed.map_err(|error| trouble::session_problem(&error, &args.from))?;
    tell(&format!(
        "{} is called {} now",
        plain::word(&args.from),
        plain::word(&args.to)
    ));
    Ok(Exit::Finished)
}

/// Adds and removes labels, and prints the current ones.
pub(crate) async fn label(args: &Label) -> Result<Exit, Problem> {
    let store = Store::find(&args.at).await?;
    let sessions = store.sessions();
    let log = named::find(&sessions, &args.name).await?.log;
    let (mut add, mut remove) = (Vec::new(), Vec::new());
    for change in &args.changes {
        match (change.strip_prefix('+'), change.strip_prefix('-')) {
            (Some(label), _) => add.push(label),
            (_, Some(label)) if !label.starts_with('-') => remove.push(label),
            (_, Some(_)) => {
                let problem = Problem::new(Exit::Usage, format!("there is no option {change}"));
                return Err(
                    problem.hint("a label that begins with `-` cannot be removed by its name")
                );
            }
            _ => {
                let problem = Problem::new(
                    Exit::Usage,
                    format!("a change of a label begins with + or -: {change}"),
                );
                return Err(problem.hint(format!(
                    "say {} to add it",
                    plain::word(&format!("+{change}"))
                )));
            }
        }
    }
    if !args.changes.is_empty() {
        sessions
            .label(&log, &add, &remove)
            .await
            .map_err(|error| trouble::journal_problem(&error))?;
    }
    let info = named::find(&sessions, &args.name).await?;
    let labels = info
        .about
        .labels
        .iter()
        .map(|label| format!("{}\n", plain::line(label)));
    write_or_tell(&labels.collect::<String>(), "the session has no label")?;
    Ok(Exit::Finished)
}

/// Removes unreferenced attachments.
pub(crate) async fn sweep(at: &At) -> Result<Exit, Problem> {
    let swept = Store::find(at)
        .await?
        .sessions()
        .sweep()
        .await
        .map_err(|error| trouble::journal_problem(&error))?;
    tell(&format!(
        "removed {} texts, {} bytes",
        grouped(swept.attachments),
        grouped(swept.bytes)
    ));
    Ok(Exit::Finished)
}

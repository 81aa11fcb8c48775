//! Export and import of sessions.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufReader, BufWriter, Write},
    path::Path,
    sync::Arc,
};

use adjutant::{
    agent::{JournalErrorKind, LogId, Sessions, sessions::Exported},
    llm::private,
};

use super::id;
use crate::{
    amount::grouped,
    args::{Export, Import},
    exit::Exit,
    named, plain,
    problem::Problem,
    screen::{tell, write},
    store::Store,
    trouble,
};

/// Writes a session to a file.
pub(crate) async fn export(args: &Export) -> Result<Exit, Problem> {
    let store = Store::find(&args.at).await?;
    let sessions = store.sessions();
    let log = named::find(&sessions, &args.name).await?.log;
    let exported = if is_standard(&args.file) {
        into(&sessions, &log, io::stdout()).await?
    } else {
        let file = create(&args.file)?;
        let exported = into(&sessions, &log, file).await;
        if exported.is_err() {
            // An incomplete session file is useless.
            let _ = fs::remove_file(&args.file);
        }
        exported?
    };
    let [records, bytes] = [exported.records, exported.bytes].map(grouped);
    tell(&format!(
        "exported {}: {records} records, {bytes} bytes",
        plain::line(&args.name)
    ));
    Ok(Exit::Finished)
}

async fn into(
    sessions: &Sessions,
    log: &LogId,
    out: impl Write + Send,
) -> Result<Exported, Problem> {
    let mut out = BufWriter::new(out);
    sessions
        .export(log, &mut out)
        .await
        .map_err(|error| trouble::journal_problem(&error))
}

/// Reads a session from a file.
pub(crate) async fn import(args: &Import) -> Result<Exit, Problem> {
    let store = Store::open(&args.at).await?;
    let sessions = store.sessions();
    let info = if is_standard(&args.file) {
        from(&sessions, args, io::stdin()).await?
    } else {
        let file = File::open(&args.file).map_err(|error| {
            Problem::new(
                Exit::Usage,
                format!("cannot open the file: {}", args.file.display()),
            )
            .cause(&error)
        })?;
        from(&sessions, args, file).await?
    };
    store.settle(&info.log).await;
    store.notice().iter().for_each(|line| tell(line));
    write(&format!(
        "imported {}: {} records\n",
        plain::line(&info.log.0),
        grouped(info.head.0)
    ))?;
    Ok(Exit::Finished)
}

async fn from(
    sessions: &Sessions,
    args: &Import,
    input: impl io::Read + Send,
) -> Result<adjutant::agent::LogInfo, Problem> {
    let mut named = Vec::new();
    let imported = sessions.import(BufReader::new(input), |log, about| {
        if let Some(name) = &args.name {
            *log = id(name);
        }
        // The user who resumes the session chooses the directory, not the author of the file.
        named.extend(
            about
                .labels
                .extract_if(.., |label| named::is_directory(label)),
        );
    });
    let imported = imported.await;
    let drop = |label: &Arc<str>| {
        tell(&format!(
            "notice: this label is not taken over: {}",
            plain::line(label)
        ))
    };
    named.iter().filter(|_| imported.is_ok()).for_each(drop);
    imported.map_err(|error| match error.kind {
        JournalErrorKind::Exists => {
            trouble::journal_problem(&error).hint("--as gives it another name")
        }
        // The error is about the file, not about a session of the store.
        JournalErrorKind::Corrupt => {
            Problem::from_error(Exit::Failed, &error).hint("nothing was imported")
        }
        _ => trouble::journal_problem(&error),
    })
}

fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

/// Creates a new private file.
fn create(path: &Path) -> Result<File, Problem> {
    private::file(OpenOptions::new().write(true).create_new(true))
        .open(path)
        .map_err(|error| {
            Problem::new(
                Exit::Usage,
                format!("cannot create the file: {}", path.display()),
            )
            .cause(&error)
        })
}

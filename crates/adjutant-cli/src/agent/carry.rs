//! Export and import of agents.

use std::path::{Path, PathBuf};

use adjutant::runtime::{
    Entry, ErrorKind, Trust,
    bundle::{self, ExportOptions, ImportOptions},
};
use serde_json::json;

use super::{create::value_of, place::AgentFolder};
use crate::{
    amount::grouped,
    args::agent::{Export, Import},
    consent::Consent,
    exit::Exit,
    plain,
    problem::Problem,
    screen::{tell, write},
    trouble::runtime_problem,
};

/// Writes an agent to a file.
pub(super) async fn export(args: &Export) -> Result<Exit, Problem> {
    let place = AgentFolder::new(&args.this.homed, Path::new("."));
    let entry = place.find(&args.this.name)?;
    if !entry.workspace.is_prepared() {
        prepare(&place, &entry).await?;
    }
    let file = args
        .file
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("{}.adjutant-agent", stem(&entry))));
    let to = file.clone();
    let (name, word) = (plain::line(&entry.name), plain::word(&entry.name));
    let options = ExportOptions::new();
    let options = if args.without_state {
        options.without_state()
    } else {
        options
    };
    let exported = tokio::task::spawn_blocking(move || bundle::export(&entry, &to, &options)).await;
    let exported = exported
        .map_err(|error| Problem::new(Exit::Failed, "the export broke off").cause(&error))?;
    let exported = exported.map_err(|error| match error.kind() {
        ErrorKind::Conflict => runtime_problem(&error).hint(format!(
            "`{}` stops it",
            place.command(&format!("agent stop {word}"))
        )),
        _ => runtime_problem(&error),
    })?;
    exported
        .skipped
        .iter()
        .for_each(|path| tell(&format!("warning: stays behind: {}", plain::line(path))));
    exported.needed.iter().for_each(|what| {
        tell(&format!(
            "needed where it is imported: {}",
            plain::line(what)
        ))
    });
    let text = if args.json {
        plain::json_line(json!({
            "agent": name, "file": file, "files": exported.files, "bytes": exported.bytes, "skipped": exported.skipped,
            "needed": exported.needed,
        }))
    } else {
        let [files, bytes] = [exported.files as u64, exported.bytes].map(grouped);
        format!(
            "exported {name} into {}: {files} files, {bytes} bytes\n",
            file.display()
        )
    };
    write(&text)?;
    Ok(Exit::Finished)
}

/// Returns the name of the file: the agent's name if it is a valid manifest name, which cannot be a path; otherwise its
/// id.
fn stem(entry: &Entry) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_name =
        !entry.name.is_empty() && entry.name.len() <= 64 && entry.name.chars().all(is_part);
    if is_name {
        entry.name.to_string()
    } else {
        entry.id.to_string()
    }
}

/// Creates the workspace, so that it can be exported.
async fn prepare(place: &AgentFolder, entry: &Entry) -> Result<(), Problem> {
    let _operator = place.home.operate().map_err(|error| {
        runtime_problem(&error).hint(format!(
            "`{}` makes it ready to be exported",
            place.command("agent start")
        ))
    })?;
    let loaded = place
        .backend()?
        .load()
        .await
        .map_err(|error| runtime_problem(&error))?;
    match loaded.instances.iter().find(|it| it.id() == entry.id) {
        Some(instance) => instance
            .prepare()
            .await
            .map_err(|error| runtime_problem(&error)),
        None => Err(Problem::new(
            Exit::Failed,
            format!("the agent {} cannot be used", entry.name),
        )),
    }
}

/// Reads an agent from a file.
pub(super) async fn import(args: &Import) -> Result<Exit, Problem> {
    let place = AgentFolder::new(&args.homed, Path::new("."));
    let mut options = ImportOptions::new();
    options.name = args.name.as_deref().map(Into::into);
    options.root.clone_from(&args.root);
    options.set = args
        .set
        .iter()
        .map(|(field, value)| (field.clone(), value_of(value)))
        .collect();
    let import = || {
        let (home, file, options) = (place.home.clone(), args.file.clone(), options.clone());
        let trust = Trust::Store(place.trusted.clone());
        let imported =
            tokio::task::spawn_blocking(move || bundle::import(&home, &file, &options, &trust));
        async {
            imported
                .await
                .map_err(|error| Problem::new(Exit::Failed, "the import broke off").cause(&error))
        }
    };
    let mut words = format!("agent import {}", plain::word(&args.file.to_string_lossy()));
    let root = args
        .root
        .iter()
        .map(|root| ("--root", root.to_string_lossy().into_owned()));
    let set = args
        .set
        .iter()
        .map(|(field, value)| ("--set", format!("{field}={value}")));
    root.chain(set)
        .for_each(|(option, value)| words += &format!(" {option} {}", plain::word(&value)));
    let command = place.command(&words);
    let consent = Consent {
        store: &place.trusted,
        given: &args.trust,
        command,
        option: "--trust",
    };
    let imported = match import().await? {
        Ok(imported) => imported,
        Err(error) => {
            consent.ask_for(&error)?;
            // The file may have been replaced by a file unknown to the user.
            import().await?.map_err(|error| runtime_problem(&error))?
        }
    };
    // The user trusted the content of the file, and so the agent that was created from it.
    consent.keep(&imported.wants)?;
    let (name, id) = (plain::line(&imported.name), imported.id);
    let text = if args.json {
        plain::json_line(json!({"agent": name, "id": id}))
    } else {
        format!("imported {name}: {id}\n")
    };
    write(&text)?;
    Ok(Exit::Finished)
}

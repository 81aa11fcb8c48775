//! The agents of a directory, made of its manifests.

use std::{
    fs,
    path::{Path, PathBuf},
};

use adjutant::runtime::{Backend, Entry, Goal, Overrides, Wants};

use crate::{
    agent::{
        create::{self, MANIFEST},
        place::AgentFolder,
    },
    args::agent::Up,
    consent::{self, Consent},
    exit::Exit,
    plain,
    problem::Problem,
    screen::Screen,
    trouble::of_runtime,
};

/// The ending of the names of further manifests.
const MORE: &str = ".agent.yaml";

/// The manifests of a directory: the one, then the further ones by their names.
///
/// # Errors
/// `Usage` if there is no such directory.
pub(crate) fn manifests(directory: &Path) -> Result<Vec<PathBuf>, Problem> {
    let entries = fs::read_dir(directory).map_err(|error| {
        Problem::new(Exit::Usage, format!("cannot read the directory: {}", directory.display())).cause(&error)
    })?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut more: Vec<String> = names.filter(|name| name.ends_with(MORE) && name.len() > MORE.len()).collect();
    more.sort();
    let first = Some(MANIFEST.to_owned()).filter(|name| directory.join(name).exists());
    Ok(first.into_iter().chain(more).map(|name| directory.join(name)).collect())
}

/// Makes the agents that are not there yet; they should run. Those that are there stay as they are, unless told otherwise.
///
/// What they want, and what those want that will run and were there before, is asked for before anything is made.
pub(super) async fn make(
    args: &Up,
    place: &AgentFolder,
    backend: &dyn Backend,
    files: &[PathBuf],
    screen: &Screen,
) -> Result<(), Problem> {
    let command = place.command(&format!("up {}", plain::word(&args.directory.to_string_lossy())));
    let consent = Consent { store: &place.trusted, given: &args.trust, command, option: "--trust" };
    let there = place.entries()?.all;
    let mut made = Vec::new();
    for file in files {
        let loaded = create::load(file)?;
        loaded.warnings.iter().for_each(|it| screen.tell(&format!("warning: {}", plain::line(&it.to_string()))));
        let name = &loaded.manifest.name;
        let former = there.iter().find(|entry| entry.name == *name);
        if let Some(entry) = former {
            if !is_changed(entry, file)? {
                continue;
            }
            if !args.recreate {
                screen.tell(&format!(
                    "notice: {name}: {} was changed since it was created, and what was created runs; --recreate makes it anew",
                    file.display()
                ));
                continue;
            }
        }
        let resolved = create::resolve(file, Overrides::default())?;
        consent.ask(&create::wants(&resolved)?)?;
        consent::warn(&resolved.manifest);
        made.push((file, former, resolved));
    }
    let is_kept = |entry: &&Entry| !made.iter().any(|(_, former, _)| former.is_some_and(|it| it.id == entry.id));
    for entry in there.iter().filter(is_kept) {
        if place.home.desired(entry.id).is_ok_and(|desired| desired.goal == Goal::Running) {
            consent.ask(&Wants::of_agent(&entry.workspace).map_err(|error| of_runtime(&error))?)?;
            consent::warn(&entry.resolved.manifest);
        }
    }
    for (file, former, resolved) in made {
        let name = std::sync::Arc::clone(&resolved.manifest.name);
        if let Some(entry) = former {
            remove(entry, backend).await?;
            screen.tell(&format!("{name}: removed, to be made anew"));
        }
        let instance = create::make(backend, resolved, &consent).await?;
        place.home.desire(instance.id(), Goal::Running).map_err(|error| of_runtime(&error))?;
        screen.tell(&format!("{name}: created of {}", file.display()));
    }
    Ok(())
}

/// True if the manifest now comes to something else than what was created, with the same changes.
fn is_changed(entry: &Entry, file: &Path) -> Result<bool, Problem> {
    let now = create::resolve(file, entry.resolved.overrides.clone())?;
    Ok(now != *entry.resolved)
}

async fn remove(entry: &Entry, backend: &dyn Backend) -> Result<(), Problem> {
    let loaded = backend.load().await.map_err(|error| of_runtime(&error))?;
    match loaded.instances.iter().find(|instance| instance.id() == entry.id) {
        Some(instance) => instance.remove().await.map_err(|error| of_runtime(&error)),
        None => Err(Problem::new(Exit::Failed, format!("the agent {} cannot be used", entry.name))),
    }
}

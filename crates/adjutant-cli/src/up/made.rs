//! Creates the agents of a directory from its manifests.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant::runtime::{Backend, Entry, Goal, Resolved, Wants};

use crate::{
    agent::{
        create::{self, MANIFEST},
        place::AgentFolder,
        update,
    },
    amount::grouped,
    args::agent::Up,
    consent::{self, Consent},
    exit::Exit,
    plain,
    problem::Problem,
    screen::Screen,
    trouble::runtime_problem,
};

/// The suffix of the names of further manifests.
const MORE: &str = ".agent.yaml";
/// The maximum depth for counting files.
const MAX_DEPTH: usize = 32;

/// Returns the manifests of a directory: the main one, then the further ones by name.
///
/// # Errors
/// `Usage` if there is no such directory.
pub(crate) fn manifests(directory: &Path) -> Result<Vec<PathBuf>, Problem> {
    let entries = fs::read_dir(directory).map_err(|error| {
        Problem::new(
            Exit::Usage,
            format!("cannot read the directory: {}", directory.display()),
        )
        .cause(&error)
    })?;
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let mut more: Vec<String> = names
        .filter(|name| name.ends_with(MORE) && name.len() > MORE.len())
        .collect();
    more.sort();
    let first = Some(MANIFEST.to_owned()).filter(|name| directory.join(name).exists());
    Ok(first
        .into_iter()
        .chain(more)
        .map(|name| directory.join(name))
        .collect())
}

/// Creates missing agents, which should run. Existing agents with changes are updated, or created again if requested.
///
/// The permissions of new agents, and of existing ones that will run, are confirmed before anything is created.
pub(super) async fn make(
    args: &Up,
    place: &AgentFolder,
    backend: &dyn Backend,
    files: &[PathBuf],
    screen: &Screen,
) -> Result<(), Problem> {
    let command = place.command(&format!(
        "up {}",
        plain::word(&args.directory.to_string_lossy())
    ));
    let consent = Consent {
        store: &place.trusted,
        given: &args.trust,
        command,
        option: "--trust",
    };
    let there = place.entries()?.all;
    let (mut made, mut updated) = (Vec::new(), Vec::new());
    let mut names = BTreeMap::new();
    for file in files {
        // The next version is read before its manifest, so that a concurrent change is detected as newer.
        let next: BTreeMap<_, _> = there
            .iter()
            .map(|entry| (&entry.name, update::next(entry)))
            .collect();
        let loaded = create::load(file)?;
        if let Some(other) = names.insert(Arc::clone(&loaded.manifest.name), file) {
            return Err(duplicate_name_problem(&loaded.manifest.name, other, file));
        }
        loaded
            .warnings
            .iter()
            .for_each(|it| screen.tell(&format!("warning: {}", plain::line(&it.to_string()))));
        let former = there
            .iter()
            .find(|entry| entry.name == loaded.manifest.name);
        let source = former.and_then(|entry| entry.resolved.sources.first());
        if let Some(source) = source.filter(|source| {
            source
                .canonicalize()
                .is_ok_and(|it| file.canonicalize().is_ok_and(|file| file != it))
        }) {
            return Err(duplicate_name_problem(&loaded.manifest.name, source, file));
        }
        let next = next.get(&loaded.manifest.name).cloned();
        let overrides = next
            .as_ref()
            .map(|next| next.overrides.clone())
            .unwrap_or_default();
        let resolved = create::resolve(file, overrides)?;
        let is_changed = next.as_ref().is_none_or(|next| resolved != **next);
        if is_changed {
            consent.ask(&create::wants(&resolved)?)?;
            consent::warn(&resolved.manifest);
        }
        match former.zip(next) {
            Some((entry, next)) if !(args.recreate && is_changed) => {
                updated.push((entry, next, resolved))
            }
            _ => made.push((file, former, resolved)),
        }
    }
    let is_gone = |entry: &Entry| {
        made.iter()
            .any(|(_, former, _)| former.is_some_and(|it| it.id == entry.id))
    };
    for entry in there.iter().filter(|entry| !is_gone(entry)) {
        if place
            .home
            .desired(entry.id)
            .is_ok_and(|desired| desired.goal == Goal::Running)
        {
            consent.ask(
                &Wants::from_agent(&entry.workspace).map_err(|error| runtime_problem(&error))?,
            )?;
            consent::warn(&entry.resolved.manifest);
        }
    }
    let gone: Vec<&Entry> = made.iter().filter_map(|(_, former, _)| *former).collect();
    agreed(args, place, &gone, screen)?;
    for (entry, next, resolved) in updated {
        renew(place, (entry, &next), resolved, &consent, screen).await?;
    }
    for (file, former, resolved) in made {
        let name = Arc::clone(&resolved.manifest.name);
        if let Some(entry) = former {
            remove(entry, backend).await?;
            screen.tell(&format!("{name}: removed, to be made anew"));
        }
        let instance = create::make(backend, resolved, &consent).await?;
        place
            .home
            .desire(instance.id(), Goal::Running)
            .map_err(|error| runtime_problem(&error))?;
        screen.tell(&format!("{name}: created of {}", file.display()));
    }
    Ok(())
}

/// Returns the problem that two manifests have the same name.
fn duplicate_name_problem(name: &str, one: &Path, other: &Path) -> Problem {
    let text = format!(
        "two manifests describe the agent {name}: {} and {}",
        one.display(),
        other.display()
    );
    Problem::new(Exit::Usage, text).hint(
        "give one of them another `name`; `adjutant agent update NAME FILE` takes another file",
    )
}

/// Updates an agent whose manifest or files were changed; a failure leaves it unchanged.
async fn renew(
    place: &AgentFolder,
    (entry, next): (&Entry, &Resolved),
    resolved: Resolved,
    consent: &Consent<'_>,
    screen: &Screen,
) -> Result<(), Problem> {
    let kept = match update::make(entry, next, resolved.clone()).await {
        Ok(made) => update::keep(entry, &made, &resolved, consent).map(|()| made.changes().clone()),
        Err(problem) => Err(problem),
    };
    match kept {
        Ok(changes) if changes.is_empty() => {}
        Ok(changes) => {
            update::show(entry, &changes, |line| screen.tell(line));
            // Another operator left the agent running: it is restarted with the update.
            if place
                .home
                .desired(entry.id)
                .is_ok_and(|desired| desired.goal == Goal::Running)
            {
                place
                    .home
                    .desire_restart(entry.id)
                    .map_err(|error| runtime_problem(&error))?;
            }
            screen.tell(&format!("{}: updated", entry.name));
        }
        Err(problem) => {
            screen.tell(&format!(
                "warning: {}: not updated, what was made before runs: {}",
                entry.name,
                problem.line()
            ));
        }
    }
    Ok(())
}

/// Prints the data that is destroyed when agents are created again, and asks for a confirmation.
fn agreed(args: &Up, place: &AgentFolder, gone: &[&Entry], screen: &Screen) -> Result<(), Problem> {
    for entry in gone {
        let [state, work] = [entry.workspace.state(), entry.workspace.work()]
            .map(|folder| grouped(bytes(&folder, 0)));
        screen.insist(&format!(
            "{}: --recreate destroys its sessions, memories, board and notes ({state} bytes) and its working folder \
             ({work} bytes)",
            entry.name
        ));
    }
    if gone.is_empty() || args.yes || consent::answered("destroy that? [y/N] ")? {
        return Ok(());
    }
    let problem = Problem::new(
        Exit::Usage,
        "nobody agreed to destroy that, so nothing was done",
    );
    let command = place.command(&format!(
        "up {}",
        plain::word(&args.directory.to_string_lossy())
    ));
    Err(problem.hint(format!(
        "`{command}` updates them and keeps all of it; `{command} --recreate --yes` destroys it"
    )))
}

/// Counts the bytes of the files of a directory.
fn bytes(folder: &Path, depth: usize) -> u64 {
    if depth > MAX_DEPTH {
        return 0;
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(about) if about.is_dir() => bytes(&entry.path(), depth + 1),
        Ok(about) => about.len(),
        Err(_) => 0,
    };
    entries.map(of).sum()
}

async fn remove(entry: &Entry, backend: &dyn Backend) -> Result<(), Problem> {
    let loaded = backend
        .load()
        .await
        .map_err(|error| runtime_problem(&error))?;
    match loaded
        .instances
        .iter()
        .find(|instance| instance.id() == entry.id)
    {
        Some(instance) => instance
            .remove()
            .await
            .map_err(|error| runtime_problem(&error)),
        None => Err(Problem::new(
            Exit::Failed,
            format!("the agent {} cannot be used", entry.name),
        )),
    }
}

//! Updates agents from a changed manifest, and keeps their data.

use std::{path::Path, sync::Arc, time::Duration};

use adjutant::runtime::{
    Changes, Entry, Goal, MadeUpdate, Resolved, UpdateFile, Wants, manifest::OnRestart,
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    create,
    place::AgentFolder,
    reach::{self, now_ms},
    standing,
};
use crate::{
    args::agent::Update,
    consent::{self, Consent},
    exit::Exit,
    plain,
    problem::Problem,
    screen::{tell, write},
    trouble::runtime_problem,
};

/// The maximum time for an operator to confirm an update, and the interval between two checks.
const NOTED_WITHIN: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

/// Updates an agent.
pub(super) async fn update(args: &Update) -> Result<Exit, Problem> {
    let place = AgentFolder::new(&args.this.homed, Path::new("."));
    let entry = place.find(&args.this.name)?;
    reach::awake(&place)?;
    let name = plain::word(&entry.name);
    let (before, next) = (last(&entry)?, next(&entry));
    let resolved = create::resolve(file(args, &entry.name, &next)?, overrides(args, &next))?;
    let command = place.command(&format!("agent update {name}"));
    let consent = Consent {
        store: &place.trusted,
        given: &args.trust,
        command,
        option: "--trust",
    };
    consent.ask(&create::wants(&resolved)?)?;
    consent::warn(&resolved.manifest);
    let on_restart = resolved.manifest.on_restart;
    let made = make(&entry, &next, resolved.clone()).await?;
    let changes = made.changes().clone();
    show(&entry, &changes, tell);
    if !args.dry_run {
        keep(&entry, &made, &resolved, &consent)?;
    }
    drop(made);
    let goal = place
        .home
        .desired(entry.id)
        .map_or(Goal::Stopped, |desired| desired.goal);
    let runs = entry
        .workspace
        .is_hosted()
        .map_err(|error| runtime_problem(&error))?
        || goal == Goal::Running;
    if !changes.is_empty() && !args.dry_run {
        at_work(&entry, on_restart).await;
    }
    let stands = match (changes.is_empty(), args.dry_run, runs) {
        (true, ..) => "nothing has changed".to_owned(),
        (false, true, _) => "nothing was done".to_owned(),
        (false, false, false) => "updated; it begins with that when it is started".to_owned(),
        (false, false, true) => format!("updated, {}", restarted(&place, &entry, before).await?),
    };
    let name = plain::line(&entry.name);
    write(&match args.json {
        true => plain::json_line(
            json!({"agent": name, "id": entry.id, "changes": changes, "update": stands}),
        ),
        false => format!("{name}: {}\n", plain::line(&stands)),
    })?;
    Ok(Exit::Finished)
}

/// Prints how active runs are handled.
async fn at_work(entry: &Entry, on_restart: OnRestart) {
    let Ok(client) = standing::client(entry) else {
        return;
    };
    let runs = client.status().await.map_or(0, |report| report.runs);
    let then = match on_restart {
        OnRestart::Resume => "they go on after the update",
        OnRestart::Cancel => "they are cancelled, as `on_restart` says",
        OnRestart::Ask => "they wait for a word after the update, as `on_restart` says",
    };
    if runs > 0 {
        tell(&format!(
            "{}: runs at work: {runs}; {then}",
            plain::line(&entry.name)
        ));
    }
}

/// Restarts the agent with its update; returns its status then.
///
/// # Errors
/// `Failed` if the update was rolled back.
async fn restarted(
    place: &AgentFolder,
    entry: &Entry,
    before: Option<UpdateFile>,
) -> Result<String, Problem> {
    let stands = reach::restart(place, entry.clone()).await?;
    let (workspace, until) = (&entry.workspace, Instant::now() + NOTED_WITHIN);
    // A process answers shortly before its operator has confirmed the update.
    while workspace.is_on_trial()
        || workspace.update().is_some() && workspace.is_hosted().unwrap_or(false)
    {
        if Instant::now() > until {
            let text = format!(
                "the update of {} was made, and whether it holds is not noted",
                entry.name
            );
            return Err(Problem::new(Exit::Failed, text).hint("its next start reports the reason"));
        }
        sleep(LOOK).await;
    }
    match last(entry)?
        .filter(|told| before.as_ref() != Some(told))
        .and_then(|told| told.failed)
    {
        None => Ok(stands),
        Some(why) => {
            let text = format!(
                "the update of {} failed and was taken back, what ran before runs: {why}",
                entry.name
            );
            Err(Problem::new(Exit::Failed, text))
        }
    }
}

/// Returns the result of the last update.
fn last(entry: &Entry) -> Result<Option<UpdateFile>, Problem> {
    entry
        .workspace
        .last_update()
        .map_err(|error| runtime_problem(&error))
}

/// Returns the version for the next start: an update, or the running one.
pub(crate) fn next(entry: &Entry) -> Arc<Resolved> {
    let kept = entry.workspace.update().and_then(|it| it.agent().ok());
    let next = kept.or_else(|| entry.workspace.agent().ok());
    next.map_or_else(|| Arc::clone(&entry.resolved), |it| it.resolved)
}

/// Returns the file of the manifest.
fn file<'a>(args: &'a Update, name: &str, next: &'a Resolved) -> Result<&'a Path, Problem> {
    let problem = |what: String| {
        let problem = Problem::new(Exit::Usage, format!("the agent {name} was not made {what}"));
        problem.hint("name the manifest that it is to be made of")
    };
    match (&args.file, next.sources.first()) {
        (Some(file), _) => Ok(file),
        (None, None) => Err(problem("of a file".to_owned())),
        // The manifest path of an imported agent belongs to its original place.
        (None, Some(source)) if source.is_relative() => Err(problem(format!(
            "here: its {} is not known",
            source.display()
        ))),
        (None, Some(source)) => Ok(source),
    }
}

/// Returns the changes to the manifest from its creation, and the new ones.
fn overrides(args: &Update, next: &Resolved) -> adjutant::runtime::Overrides {
    let mut overrides = next.overrides.clone();
    overrides.model = args.model.as_deref().map(Into::into).or(overrides.model);
    overrides.set.extend(
        args.set
            .iter()
            .map(|(path, value)| (path.clone(), create::value_of(value))),
    );
    overrides
}

/// Prepares an update next to the running version. `next` is the version that the agent would have started before its
/// manifest was read.
///
/// # Errors
/// If the update cannot be prepared, or another process has updated the agent since; nothing has changed then.
pub(crate) async fn make(
    entry: &Entry,
    next: &Resolved,
    resolved: Resolved,
) -> Result<MadeUpdate, Problem> {
    let host = std::env::current_exe().map_err(|error| {
        Problem::new(Exit::Failed, "this program cannot be found").cause(&error)
    })?;
    let workspace = entry.workspace.clone();
    let made =
        tokio::task::spawn_blocking(move || workspace.make_update(&resolved, &host, now_ms()))
            .await;
    let made =
        made.map_err(|error| Problem::new(Exit::Failed, "the update broke off").cause(&error))?;
    let made = made.map_err(|error| runtime_problem(&error))?;
    if *self::next(entry) != *next {
        let text = format!(
            "somebody else has updated the agent {} meanwhile",
            entry.name
        );
        return Err(Problem::new(Exit::Failed, text).hint("try again: its manifest is read anew"));
    }
    Ok(made)
}

/// Stores an update for the next start, and the trust in it; without changes, nothing is stored.
///
/// # Errors
/// If the update is not trusted or cannot be stored; nothing has changed then.
pub(crate) fn keep(
    entry: &Entry,
    made: &MadeUpdate,
    resolved: &Resolved,
    consent: &Consent<'_>,
) -> Result<(), Problem> {
    if made.changes().is_empty() {
        return entry
            .workspace
            .drop_update()
            .map_err(|error| runtime_problem(&error));
    }
    if !consent.holds(&create::wants(resolved)?)? {
        let text = "what the agent wants changed while it was asked about: it is not trusted, and not updated";
        return Err(Problem::new(Exit::Usage, text));
    }
    made.keep().map_err(|error| runtime_problem(&error))?;
    let kept = entry
        .workspace
        .update()
        .unwrap_or_else(|| entry.workspace.clone());
    consent.keep(&Wants::from_agent(&kept).map_err(|error| runtime_problem(&error))?)
}

/// Prints the changes, one per line.
pub(crate) fn show(entry: &Entry, changes: &Changes, tell: impl Fn(&str)) {
    let name = plain::line(&entry.name);
    changes
        .to_string()
        .lines()
        .for_each(|line| tell(&format!("{name}: {}", plain::line(line))));
}

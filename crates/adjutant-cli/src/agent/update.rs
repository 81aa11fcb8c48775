//! Agents that are made anew of a manifest that was changed, and keep what they have.

use std::path::Path;

use adjutant::runtime::{Changes, Entry, Goal, Resolved, Wants, manifest::OnRestart};
use serde_json::json;

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
    trouble::of_runtime,
};

/// Updates an agent.
pub(super) async fn update(args: &Update) -> Result<Exit, Problem> {
    let place = AgentFolder::of(&args.this.homed, Path::new("."));
    let entry = place.find(&args.this.name)?;
    reach::awake(&place)?;
    let name = plain::word(&entry.name);
    let resolved = create::resolve(file(args, &entry)?, overrides(args, &entry))?;
    let command = place.command(&format!("agent update {name}"));
    let consent = Consent { store: &place.trusted, given: &args.trust, command, option: "--trust" };
    consent.ask(&create::wants(&resolved)?)?;
    consent::warn(&resolved.manifest);
    let on_restart = resolved.manifest.on_restart;
    let changes = stage(&entry, resolved, &consent).await?;
    show(&entry, &changes, tell);
    if args.dry_run {
        entry.workspace.drop_update().map_err(|error| of_runtime(&error))?;
    }
    let goal = place.home.desired(entry.id).map_or(Goal::Stopped, |desired| desired.goal);
    let runs = entry.workspace.is_hosted().map_err(|error| of_runtime(&error))? || goal == Goal::Running;
    if !changes.is_empty() && !args.dry_run {
        at_work(&entry, on_restart).await;
    }
    let stands = match (changes.is_empty(), args.dry_run, runs) {
        (true, ..) => "nothing has changed".to_owned(),
        (false, true, _) => "nothing was done".to_owned(),
        (false, false, false) => "updated; it begins with that when it is started".to_owned(),
        (false, false, true) => format!("updated, {}", restarted(&place, &entry).await?),
    };
    let name = plain::line(&entry.name);
    write(&match args.json {
        true => plain::json_line(json!({"agent": name, "id": entry.id, "changes": changes, "update": stands})),
        false => format!("{name}: {}\n", plain::line(&stands)),
    })?;
    Ok(Exit::Finished)
}

/// Says what becomes of the runs that are at work.
async fn at_work(entry: &Entry, on_restart: OnRestart) {
    let Ok(client) = standing::client(entry) else { return };
    let runs = client.status().await.map_or(0, |report| report.runs);
    let then = match on_restart {
        OnRestart::Resume => "they go on after the update",
        OnRestart::Cancel => "they are cancelled, as `on_restart` says",
        OnRestart::Ask => "they wait for a word after the update, as `on_restart` says",
    };
    if runs > 0 {
        tell(&format!("{}: runs at work: {runs}; {then}", plain::line(&entry.name)));
    }
}

/// Starts it again with its update; where it stands then.
///
/// # Errors
/// `Failed` if the update was taken back.
async fn restarted(place: &AgentFolder, entry: &Entry) -> Result<String, Problem> {
    let last = || entry.workspace.last_update().map_err(|error| of_runtime(&error));
    let before = last()?;
    let stands = reach::restart(place, entry.clone()).await?;
    match last()?.filter(|told| before.as_ref() != Some(told)).and_then(|told| told.failed) {
        None => Ok(stands),
        Some(why) => {
            let text = format!("the update of {} failed and was taken back, what ran before runs: {why}", entry.name);
            Err(Problem::new(Exit::Failed, text))
        }
    }
}

/// The manifest that is meant.
fn file<'a>(args: &'a Update, entry: &'a Entry) -> Result<&'a Path, Problem> {
    let problem = |what: String| {
        let problem = Problem::new(Exit::Usage, format!("the agent {} was not made {what}", entry.name));
        problem.hint("name the manifest that it is to be made of")
    };
    match (&args.file, entry.resolved.sources.first()) {
        (Some(file), _) => Ok(file),
        (None, None) => Err(problem("of a file".to_owned())),
        // One that came in a bundle names its manifest as it was called where it came from.
        (None, Some(source)) if source.is_relative() => {
            Err(problem(format!("here: its {} is not known", source.display())))
        }
        (None, Some(source)) => Ok(source),
    }
}

/// The changes that its creator made to its manifest, and those that are made now.
fn overrides(args: &Update, entry: &Entry) -> adjutant::runtime::Overrides {
    let mut overrides = entry.resolved.overrides.clone();
    overrides.model = args.model.as_deref().map(Into::into).or(overrides.model);
    overrides.set.extend(args.set.iter().map(|(path, value)| (path.clone(), create::value_of(value))));
    overrides
}

/// Makes an update beside what runs, which is trusted as its manifest is; without changes there is none.
///
/// # Errors
/// If it cannot be made: then nothing has changed.
pub(crate) async fn stage(entry: &Entry, resolved: Resolved, consent: &Consent<'_>) -> Result<Changes, Problem> {
    let host = std::env::current_exe()
        .map_err(|error| Problem::new(Exit::Failed, "this program cannot be found").cause(&error))?;
    let (workspace, asked) = (entry.workspace.clone(), resolved.clone());
    let staged = tokio::task::spawn_blocking(move || workspace.stage_update(&resolved, &host, now_ms())).await;
    let staged = staged.map_err(|error| Problem::new(Exit::Failed, "the update broke off").cause(&error))?;
    let changes = staged.map_err(|error| of_runtime(&error))?;
    let drop_it = || entry.workspace.drop_update().map_err(|error| of_runtime(&error));
    if changes.is_empty() {
        drop_it()?;
        return Ok(changes);
    }
    if !consent.holds(&create::wants(&asked)?)? {
        drop_it()?;
        let text = "what the agent wants changed while it was asked about: it is not trusted, and not updated";
        return Err(Problem::new(Exit::Usage, text));
    }
    let made = entry.workspace.update().unwrap_or_else(|| entry.workspace.clone());
    consent.keep(&Wants::of_agent(&made).map_err(|error| of_runtime(&error))?)?;
    Ok(changes)
}

/// Shows what changes, a line for each thing.
pub(crate) fn show(entry: &Entry, changes: &Changes, tell: impl Fn(&str)) {
    let name = plain::line(&entry.name);
    changes.to_string().lines().for_each(|line| tell(&format!("{name}: {}", plain::line(line))));
}

//! Creates agents from manifests.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use adjutant::runtime::{
    Backend, ErrorKind, Instance, Manifest, Overrides, Resolved, Wants, host, manifest,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::place::{AgentFolder, host_program};
use crate::{
    args::agent::{Changes, Create},
    consent::Consent,
    exit::Exit,
    plain,
    problem::Problem,
    screen::{tell, write},
    trouble::runtime_problem,
};

/// The default file of a manifest.
pub(crate) const MANIFEST: &str = "adjutant.yaml";

/// Creates an agent from a manifest.
pub(super) async fn create(args: &Create) -> Result<Exit, Problem> {
    let place = AgentFolder::new(&args.homed, Path::new("."));
    let file = args.file.as_deref().unwrap_or(Path::new(MANIFEST));
    let resolved = resolve(file, overrides(&args.changes))?;
    let command = place.command(&format!(
        "agent create {}",
        plain::word(&file.to_string_lossy())
    ));
    let consent = Consent {
        store: &place.trusted,
        given: &args.trust,
        command,
        option: "--trust",
    };
    consent.ask(&wants(&resolved)?)?;
    let instance = make(&*place.backend()?, resolved, &consent).await?;
    place
        .home
        .touch()
        .map_err(|error| runtime_problem(&error))?;
    let (name, id) = (instance.name(), instance.id());
    let text = if args.json {
        plain::json_line(json!({"agent": &*name, "id": id}))
    } else {
        format!("{id}\n")
    };
    write(&text)?;
    if !args.json {
        tell(&format!(
            "created {name}; `{}` starts it",
            place.command(&format!("agent start {}", plain::word(&name)))
        ));
    }
    Ok(Exit::Finished)
}

/// Reads a manifest with these changes.
///
/// # Errors
/// `Usage` with all errors of the manifest.
pub(crate) fn resolve(file: &Path, overrides: Overrides) -> Result<Resolved, Problem> {
    let loaded = load(file)?;
    loaded
        .warnings
        .iter()
        .for_each(|warning| tell(&format!("warning: {}", plain::line(&warning.to_string()))));
    loaded
        .resolve(overrides)
        .map_err(|problems| wrong(&problems))
}

/// Reads a manifest.
///
/// # Errors
/// `Usage` if it does not exist, with all of its errors.
pub(crate) fn load(file: &Path) -> Result<manifest::Loaded, Problem> {
    if !file.exists() {
        let problem = Problem::new(
            Exit::Usage,
            format!("there is no manifest here: {}", file.display()),
        );
        return Err(problem.hint("`adjutant init` writes one that runs at once"));
    }
    let lookup = |name: &str| std::env::var(name).ok();
    let loaded = match host_program() {
        Some(program) => {
            let names = host::part_names(&program).map_err(|error| runtime_problem(&error))?;
            Manifest::load_with(file, lookup, &names)
        }
        None => Manifest::load(file, lookup),
    };
    loaded.map_err(|problems| wrong(&problems))
}

/// Returns the permissions that a manifest requests beyond its own directory.
fn wrong(problems: &manifest::Problems) -> Problem {
    let mut lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let last = lines
        .pop()
        .unwrap_or_else(|| "the manifest is wrong".to_owned());
    lines
        .iter()
        .for_each(|line| tell(&format!("error: {}", plain::line(line))));
    Problem::new(Exit::Usage, last)
}

/// Records an agent. Its manifest is trusted, and so is the recorded agent.
pub(crate) fn wants(resolved: &Resolved) -> Result<Wants, Problem> {
    let folder = resolved.sources.first().and_then(|file| file.parent());
    Wants::from_manifest(&resolved.manifest, folder.unwrap_or(Path::new(".")))
        .map_err(|error| runtime_problem(&error))
}

/// Writes an agent down, whose manifest is trusted: so is the agent, as it is written.
pub(crate) async fn make(
    backend: &dyn Backend,
    resolved: Resolved,
    consent: &Consent<'_>,
) -> Result<Arc<dyn Instance>, Problem> {
    let asked = resolved.clone();
    let instance = backend
        .create(Uuid::now_v7(), resolved)
        .await
        .map_err(|error| match error.kind() {
            ErrorKind::Exists => runtime_problem(&error).hint("--name gives it another name"),
            _ => runtime_problem(&error),
        })?;
    if !consent.holds(&wants(&asked)?)? {
        let problem = Problem::new(
            Exit::Usage,
            "what the agent wants changed while it was asked about: it is not trusted",
        );
        return Err(problem.hint("its start requests its new permissions"));
    }
    consent.keep(
        &Wants::from_agent(&instance.workspace()).map_err(|error| runtime_problem(&error))?,
    )?;
    Ok(instance)
}

/// Returns the changes that the command line makes.
fn overrides(changes: &Changes) -> Overrides {
    let pairs = |pairs: &[(String, String)]| pairs.iter().cloned().collect::<BTreeMap<_, _>>();
    let mut overrides = Overrides::default();
    overrides.name = changes.name.as_deref().map(Arc::from);
    overrides.model = changes.model.as_deref().map(Arc::from);
    overrides.labels = pairs(&changes.labels);
    overrides.environment = pairs(&changes.environment);
    overrides.set = changes
        .set
        .iter()
        .map(|(path, value)| (path.clone(), value_of(value)))
        .collect();
    overrides
}

/// Parses a value as JSON, or else returns it as text.
pub(super) fn value_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

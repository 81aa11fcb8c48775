//! The skills of a run: where they are found, and the messages about them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use adjutant::{
    runtime::Wants,
    skills::{Error, ErrorKind, Finding, FindingKind, Root, Severity, Skills, Trust, TrustAsk},
};

use crate::{
    args::Taught,
    consent::{self, Trusting},
    exit::Exit,
    plain,
    problem::Problem,
    project::{Project, home},
    settings,
};

/// The directories of skills below a project.
const PROJECT: &str = ".adjutant/skills";
/// The directories of skills below a project and the home that several programs share.
///
/// Sources: agentskills.io, guide for clients ("Where to scan"); code.claude.com/docs/skills;
/// developers.openai.com/codex/skills; November 2026.
const SHARED: [&str; 3] = [".agents/skills", ".claude/skills", ".codex/skills"];

/// Finds the skills for a project. Skills of the project need trust, which is requested as `trusting` permits.
///
/// # Errors
/// `Usage` if a named directory does not exist, or cannot be opened.
pub(crate) fn find(
    taught: &Taught,
    directory: &Path,
    trusting: Trusting,
) -> Result<Skills, Problem> {
    let trust = match taught.trust || taught.trust_skills {
        true => Trust::Allowed,
        false => Trust::ask(move |ask| consent::is_trusted(&wants(ask), trusting).unwrap_or(false)),
    };
    let named = taught
        .folders
        .iter()
        .map(|path| Root::named(path).follow_links());
    Skills::load(named.chain(roots(directory, &trust))).map_err(|error| skill_problem(&error))
}

/// Returns what the skills of a project want, for each of its directories of skills.
///
/// # Errors
/// As [`find`].
pub(crate) fn project_wants(directory: &Path) -> Result<Vec<Wants>, Problem> {
    let all = Arc::new(Mutex::new(Vec::new()));
    let asked = Arc::clone(&all);
    let trust = Trust::ask(move |ask| {
        asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(wants(ask));
        false
    });
    Skills::load(roots(directory, &trust)).map_err(|error| skill_problem(&error))?;
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *all))
}

/// The directories of skills of the project and the user.
fn roots(directory: &Path, trust: &Trust) -> Vec<Root> {
    let project = Project::find(directory);
    let shared = || {
        home()
            .into_iter()
            .flat_map(|home| SHARED.map(|path| home.join(path)))
    };
    let own = settings::folder().map(|folder| folder.join("skills"));
    let user: Vec<PathBuf> = own.into_iter().chain(shared()).collect();
    // In the home itself, everything is the user's.
    let real: Vec<PathBuf> = user
        .iter()
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    let mut roots = Vec::new();
    for above in &project.directories {
        for path in [PROJECT].iter().chain(&SHARED).map(|path| above.join(path)) {
            if !path.canonicalize().is_ok_and(|path| real.contains(&path)) {
                roots.push(
                    Root::project(path)
                        .within(&project.root)
                        .trust(trust.clone()),
                );
            }
        }
    }
    roots.extend(user.into_iter().map(Root::user));
    for (scope, plugin) in project.plugins().0 {
        let Some(skills) = plugin.skills else {
            continue;
        };
        let root = match scope {
            "project" => Root::project(skills).trust(trust.clone()),
            _ => Root::user(skills),
        };
        roots.push(root.within(plugin.root).plugin());
    }
    roots
}

fn wants(ask: &TrustAsk) -> Wants {
    let skills = ask.names.iter().zip(&ask.folders);
    Wants::of_skills(&ask.path, skills.map(|(name, path)| (&**name, &**path)))
}

/// Converts an error of skills to a problem.
pub(crate) fn skill_problem(error: &Error) -> Problem {
    match error.kind() {
        ErrorKind::Io => Problem::from_error(Exit::Failed, error),
        _ => Problem::from_error(Exit::Usage, error),
    }
}

/// The messages of a run about skills: the directories of the used ones, and problems. Problems of untrusted skills,
/// unknown fields and missing quotes are omitted: `adjutant skills list` prints them.
pub(crate) fn told(skills: &Skills) -> Vec<String> {
    let untrusted: Vec<&Finding> = skills
        .findings()
        .iter()
        .filter(|finding| finding.kind == FindingKind::Untrusted)
        .collect();
    let matters = |finding: &&Finding| {
        let file = Path::new(&*finding.place.file);
        let is_used = || {
            untrusted
                .iter()
                .all(|root| !file.starts_with(&*root.place.file))
        };
        let is_minor = finding.kind == FindingKind::UnknownField
            || (finding.kind == FindingKind::Yaml && finding.severity == Severity::Warning);
        finding.kind == FindingKind::Untrusted || (!is_minor && is_used())
    };
    let mut sources: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for skill in skills.iter() {
        let directory = skill.directory();
        let source = directory.parent().unwrap_or(&directory);
        *sources.entry(source.to_owned()).or_default() += 1;
    }
    let sources: Vec<String> = sources
        .iter()
        .map(|(path, count)| format!("{count} of {}", plain::line(&path.to_string_lossy())))
        .collect();
    let used = (!sources.is_empty()).then(|| format!("skills: {}", sources.join(", ")));
    let findings = skills.findings().iter().filter(matters).map(line);
    used.into_iter().chain(findings).collect()
}

/// Formats a finding in one line.
pub(crate) fn line(finding: &Finding) -> String {
    let hint = match finding.kind {
        FindingKind::Untrusted => "; hint: read them, then say --trust-skills",
        _ => "",
    };
    format!("skills: {}{hint}", plain::line(&finding.to_string()))
}

//! The skills of a run: where they are found, and the messages about them.

use std::{
    env,
    path::{Path, PathBuf},
};

use adjutant::skills::{Error, ErrorKind, Finding, FindingKind, Root, Skills, Trust};

use crate::{args::Taught, exit::Exit, plain, problem::Problem};

/// The directory of skills in a project.
const PROJECT: &str = ".adjutant/skills";

/// Finds the skills for a project.
///
/// # Errors
/// `Usage` if a named directory does not exist, or cannot be opened.
pub(crate) fn find(taught: &Taught, directory: &Path) -> Result<Skills, Problem> {
    let trust = if taught.trust || taught.trust_skills {
        Trust::Allowed
    } else {
        Trust::Denied
    };
    let project = Root::project(directory.join(PROJECT))
        .within(directory)
        .trust(trust);
    let named = taught.folders.iter().map(Root::named);
    let roots = named.chain([project]).chain(usual().map(Root::user));
    Skills::load(roots).map_err(|error| of(&error))
}

/// Converts an error of skills to a problem.
pub(crate) fn of(error: &Error) -> Problem {
    match error.kind() {
        ErrorKind::Io => Problem::of(Exit::Failed, error),
        _ => Problem::of(Exit::Usage, error),
    }
}

/// The messages of a run about skills. Errors of untrusted ones are not included: they are not used, and `adjutant
/// skills list` prints them.
pub(crate) fn told(skills: &Skills, taught: &Taught, directory: &Path) -> Vec<String> {
    let (project, is_trusted) = (directory.join(PROJECT), taught.trust || taught.trust_skills);
    let matters = |it: &&Finding| {
        is_trusted
            || it.kind == FindingKind::Untrusted
            || !Path::new(&*it.place.file).starts_with(&project)
    };
    skills.findings().iter().filter(matters).map(line).collect()
}

/// Formats a finding in one line.
pub(crate) fn line(finding: &Finding) -> String {
    let hint = match finding.kind {
        FindingKind::Untrusted => "; hint: read them, then say --trust-skills",
        _ => "",
    };
    format!("skills: {}{hint}", plain::line(&finding.to_string()))
}

/// Returns the directory of the user's own skills.
fn usual() -> Option<PathBuf> {
    let of = |variable: &str| {
        env::var_os(variable)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let settings = of("XDG_CONFIG_HOME").or_else(|| of("HOME").map(|home| home.join(".config")));
    settings.map(|folder| folder.join("adjutant/skills"))
}

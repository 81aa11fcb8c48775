//! Finds sessions by their names or directories.

use std::path::Path;

use adjutant::{
    agent::{JournalErrorKind, LogId, LogInfo, LogQuery, Sessions},
    toolkit::AccessMode,
};

use crate::{consent, exit::Exit, near, plain, problem::Problem, repository::Repository, trouble};

/// The prefix of the label of a directory.
const DIRECTORY: &str = "dir:";
/// The prefix of the label of a tool whose calls wait for approval.
const ASKED: &str = "ask:";
/// The prefix of the label of the mode that an editor has set.
const MODE: &str = "mode:";
/// The maximum number of names that are searched for similar ones.
const MAX_NAMES: usize = 1_000;

/// Returns the info of a session.
///
/// # Errors
/// `Usage` if it does not exist, with the closest names.
pub(crate) async fn find(sessions: &Sessions, name: &str) -> Result<LogInfo, Problem> {
    match known(sessions, &LogId::from(name)).await? {
        Some(info) => Ok(info),
        None => Err(missing(sessions, name).await),
    }
}

/// Returns the info of a session; `None` if it does not exist.
pub(crate) async fn known(sessions: &Sessions, name: &LogId) -> Result<Option<LogInfo>, Problem> {
    match sessions.journal().info(name).await {
        Err(error) if error.kind == JournalErrorKind::Missing => Ok(None),
        info => info
            .map(Some)
            .map_err(|error| trouble::journal_problem(&error)),
    }
}

async fn missing(sessions: &Sessions, name: &str) -> Problem {
    let problem = Problem::new(Exit::Usage, format!("no session has this name: {name}"));
    let query = LogQuery {
        limit: MAX_NAMES,
        ..LogQuery::default()
    };
    let names = sessions
        .list(&query)
        .await
        .map(|page| page.logs)
        .unwrap_or_default();
    let near = near::near(name, names.iter().map(|info| &*info.log.0));
    if near.is_empty() {
        return problem.hint("`adjutant sessions list` shows them");
    }
    let near: Vec<String> = near.into_iter().map(plain::word).collect();
    problem.hint(format!("the nearest are {}", near.join(", ")))
}

/// The most recently changed session of a directory.
#[derive(Debug, Default)]
pub(crate) struct Newest {
    pub(crate) info: Option<LogInfo>,
    /// A notice about a directory that was moved.
    pub(crate) notice: Option<String>,
}

/// Returns the most recently changed session of a directory; without one, the session of a missing directory that was
/// the same repository.
///
/// # Errors
/// `Usage` if several such directories match, and there is no terminal.
pub(crate) async fn newest(sessions: &Sessions, root: &Path) -> Result<Newest, Problem> {
    match newest_here(sessions, root).await? {
        Some(info) => Ok(Newest {
            info: Some(info),
            notice: None,
        }),
        None => moved(sessions, root).await,
    }
}

/// Finds the sessions of a directory that was moved, and moves them along.
async fn moved(sessions: &Sessions, root: &Path) -> Result<Newest, Problem> {
    let query = LogQuery {
        limit: MAX_NAMES,
        ..LogQuery::default()
    };
    let page = sessions
        .list(&query)
        .await
        .map_err(|error| trouble::journal_problem(&error))?;
    let missing = page.logs.into_iter().filter_map(|info| {
        let place = directory(&info).ok()??.to_owned();
        (!Path::new(&place).exists()).then_some((place, info))
    });
    let missing: Vec<(String, LogInfo)> = missing.collect();
    let repository = Repository::find(root);
    let fits = |info: &LogInfo| {
        let mut labels = info.about.labels.iter();
        let repository = repository.as_ref();
        repository.is_some_and(|repository| labels.any(|label| repository.fits(label)))
    };
    let mut places: Vec<&str> = Vec::new();
    for (place, _) in missing.iter().filter(|(_, info)| fits(info)) {
        if !places.contains(&&**place) {
            places.push(place);
        }
    }
    let place = match places[..] {
        [] => {
            return Ok(Newest {
                info: None,
                notice: hint(&missing, root),
            });
        }
        [place] => place,
        _ => choose(&places)?,
    };
    let new = label(root)?;
    let old = format!("{DIRECTORY}{place}");
    for (_, info) in missing
        .iter()
        .filter(|(of, info)| *of == *place && fits(info))
    {
        let moved = sessions.label(&info.log, &[&new], &[&old]).await;
        moved.map_err(|error| trouble::journal_problem(&error))?;
    }
    let notice = format!(
        "notice: the sessions of {} are continued here",
        plain::line(place)
    );
    Ok(Newest {
        info: newest_here(sessions, root).await?,
        notice: Some(notice),
    })
}

/// Lets the user choose one of several directories that may have been moved.
fn choose<'p>(places: &[&'p str]) -> Result<&'p str, Problem> {
    let lines = places.iter().enumerate();
    let lines = lines.map(|(n, place)| format!("  {}  {}\n", n + 1, plain::line(place)));
    let text = "sessions of several directories match this repository";
    let list: String = lines.collect();
    if !consent::is_on_terminal() {
        let problem = Problem::new(Exit::Usage, format!("{text}: {}", places.join(", ")));
        return Err(problem.hint("`adjutant sessions list` shows them; --session NAME names one"));
    }
    let question = format!(
        "{text}:\n{list}which one was moved here? [1-{}] ",
        places.len()
    );
    let number = consent::ask(&question)?.parse::<usize>().ok();
    let chosen = number.and_then(|number| places.get(number.checked_sub(1)?));
    chosen
        .copied()
        .ok_or_else(|| Problem::new(Exit::Usage, "no directory was chosen"))
}

/// Names the latest session whose directory may have been moved here.
fn hint(missing: &[(String, LogInfo)], root: &Path) -> Option<String> {
    let root = root.canonicalize().ok()?;
    let (place, info) = missing.iter().find(|(place, _)| {
        let place = Path::new(place);
        place.parent() == root.parent() || place.file_name() == root.file_name()
    })?;
    Some(format!(
        "notice: a session belongs to {}, which does not exist any more; if that was this directory, `--session {}` \
         continues it",
        plain::line(place),
        plain::word(&plain::whole(&info.log.0))
    ))
}

async fn newest_here(sessions: &Sessions, root: &Path) -> Result<Option<LogInfo>, Problem> {
    let mut query = LogQuery::default();
    (query.limit, query.label) = (1, Some(label(root)?.into()));
    loop {
        let page = sessions
            .list(&query)
            .await
            .map_err(|error| trouble::journal_problem(&error))?;
        let found = page.logs.into_iter().next();
        found.as_ref().map(directory).transpose()?;
        if found.is_some() || page.next.is_none() {
            return Ok(found);
        }
        query.after = page.next;
    }
}

/// Returns the label for the sessions of a directory.
///
/// # Errors
/// `Usage` if there is no such directory, or its path is too long for a label.
pub(crate) fn label(root: &Path) -> Result<String, Problem> {
    let path = root.canonicalize().map_err(|error| {
        let problem = Problem::new(
            Exit::Usage,
            format!("cannot open the directory: {}", root.display()),
        );
        problem
            .cause(&error)
            .hint("--root names the directory to work on")
    })?;
    let label = format!("{DIRECTORY}{}", path.display());
    if label.len() > adjutant::agent::sessions::MAX_LABEL_BYTES {
        return Err(Problem::new(
            Exit::Usage,
            format!("the path is too long for sessions: {}", path.display()),
        ));
    }
    Ok(label)
}

/// True if a label contains a directory.
pub(crate) fn is_directory(label: &str) -> bool {
    label.starts_with(DIRECTORY)
}

/// Returns the directory of a session; `None` if it was imported.
///
/// # Errors
/// `Usage` if there are several, which would be ambiguous.
pub(crate) fn directory(info: &LogInfo) -> Result<Option<&str>, Problem> {
    let mut labels = info.about.labels.iter().filter(|label| is_directory(label));
    let first = labels
        .next()
        .and_then(|label| label.strip_prefix(DIRECTORY));
    let Some(other) = labels.next() else {
        return Ok(first);
    };
    let [name, label] = [&info.log.0, other].map(|text| plain::word(&plain::whole(text)));
    let problem = Problem::new(
        Exit::Usage,
        format!("the session has more than one directory: {}", info.log),
    );
    Err(problem.hint(format!(
        "`adjutant sessions label {name}` shows them; a last word like -{label} takes one away"
    )))
}

/// Returns the tools whose calls wait for approval in a session.
pub(crate) fn asked(info: &LogInfo) -> impl Iterator<Item = &str> {
    info.about
        .labels
        .iter()
        .filter_map(|label| label.strip_prefix(ASKED))
}

/// Returns the mode that an editor has set in a session: the strictest if there are several; an unknown mode counts as
/// the strictest.
pub(crate) fn mode(info: &LogInfo) -> Option<AccessMode> {
    let modes = info
        .about
        .labels
        .iter()
        .filter_map(|label| label.strip_prefix(MODE));
    modes
        .map(|mode| mode.parse().unwrap_or(AccessMode::Plan))
        .min_by_key(|mode| *mode as u8)
}

/// Returns the mode of a session if none is given: restrictions of an editor stay, and its permissions need an
/// approval.
pub(crate) fn strict(said: Option<AccessMode>, info: Option<&LogInfo>) -> AccessMode {
    let kept = info.and_then(mode).filter(|mode| *mode == AccessMode::Plan);
    said.or(kept).unwrap_or_default()
}

/// Stores a mode with a session, replacing the previous one.
pub(crate) async fn keep_mode(
    sessions: &Sessions,
    name: &LogId,
    mode: AccessMode,
) -> Result<(), Problem> {
    let Some(info) = known(sessions, name).await? else {
        return Err(missing(sessions, &name.0).await);
    };
    let new = format!("{MODE}{mode}");
    let old = info
        .about
        .labels
        .iter()
        .filter(|label| label.starts_with(MODE) && ***label != new);
    let old: Vec<&str> = old.map(|label| &**label).collect();
    sessions
        .label(name, &[&new], &old)
        .await
        .map_err(|error| trouble::journal_problem(&error))
}

/// Returns the label that makes calls of a tool wait for approval in a session.
pub(crate) fn asking(tool: &str) -> String {
    format!("{ASKED}{tool}")
}

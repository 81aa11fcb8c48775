//! The storage of sessions, memories and boards: from the command line, the environment or the default.

use std::{
    env, fmt,
    io::{self, Write},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use adjutant::{
    agent::{Journal, JournalError, KvStore, LogId, Memory, Sessions},
    llm::{SystemWorld, private},
    runtime::Store as Opened,
    store::{JsonlJournal, Postgres, Sqlite},
    toolkit::Undo,
};

use crate::{args::At, exit::Exit, plain, problem::Problem};

/// The variable that names a place.
const VARIABLE: &str = "ADJUTANT_STORE";

/// The name of the file that holds the sessions if no other place is named.
const FILE: &str = "adjutant.db";
/// The suffix of the directory next to a store with the previous contents of changed files.
const CHANGED: &str = ".changed";
/// The time for a server to learn that a session is free.
const SETTLES_WITHIN: Duration = Duration::from_secs(2);
/// The interval of checks that the server has learned it.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// An open store.
#[derive(Clone)]
pub(crate) struct Store {
    opened: Opened,
    /// The address of the server, if it is one.
    server: Option<String>,
    /// The directory with the previous contents of changed files; `None` without a place for it.
    changed: Option<PathBuf>,
    /// The option that selects the store in other commands, with a leading space; empty if it is the default.
    option: String,
    /// Where it was created, if it did not exist before.
    made: Option<String>,
}

/// The store and the name under which a run is kept.
#[derive(Debug, Clone)]
pub(crate) struct StoredRun {
    pub(crate) store: Store,
    pub(crate) name: LogId,
}

/// The address of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
enum StoreAddress {
    Folder(PathBuf),
    File(PathBuf),
    Server(String),
}

impl Store {
    /// Opens the store, and creates it if it does not exist.
    pub(crate) async fn open(at: &At) -> Result<Self, Problem> {
        match named(at) {
            Some(text) => Self::at(at, StoreAddress::of(&text)?).await,
            None => Self::at(at, StoreAddress::File(usual()?)).await,
        }
    }

    /// Opens the store that is there. If no place is named and nothing was kept yet, it is an empty one, which is not
    /// made.
    ///
    /// # Errors
    /// `Usage` if nothing is at the place that is named.
    pub(crate) async fn find(at: &At) -> Result<Self, Problem> {
        let Some(text) = named(at) else {
            let file = place()?.join(FILE);
            return if file.exists() {
                Self::at(at, StoreAddress::File(file)).await
            } else {
                Ok(Self::in_memory())
            };
        };
        let place = StoreAddress::of(&text)?;
        if !place.is_there() {
            let problem = Problem::new(
                Exit::Usage,
                format!("there is no store of sessions here: {}", place.public()),
            );
            let hint = format!(
                "--store or {VARIABLE} names the place; `adjutant run --session NAME` makes one there"
            );
            return Err(problem.hint(hint));
        }
        Self::at(at, place).await
    }

    async fn at(at: &At, place: StoreAddress) -> Result<Self, Problem> {
        let made = (!place.is_there()).then(|| place.public());
        let wrong = |error: JournalError| {
            let problem = Problem::new(
                Exit::Usage,
                format!("cannot open the store of sessions: {}", place.public()),
            );
            problem
                .cause_of(&error)
                .hint(format!("--store or {VARIABLE} names the place"))
        };
        let (opened, exposed, server) = match &place {
            StoreAddress::Folder(path) => {
                let journal = JsonlJournal::open(path).map_err(wrong)?;
                (
                    journal.clone().into(),
                    journal.exposed().map(ToString::to_string),
                    None,
                )
            }
            StoreAddress::File(path) => {
                let store = Sqlite::open(path).map_err(wrong)?;
                (
                    store.clone().into(),
                    store.exposed().map(ToString::to_string),
                    None,
                )
            }
            StoreAddress::Server(url) => (
                Postgres::connect(url.as_str()).await.map_err(wrong)?.into(),
                None,
                Some(url.clone()),
            ),
        };
        let named = at.store.as_ref().filter(|_| server.is_none());
        let option = named
            .map(|text| format!(" --store {}", plain::word(text)))
            .unwrap_or_default();
        if let Some(exposed) = exposed {
            // There is no place to report it if standard error is closed.
            let _ = writeln!(io::stderr().lock(), "warning: {}", plain::line(&exposed));
        }
        let changed = match &place {
            StoreAddress::Folder(path) | StoreAddress::File(path) => {
                let mut name = path
                    .canonicalize()
                    .unwrap_or_else(|_| path.clone())
                    .into_os_string();
                name.push(CHANGED);
                Some(name.into())
            }
            StoreAddress::Server(_) => usual()
                .ok()
                .map(|file| file.with_file_name("postgres.changed")),
        };
        Ok(Self {
            opened,
            server,
            changed,
            option,
            made,
        })
    }

    /// A store in memory, which nothing outlives.
    pub(crate) fn in_memory() -> Self {
        let changed = Some(env::temp_dir().join(format!("adjutant-{}", uuid::Uuid::new_v4())));
        Self {
            opened: Opened::memory_only(SystemWorld),
            server: None,
            changed,
            option: String::new(),
            made: None,
        }
    }

    /// A line about the creation of the store, if it did not exist before.
    pub(crate) fn notice(&self) -> Option<String> {
        self.made.as_ref().map(|place| {
            format!(
                "notice: a new store of sessions was made: {}",
                plain::line(place)
            )
        })
    }

    /// The sessions in it.
    pub(crate) fn sessions(&self) -> Sessions {
        Sessions::new(self.journal())
    }

    /// Stores the previous contents of changed files.
    ///
    /// # Errors
    /// `Usage` if there is no place for it.
    pub(crate) fn undo(&self) -> Result<Undo, Problem> {
        let none = || {
            Problem::new(
                Exit::Usage,
                "there is no place for what was in changed files: HOME is not set",
            )
        };
        self.changed.clone().map(Undo::new).ok_or_else(none)
    }

    /// Removes the saved contents of a store in memory.
    pub(crate) fn forget_changes(&self) {
        if let Some(folder) = &self.changed {
            // Nothing may have been kept.
            let _ = std::fs::remove_dir_all(folder);
        }
    }

    /// Its journal.
    pub(crate) fn journal(&self) -> Arc<dyn Journal> {
        self.opened.journal()
    }

    /// Its memory.
    pub(crate) fn memory(&self) -> Result<Arc<dyn Memory>, Problem> {
        self.opened.memory().map_err(|_| only_sessions("memory"))
    }

    /// One of its key-value stores, on which there is a board.
    pub(crate) fn board(&self, name: &str) -> Result<Arc<dyn KvStore>, Problem> {
        self.opened
            .kv(name, "board")
            .map_err(|_| only_sessions("board"))
    }

    /// Returns the opened store, in which an engine keeps everything.
    pub(crate) fn opened(&self) -> &Opened {
        &self.opened
    }

    /// Waits until a session that was used here is free for others; a server needs a moment to learn it.
    pub(crate) async fn settle(&self, name: &LogId) {
        let Some(url) = &self.server else { return };
        let until = Instant::now() + SETTLES_WITHIN;
        // As others see it: a session that is about to be free counts as free here. A failure is harmless: the server
        // will find out.
        let Ok(others) = Postgres::connect(url.as_str()).connections(2).await else {
            return;
        };
        let journal = others.journal();
        while Instant::now() < until && journal.info(name).await.is_ok_and(|info| info.is_owned) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Returns the option that selects the store in other commands, with a leading space; empty if it is the default.
    pub(crate) fn option(&self) -> &str {
        &self.option
    }
}

impl fmt::Debug for Store {
    /// Does not contain its address: a URL may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl StoreAddress {
    /// # Errors
    /// `Usage` if it begins like a URL, and no store is reached by such a one.
    fn of(text: &str) -> Result<Self, Problem> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(StoreAddress::Server(text.to_owned()));
        }
        let path = PathBuf::from(text);
        if text.ends_with('/') || path.is_dir() {
            return Ok(StoreAddress::Folder(path));
        }
        // One letter is a drive.
        let is_scheme = |it: &str| {
            it.len() > 1
                && it
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        };
        match text
            .split_once(':')
            .map(|(scheme, _)| scheme)
            .filter(|scheme| is_scheme(scheme) && !path.exists())
        {
            // The rest may hold a password.
            Some(scheme) => {
                let problem = Problem::new(
                    Exit::Usage,
                    format!("no store is named by a text that begins with {scheme}:"),
                );
                Err(problem.hint(
                    "a store is the path of an SQLite file, a folder with / at its end, or postgres://…; a file that has a \
                     colon in its name is ./NAME",
                ))
            }
            None => Ok(StoreAddress::File(path)),
        }
    }

    /// True if a store may exist; for a server that is unknown yet.
    fn is_there(&self) -> bool {
        match self {
            // If that cannot be determined, the store returns the reason.
            StoreAddress::Folder(path) | StoreAddress::File(path) => {
                path.try_exists().unwrap_or(true)
            }
            StoreAddress::Server(_) => true,
        }
    }

    /// The address without possible secrets.
    fn public(&self) -> String {
        match self {
            StoreAddress::Folder(path) | StoreAddress::File(path) => path.display().to_string(),
            StoreAddress::Server(_) => "the PostgreSQL database that was named".to_owned(),
        }
    }
}

/// A store of JSON lines does not support the request.
fn only_sessions(wanted: &str) -> Problem {
    let problem = Problem::new(
        Exit::Usage,
        format!("a store of JSON lines keeps sessions and no {wanted}"),
    );
    problem.hint(format!(
        "--store or {VARIABLE} names an SQLite file or a PostgreSQL database"
    ))
}

/// The place that the command line or the environment names.
fn named(at: &At) -> Option<String> {
    at.store
        .clone()
        .or_else(|| env::var(VARIABLE).ok().filter(|text| !text.is_empty()))
}

/// Returns the file of the sessions if no other place is named; its directory is made, for the user alone.
pub(crate) fn usual() -> Result<PathBuf, Problem> {
    let folder = place()?;
    private::folder(&folder).map_err(|error| {
        let text = format!(
            "cannot make the folder of the sessions: {}",
            folder.display()
        );
        Problem::new(Exit::Usage, text)
            .cause(&error)
            .hint(format!("--store or {VARIABLE} names another place"))
    })?;
    Ok(folder.join(FILE))
}

/// The directory of the sessions if no other place is named.
fn place() -> Result<PathBuf, Problem> {
    let of = |variable: &str| {
        env::var_os(variable)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let data = of("XDG_DATA_HOME").or_else(|| of("HOME").map(|home| home.join(".local/share")));
    data.map(|data| data.join("adjutant")).ok_or_else(|| {
        let problem = Problem::new(
            Exit::Usage,
            "there is no place to keep sessions: neither XDG_DATA_HOME nor HOME is set",
        );
        problem.hint(format!("--store or {VARIABLE} names a place"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_is_a_folder_a_file_or_a_server_when_its_text_says_so() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().to_str().expect("temporary paths are UTF-8");
        let url = "postgresql://ada:secret@db.example/agents";
        for (text, expect) in [
            (path, StoreAddress::Folder(path.into())),
            ("sessions/", StoreAddress::Folder("sessions/".into())),
            ("sessions.db", StoreAddress::File("sessions.db".into())),
            ("./at:noon", StoreAddress::File("./at:noon".into())),
            (
                r"c:\sessions.db",
                StoreAddress::File(r"c:\sessions.db".into()),
            ),
            (url, StoreAddress::Server(url.into())),
        ] {
            let place = StoreAddress::of(text);
            assert!(
                !place
                    .as_ref()
                    .is_ok_and(|place| place.public().contains("secret"))
            );
            assert_eq!(place, Ok(expect));
        }
        for wrong in [
            "sqlite:typo.db",
            "postgre://ada:secret@db.example/agents",
            "file:///tmp/typo.db",
        ] {
            let problem = StoreAddress::of(wrong)
                .expect_err("nothing is named so")
                .to_string();
            assert!(
                problem.contains("begins with") && !problem.contains("secret"),
                "{problem}"
            );
        }
    }
}

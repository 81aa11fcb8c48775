//! The store of sessions, memories and boards: from the command line, the environment or the default.

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

/// The variable that names the store.
const VARIABLE: &str = "ADJUTANT_STORE";

/// The default name of the SQLite file.
const FILE: &str = "adjutant.db";
/// The suffix of the directory next to a store with the previous contents of changed files.
const CHANGED: &str = ".changed";
/// The maximum time for a server to report that a session is free.
const SETTLES_WITHIN: Duration = Duration::from_secs(2);
/// The interval between two checks of it.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// An open store.
#[derive(Clone)]
pub(crate) struct Store {
    opened: Opened,
    /// The address of the server, if the store is on one.
    server: Option<String>,
    /// The directory with the previous contents of changed files; `None` without a place for it.
    changed: Option<PathBuf>,
    /// The option that selects the store in other commands, with a leading space; empty for the default.
    option: String,
    /// The place of a store that was newly created.
    made: Option<String>,
}

/// The store and the session of a run.
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
            Some(text) => Self::at(at, StoreAddress::parse(&text)?).await,
            None => Self::at(at, StoreAddress::File(usual()?)).await,
        }
    }

    /// Opens an existing store. Without a named place and an existing default store, it is an empty store in memory.
    ///
    /// # Errors
    /// `Usage` if the named store does not exist.
    pub(crate) async fn find(at: &At) -> Result<Self, Problem> {
        let Some(text) = named(at) else {
            let file = place()?.join(FILE);
            return if file.exists() {
                Self::at(at, StoreAddress::File(file)).await
            } else {
                Ok(Self::in_memory())
            };
        };
        let place = StoreAddress::parse(&text)?;
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
                    journal.exposure().map(ToString::to_string),
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

    /// Creates a store in memory.
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

    /// Returns a message if the store was newly created.
    pub(crate) fn notice(&self) -> Option<String> {
        self.made.as_ref().map(|place| {
            format!(
                "notice: a new store of sessions was made: {}",
                plain::line(place)
            )
        })
    }

    /// Returns its sessions.
    pub(crate) fn sessions(&self) -> Sessions {
        Sessions::new(self.journal())
    }

    /// Returns the storage for the previous contents of changed files.
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
            // The directory may not exist.
            let _ = std::fs::remove_dir_all(folder);
        }
    }

    /// Returns the file that marks the last check for old sessions; `None` for a server.
    pub(crate) fn pruned(&self) -> Option<PathBuf> {
        let changed = self.changed.as_ref().filter(|_| self.server.is_none())?;
        Some(changed.with_extension("pruned"))
    }

    /// True if the command line or the environment names the place, or there is a default one.
    pub(crate) fn has_place(at: &At) -> bool {
        named(at).is_some() || place().is_ok()
    }

    /// Returns its journal.
    pub(crate) fn journal(&self) -> Arc<dyn Journal> {
        self.opened.journal()
    }

    /// Returns its memory.
    pub(crate) fn memory(&self) -> Result<Arc<dyn Memory>, Problem> {
        self.opened.memory().map_err(|_| only_sessions("memory"))
    }

    /// Returns one of its key-value stores, which contains a board.
    pub(crate) fn board(&self, name: &str) -> Result<Arc<dyn KvStore>, Problem> {
        self.opened
            .kv(name, "board")
            .map_err(|_| only_sessions("board"))
    }

    /// Returns the opened store, which an engine uses for all its data.
    pub(crate) fn opened(&self) -> &Opened {
        &self.opened
    }

    /// Waits until a released session is free for other processes; a server needs a moment to report it.
    pub(crate) async fn settle(&self, name: &LogId) {
        let Some(url) = &self.server else { return };
        let until = Instant::now() + SETTLES_WITHIN;
        // Reads as another process would: this process already sees the session as free. Failures are ignored.
        let Ok(others) = Postgres::connect(url.as_str()).connections(2).await else {
            return;
        };
        let journal = others.journal();
        while Instant::now() < until && journal.info(name).await.is_ok_and(|info| info.is_owned) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Returns the option that selects the store in other commands, with a leading space; empty for the default.
    pub(crate) fn option(&self) -> &str {
        &self.option
    }
}

impl fmt::Debug for Store {
    /// Omits the address, because a URL may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl StoreAddress {
    /// # Errors
    /// `Usage` if it has the form of a URL with an unknown scheme.
    fn parse(text: &str) -> Result<Self, Problem> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(StoreAddress::Server(text.to_owned()));
        }
        let path = PathBuf::from(text);
        if text.ends_with('/') || path.is_dir() {
            return Ok(StoreAddress::Folder(path));
        }
        // A single letter is a Windows drive.
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
            // The rest may contain a password.
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

    /// True if a store may exist; always true for a server.
    fn is_there(&self) -> bool {
        match self {
            // If that cannot be determined, opening the store reports the reason.
            StoreAddress::Folder(path) | StoreAddress::File(path) => {
                path.try_exists().unwrap_or(true)
            }
            StoreAddress::Server(_) => true,
        }
    }

    /// Returns the address without possible secrets.
    fn public(&self) -> String {
        match self {
            StoreAddress::Folder(path) | StoreAddress::File(path) => path.display().to_string(),
            StoreAddress::Server(_) => "the PostgreSQL database that was named".to_owned(),
        }
    }
}

/// Returns the problem that a store of JSON lines does not support the request.
fn only_sessions(wanted: &str) -> Problem {
    let problem = Problem::new(
        Exit::Usage,
        format!("a store of JSON lines keeps sessions and no {wanted}"),
    );
    problem.hint(format!(
        "--store or {VARIABLE} names an SQLite file or a PostgreSQL database"
    ))
}

/// Returns the place that the command line or the environment names.
pub(crate) fn named(at: &At) -> Option<String> {
    at.store
        .clone()
        .or_else(|| env::var(VARIABLE).ok().filter(|text| !text.is_empty()))
}

/// Returns the default file of sessions, and creates its directory, private to the user.
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

/// Returns the default directory of sessions.
pub(crate) fn place() -> Result<PathBuf, Problem> {
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
            let place = StoreAddress::parse(text);
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
            let problem = StoreAddress::parse(wrong)
                .expect_err("nothing is named so")
                .to_string();
            assert!(
                problem.contains("begins with") && !problem.contains("secret"),
                "{problem}"
            );
        }
    }
}

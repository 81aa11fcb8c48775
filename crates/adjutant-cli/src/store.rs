//! The place of sessions, memories and boards: the one that the command line, the environment or the system's habit
//! names.

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

/// The end of the name of the folder beside a store that holds what was in files before agents changed them.
const CHANGED: &str = ".changed";
/// The time that a server may take to hear that a session is free.
const SETTLES_WITHIN: Duration = Duration::from_secs(2);
/// The time between two checks that the server has heard it.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// An open store.
#[derive(Clone)]
pub(crate) struct Store {
    opened: Opened,
    /// The address of the server, if it is one.
    server: Option<String>,
    /// The folder of what was in files before agents changed them; none if there is no place for it.
    changed: Option<PathBuf>,
    /// The option that tells other commands of the store, with a space before it; empty if they find it by themselves.
    option: String,
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
    /// Opens the store, and makes it if there is none.
    pub(crate) async fn open(at: &At) -> Result<Self, Problem> {
        let place = match &at.store {
            Some(text) => StoreAddress::of(text),
            None => match env::var(VARIABLE).ok().filter(|text| !text.is_empty()) {
                Some(text) => StoreAddress::of(&text),
                None => StoreAddress::File(usual()?),
            },
        };
        let wrong = |error: JournalError| {
            let problem = Problem::new(Exit::Usage, format!("cannot open the store of sessions: {}", place.public()));
            problem.cause_of(&error).hint(format!("--store or {VARIABLE} names the place"))
        };
        let (opened, exposed, server) = match &place {
            StoreAddress::Folder(path) => {
                let journal = JsonlJournal::open(path).map_err(wrong)?;
                (journal.clone().into(), journal.exposed().map(ToString::to_string), None)
            }
            StoreAddress::File(path) => {
                let store = Sqlite::open(path).map_err(wrong)?;
                (store.clone().into(), store.exposed().map(ToString::to_string), None)
            }
            StoreAddress::Server(url) => {
                (Postgres::connect(url.as_str()).await.map_err(wrong)?.into(), None, Some(url.clone()))
            }
        };
        let named = at.store.as_ref().filter(|_| server.is_none());
        let option = named.map(|text| format!(" --store {}", plain::word(text))).unwrap_or_default();
        if let Some(exposed) = exposed {
            // There is nobody to tell when standard error is closed.
            let _ = writeln!(io::stderr().lock(), "warning: {}", plain::line(&exposed));
        }
        let changed = match &place {
            StoreAddress::Folder(path) | StoreAddress::File(path) => {
                let mut name = path.canonicalize().unwrap_or_else(|_| path.clone()).into_os_string();
                name.push(CHANGED);
                Some(name.into())
            }
            StoreAddress::Server(_) => usual().ok().map(|file| file.with_file_name("postgres.changed")),
        };
        Ok(Self { opened, server, changed, option })
    }

    /// A store in memory, which nothing outlives.
    pub(crate) fn in_memory() -> Self {
        let changed = Some(env::temp_dir().join(format!("adjutant-{}", uuid::Uuid::new_v4())));
        Self { opened: Opened::memory_only(SystemWorld), server: None, changed, option: String::new() }
    }

    /// The sessions in it.
    pub(crate) fn sessions(&self) -> Sessions {
        Sessions::new(self.journal())
    }

    /// What keeps files as they were before agents changed them.
    ///
    /// # Errors
    /// `Usage` if there is no place for it.
    pub(crate) fn undo(&self) -> Result<Undo, Problem> {
        let none = || Problem::new(Exit::Usage, "there is no place for what was in changed files: HOME is not set");
        self.changed.clone().map(Undo::new).ok_or_else(none)
    }

    /// Removes what is kept of a store in memory.
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
        self.opened.kv(name, "board").map_err(|_| only_sessions("board"))
    }

    /// Returns the opened store, in which an engine keeps everything.
    pub(crate) fn opened(&self) -> &Opened {
        &self.opened
    }

    /// Waits until a session that was worked in here is free for others; a server is told so, which takes a moment.
    pub(crate) async fn settle(&self, name: &LogId) {
        let Some(url) = &self.server else { return };
        let until = Instant::now() + SETTLES_WITHIN;
        // As others see it: what is about to be free counts as free here. Nothing is lost if it cannot be told: the
        // server finds out by itself.
        let Ok(others) = Postgres::connect(url.as_str()).connections(2).await else { return };
        let journal = others.journal();
        while Instant::now() < until && journal.info(name).await.is_ok_and(|info| info.is_owned) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Returns the option that tells other commands of the store, with a space before it; empty if they find it by
    /// themselves.
    pub(crate) fn option(&self) -> &str {
        &self.option
    }
}

impl fmt::Debug for Store {
    /// Does not tell where it is: a URL may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl StoreAddress {
    fn of(text: &str) -> Self {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return StoreAddress::Server(text.to_owned());
        }
        let path = PathBuf::from(text);
        if text.ends_with('/') || path.is_dir() { StoreAddress::Folder(path) } else { StoreAddress::File(path) }
    }

    /// The place without what may be secret in it.
    fn public(&self) -> String {
        match self {
            StoreAddress::Folder(path) | StoreAddress::File(path) => path.display().to_string(),
            StoreAddress::Server(_) => "the PostgreSQL database that was named".to_owned(),
        }
    }
}

/// A store of JSON lines is asked for something else.
fn only_sessions(wanted: &str) -> Problem {
    let problem = Problem::new(Exit::Usage, format!("a store of JSON lines keeps sessions and no {wanted}"));
    problem.hint(format!("--store or {VARIABLE} names an SQLite file or a PostgreSQL database"))
}

/// Returns the folder of the sessions if no other is named; the folder is made, for the user alone.
pub(crate) fn usual() -> Result<PathBuf, Problem> {
    let of = |variable: &str| env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = of("XDG_DATA_HOME").or_else(|| of("HOME").map(|home| home.join(".local/share")));
    let Some(folder) = data.map(|data| data.join("adjutant")) else {
        let problem =
            Problem::new(Exit::Usage, "there is no place to keep sessions: neither XDG_DATA_HOME nor HOME is set");
        return Err(problem.hint(format!("--store or {VARIABLE} names a place")));
    };
    private::folder(&folder).map_err(|error| {
        let text = format!("cannot make the folder of the sessions: {}", folder.display());
        Problem::new(Exit::Usage, text).cause(&error).hint(format!("--store or {VARIABLE} names another place"))
    })?;
    Ok(folder.join("adjutant.db"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_is_a_folder_a_file_or_a_server_when_its_text_says_so() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().to_str().expect("temporary paths are UTF-8");
        assert_eq!(StoreAddress::of(path), StoreAddress::Folder(path.into()));
        assert_eq!(StoreAddress::of("sessions/"), StoreAddress::Folder("sessions/".into()));
        assert_eq!(StoreAddress::of("sessions.db"), StoreAddress::File("sessions.db".into()));
        let url = "postgresql://ada:secret@db.example/agents";
        assert_eq!(StoreAddress::of(url), StoreAddress::Server(url.into()));
        assert!(!StoreAddress::of(url).public().contains("secret"));
    }
}

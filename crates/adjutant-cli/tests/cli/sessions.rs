//! Sessions that are kept: gone on with, waited in, killed, looked after. Each test is held on both stores.

mod approval;
mod keeping;
#[cfg(unix)]
mod killing;
mod memory;
mod moving;
mod replaying;
#[cfg(unix)]
mod talking;
mod tending;

use std::{
    fs,
    process::{Child, Command},
    time::Duration,
};

use adjutant::llm::Script;
use adjutant_testing::{Loopback, PostgresServer};
use serde_json::json;
use tempfile::TempDir;

use crate::command::{Seen, Vendor, adjutant, seen, usage};

/// The run that [`Desk::start`] starts.
pub(crate) const START: [&str; 7] = ["run", "Hi", "--session", "s", "-q", "--retries", "0"];
/// How often a session is looked at for something that must come.
const MAX_LOOKS: usize = 1_000;

/// A directory to work on, and a store.
pub(crate) struct Desk {
    folder: TempDir,
    store: String,
}

impl Desk {
    /// One that keeps sessions in SQLite, and one with JSON lines.
    pub(crate) fn each() -> [Self; 2] {
        ["store.db", "store/"].map(Self::new)
    }

    /// A desk with a store in its folder.
    pub(crate) fn new(store: &str) -> Self {
        let mut desk = Self {
            folder: tempfile::tempdir().expect("a temporary directory"),
            store: String::new(),
        };
        desk.store = desk.path(store);
        fs::create_dir(desk.folder.path().join("work")).expect("the folder can be made");
        fs::write(desk.folder.path().join("work/notes.txt"), "Herons stand.\n")
            .expect("the file can be written");
        desk
    }

    /// A desk with a store on a server, if there can be one.
    pub(crate) fn on_server(test: &str) -> Option<Self> {
        let server = PostgresServer::for_test(test)?;
        let store = server.database().expect("the server makes a database");
        Some(Self {
            store,
            ..Self::new("store")
        })
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder
            .path()
            .join(name)
            .to_str()
            .expect("temporary paths are UTF-8")
            .to_owned()
    }

    /// The directory to work on, as it is told.
    pub(crate) fn work(&self) -> String {
        fs::canonicalize(self.path("work"))
            .expect("it is there")
            .display()
            .to_string()
    }

    /// A command that knows the store, without a key.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = adjutant(args);
        command
            .env("ADJUTANT_STORE", &self.store)
            .current_dir(self.path("work"));
        command
    }

    /// A command that knows the store and a server.
    pub(crate) fn asking(&self, server: &Loopback, args: &[&str]) -> Command {
        let mut command = self.command(args);
        command
            .envs(Vendor::Anthropic.variables(server))
            .env("ADJUTANT_MODEL", Vendor::Anthropic.model());
        command
    }

    /// What a command shows that knows the store.
    pub(crate) fn see(&self, args: &[&str]) -> Seen {
        seen(self.command(args))
    }

    /// What a command wrote that must have gone well.
    #[track_caller]
    pub(crate) fn out(&self, args: &[&str]) -> String {
        let seen = self.see(args);
        assert_eq!(seen.code, Some(0), "{args:?} {seen:#?}");
        seen.stdout
    }

    /// What a command shows that knows the store and a server.
    pub(crate) fn ask(&self, server: &Loopback, args: &[&str]) -> Seen {
        seen(self.asking(server, args))
    }

    /// Starts a run that is quiet in the session `s`, and waits until it asks the server.
    #[track_caller]
    pub(crate) fn start(&self, server: &Loopback) -> Child {
        let mut child = self
            .asking(server, &START)
            .spawn()
            .expect("the command starts");
        while server.request_count() == 0 {
            assert_eq!(
                child.try_wait().expect("it can be looked at"),
                None,
                "the command has ended"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
        child
    }

    /// Looks at a session until this is in it.
    #[track_caller]
    pub(crate) fn await_in(&self, name: &str, text: &str) {
        let is_there = |_| {
            self.see(&["sessions", "export", name, "-"])
                .stdout
                .contains(text)
        };
        assert!(
            (0..MAX_LOOKS).any(is_there),
            "{text:?} is not in the session {name:?}"
        );
    }
}

/// A reply that lists the directory.
pub(crate) fn lists() -> Script {
    Script::new()
        .text("Looking.")
        .call("list_files", json!({}))
        .usage(usage())
}

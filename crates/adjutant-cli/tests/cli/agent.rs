//! `adjutant agent`: agents that live in folders of their own, from outside.

mod alone;
#[cfg(unix)]
mod answered;
mod asked;
mod carried;
#[cfg(unix)]
mod trusted;

use std::path::Path;

use crate::command::{Seen, adjutant, seen};

/// A project with a manifest; its agents are stopped when it is dropped.
pub(crate) struct Project {
    pub(crate) folder: tempfile::TempDir,
}

impl Project {
    /// A project whose one agent needs no key.
    pub(crate) fn new() -> Self {
        Self::of("name: ada\nmodel: offline/planner\n")
    }

    pub(crate) fn of(manifest: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("adjutant.yaml"), manifest).expect("it is written");
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The command in the project's folder.
    pub(crate) fn run(&self, args: &[&str]) -> Seen {
        let mut command = adjutant(args);
        command
            .current_dir(self.path())
            .env("XDG_STATE_HOME", self.path().join(".state"));
        seen(command)
    }

    /// The same; it must end well. What it wrote to standard output.
    #[track_caller]
    pub(crate) fn done(&self, args: &[&str]) -> String {
        let seen = self.run(args);
        assert_eq!(
            seen.code,
            Some(0),
            "{args:?}\n{}\n{}",
            seen.stdout,
            seen.stderr
        );
        seen.stdout
    }

    /// An error in place of what `args` does: its lines without the project's path.
    #[track_caller]
    pub(crate) fn refused(&self, args: &[&str], code: i32, lines: &[&str]) {
        let seen = self.run(args);
        let path = self.path().canonicalize().expect("it is there");
        let told = seen
            .stderr
            .replace(&*path.to_string_lossy(), "DIR")
            .replace(&*self.path().to_string_lossy(), "DIR");
        assert_eq!(
            (seen.code, told.lines().collect::<Vec<_>>()),
            (Some(code), lines.to_vec()),
            "{args:?}: {}",
            seen.stdout
        );
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        let mut command = adjutant(&["agent", "stop", "--all"]);
        // What cannot be stopped is told by the test.
        let _ = command.current_dir(self.path()).output();
    }
}

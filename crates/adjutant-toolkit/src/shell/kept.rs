//! The commands with readable output: recently ended ones, and those in the background.

use std::{
    collections::VecDeque,
    fs,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::watch;

use super::output::{Output, OutputSource};
use crate::sandbox::{job::CommandEnd, launch::Running};

/// The most outputs that are kept; the oldest of commands that have ended go first.
const MOST: usize = 32;
/// The most commands that run in the background at a time.
pub(super) const RUNNING: usize = 8;

/// The commands of a shell.
#[derive(Debug, Default)]
pub(super) struct Kept {
    count: u64,
    commands: VecDeque<Command>,
}

/// One of them; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Command {
    pub(super) id: Arc<str>,
    pub(super) output: Arc<Mutex<Output>>,
    /// How it ended, when it has.
    pub(super) ended: watch::Receiver<Option<(Arc<str>, CommandEnd)>>,
    /// Dropped to stop it; none if it does not run in the background.
    pub(super) running: Arc<Mutex<Option<Running>>>,
    pub(super) is_kept: bool,
}

impl Kept {
    /// A name that no other command of this shell has.
    pub(super) fn name(&mut self) -> Arc<str> {
        self.count += 1;
        format!("c{}", self.count).into()
    }

    pub(super) fn add(&mut self, command: Command) {
        self.commands.push_back(command);
        while self.commands.len() > MOST {
            let Some(at) = self.commands.iter().position(|it| it.has_ended()) else {
                return;
            };
            if let Some(gone) = self.commands.remove(at) {
                gone.forget();
            }
        }
    }

    pub(super) fn get(&self, id: &str) -> Option<Command> {
        self.commands.iter().find(|it| &*it.id == id).cloned()
    }

    pub(super) fn running(&self) -> usize {
        self.commands.iter().filter(|it| !it.has_ended()).count()
    }

    pub(super) fn ids(&self) -> String {
        let ids: Vec<&str> = self.commands.iter().map(|it| &*it.id).collect();
        if ids.is_empty() {
            "there is none".to_owned()
        } else {
            format!("there are {}", ids.join(", "))
        }
    }

    /// Ends the commands that were not started in the background.
    pub(super) fn end_run(&mut self) {
        self.commands
            .iter()
            .filter(|it| !it.is_kept)
            .for_each(Command::stop);
    }
}

impl Command {
    pub(super) fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Requests it to end; it is killed soon after.
    pub(super) fn stop(&self) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn forget(&self) {
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        if let OutputSource::File(path) = output.source() {
            // It goes with its folder at the latest.
            let _ = fs::remove_file(path);
        }
    }
}

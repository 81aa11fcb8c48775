//! The desired state of an agent, written durably, so that no crash of the requesting program or the operator loses it.

use std::{fs::File, time::Duration};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Home;
use crate::{
    error::{Error, ErrorKind},
    files::{Sync, make_folder, private, read_json_if_any, storage, write_json},
};

/// The file with the desired state of an agent.
const FILE: &str = "desired.json";
/// The number of attempts to acquire the lock, and the pause after each; a writer holds it while it writes one small
/// file.
const LOCK_TRIES: u32 = 500;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// The state that an agent should be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Goal {
    /// It runs.
    Running,
    /// It does not run.
    Stopped,
    /// It is deleted.
    Removed,
}

/// The desired state of an agent, and the number of the order.
///
/// Format: `{"goal":"running","order":3}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Desired {
    /// The state that it should be in.
    pub goal: Goal,
    /// The number of this order, from 1. A newer order resets the start attempts.
    pub order: u64,
    /// True if it must be stopped first, if it is running.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restart: bool,
}

impl Desired {
    /// The value for an agent without orders: it does not run.
    pub const NOTHING: Self = Self {
        goal: Goal::Stopped,
        order: 0,
        restart: false,
    };
}

impl Home {
    /// Returns the desired state of an agent. Without orders, it does not run.
    ///
    /// # Errors
    /// `Storage` if it cannot be read.
    pub fn desired(&self, id: Uuid) -> Result<Desired, Error> {
        Ok(read_json_if_any(&self.workspace(id).file(FILE))?.unwrap_or(Desired::NOTHING))
    }

    /// Writes the desired state of an agent, and notifies the operator. It is durable when this returns.
    ///
    /// If an order to stop was not processed yet, a start order first stops the agent.
    ///
    /// # Errors
    /// `Missing` if the agent does not exist, `Storage` if the file cannot be written.
    pub fn desire(&self, id: Uuid, goal: Goal) -> Result<Desired, Error> {
        self.order(id, goal, false)
    }

    /// Orders a restart: the agent is stopped first if it is running.
    ///
    /// # Errors
    /// Like [`Home::desire`].
    pub fn desire_restart(&self, id: Uuid) -> Result<Desired, Error> {
        self.order(id, Goal::Running, true)
    }

    fn order(&self, id: Uuid, goal: Goal, restart: bool) -> Result<Desired, Error> {
        let workspace = self.workspace(id);
        if !workspace.root().is_dir() {
            return Err(Error::new(
                ErrorKind::Missing,
                format!("there is no agent {id}"),
            ));
        }
        let lock = self.lock_orders()?;
        // An unreadable file is replaced, because an order must always be possible.
        let before = self.desired(id).unwrap_or(Desired::NOTHING);
        let taken = self.course(id).unwrap_or_default().order;
        // A start order keeps an unprocessed stop, because an update for the next start depends on it.
        let stops = before.order > taken && (before.restart || before.goal == Goal::Stopped);
        // If the file was replaced, the supervisor may have processed later orders.
        let order = before.order.max(taken).saturating_add(1);
        let desired = Desired {
            goal,
            order,
            restart: restart || goal == Goal::Running && stops,
        };
        write_json(&workspace.file(FILE), &desired, Sync::Disk)?;
        drop(lock);
        self.touch()?;
        Ok(desired)
    }

    fn lock_orders(&self) -> Result<File, Error> {
        make_folder(self.root())?;
        let path = self.root().join("desired.lock");
        let file = private(File::options().create(true).append(true)).open(&path);
        let file = file.map_err(|error| storage("open", &path, error))?;
        for _ in 0..LOCK_TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(std::fs::TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
                Err(std::fs::TryLockError::Error(error)) => {
                    return Err(storage("lock", &path, error));
                }
            }
        }
        Err(Error::new(
            ErrorKind::Busy,
            format!("somebody holds {}", path.display()),
        ))
    }
}

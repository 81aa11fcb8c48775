//! The history of an agent, stored in its directory. The supervisor decides what follows from it.

use std::{collections::VecDeque, sync::Arc};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Home;
use crate::{
    error::Error,
    files::{Sync, read_json_if_any, write_json},
};

/// The file with the history of an agent.
const FILE: &str = "supervision.json";

/// The history of an agent since its last start order. It is stored, so that a new operator continues with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Course {
    /// The latest order that was processed.
    pub order: u64,
    /// The number of consecutive failures.
    pub attempts: u32,
    /// The number of automatic restarts since the last start order.
    pub restarts: u64,
    /// The time of the next start attempt, in milliseconds since 1970-01-01 UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_ms: Option<u64>,
    /// The reason why it is not restarted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given_up: Option<Arc<str>>,
    /// True if it is queued because the maximum number of agents is running.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_waiting: bool,
    /// The times of its crashes, in milliseconds since 1970-01-01 UTC.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub(crate) crashes: VecDeque<u64>,
    /// The start of its current run, in milliseconds since 1970-01-01 UTC; `None` if it is not running.
    #[serde(skip)]
    pub(crate) up_since: Option<u64>,
    /// True if it must be stopped before the next start.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) restart: bool,
}

impl Course {
    /// True if it must be stopped before the next start, and was not stopped yet.
    pub fn is_restarting(&self) -> bool {
        self.restart
    }
}

impl Home {
    /// Reads the history of an agent.
    ///
    /// # Errors
    /// `Storage` if it cannot be read.
    pub fn course(&self, id: Uuid) -> Result<Course, Error> {
        Ok(read_json_if_any(&self.workspace(id).file(FILE))?.unwrap_or_default())
    }

    /// Writes the history of an agent.
    pub(crate) fn keep(&self, id: Uuid, course: &Course) -> Result<(), Error> {
        write_json(&self.workspace(id).file(FILE), course, Sync::Program)
    }
}

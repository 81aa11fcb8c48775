//! The history of an agent, kept beside it. The supervisor decides what follows from it.

use std::{collections::VecDeque, sync::Arc};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Home;
use crate::{
    error::Error,
    files::{Sync, read_json_if_any, write_json},
};

/// The file of an agent that holds its course.
const FILE: &str = "supervision.json";

/// The history of one agent since it was last ordered to run. It is stored next to the agent, so that a new operator
/// continues with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Course {
    /// The newest order that was taken up.
    pub order: u64,
    /// The number of failures in a row.
    pub attempts: u32,
    /// The number of automatic restarts since it was ordered to run.
    pub restarts: u64,
    /// The time at which it is started again, in milliseconds since 1970-01-01 UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_ms: Option<u64>,
    /// The reason why it is not started again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given_up: Option<Arc<str>>,
    /// True if it waits for a place, since so many agents run already.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_waiting: bool,
    /// The times of its crashes, in milliseconds since 1970-01-01 UTC.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub(crate) crashes: VecDeque<u64>,
    /// Since when it runs, if it does.
    #[serde(skip)]
    pub(crate) up_since: Option<u64>,
    /// True if it must be stopped before it continues.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) restart: bool,
}

impl Course {
    /// True if it is to be stopped before it is started, and was not stopped yet.
    pub fn is_restarting(&self) -> bool {
        self.restart
    }
}

impl Home {
    /// Returns the history of an agent since it was last ordered to run, as its supervisor wrote it down.
    ///
    /// # Errors
    /// `Storage` if it cannot be read.
    pub fn course(&self, id: Uuid) -> Result<Course, Error> {
        Ok(read_json_if_any(&self.workspace(id).file(FILE))?.unwrap_or_default())
    }

    /// Writes down what happened to an agent.
    pub(crate) fn keep(&self, id: Uuid, course: &Course) -> Result<(), Error> {
        write_json(&self.workspace(id).file(FILE), course, Sync::Program)
    }
}

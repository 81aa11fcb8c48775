//! The stores of a manifest.

use std::{path::PathBuf, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The store of sessions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct SessionSpec {
    /// The store; by default an SQLite file in the workspace.
    #[serde(skip_serializing_if = "super::is_default")]
    pub store: StoreSpec,
    /// The crashes that the records of a session survive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durability: Option<Durability>,
    /// The session of a prompt that names none; `main` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_session: Option<Arc<str>>,
}

/// A store.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct StoreSpec {
    /// The kind of the store.
    pub kind: StoreKind,
    /// The path of the store for `sqlite` and `jsonl`, relative to the workspace's `state`; by default `agent.db` or
    /// `sessions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The variable of the operator's environment with the address, for `postgres`. The address is never stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_variable: Option<String>,
}

/// The kind of a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoreKind {
    /// One file for sessions, memories, boards and notes.
    #[default]
    Sqlite,
    /// A directory of JSON lines: sessions only.
    Jsonl,
    /// A PostgreSQL database.
    Postgres,
    /// In memory: lost when the process exits.
    Memory,
}

/// The handling of a run that was active when its program crashed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnRestart {
    /// It is resumed: calls with an unknown outcome are repeated only if their tools permit it.
    #[default]
    Resume,
    /// It is cancelled.
    Cancel,
    /// It waits for an approval or a denial to continue.
    Ask,
}

/// The crashes that the records of a session survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// A crash of the machine.
    Sync,
    /// A crash of the program.
    Async,
    /// None: only an orderly exit.
    OnExit,
}

/// The memory of facts across sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MemorySpec {
    /// The owner of the facts; other owners cannot see them.
    pub owner: Arc<str>,
    /// True if the model of the prompted agent extracts facts from each run.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub extract: bool,
    /// The number of facts that are recalled for a prompt; 5 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

impl MemorySpec {
    /// Creates a memory of this owner that extracts facts from its runs.
    pub fn learning(owner: impl Into<Arc<str>>) -> Self {
        Self {
            owner: owner.into(),
            extract: true,
            limit: None,
        }
    }
}

/// A board of tasks that the agents share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct BoardSpec {
    /// Its name in the store.
    pub name: Arc<str>,
}

impl BoardSpec {
    /// Creates a board with this name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into() }
    }
}

/// Notes that the agents share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct NotesSpec {
    /// Their name in the store.
    pub name: Arc<str>,
}

//! The places where a manifest keeps what lasts.

use std::{path::PathBuf, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The place where sessions are kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct SessionSpec {
    /// The store: an SQLite file in the workspace without it.
    #[serde(skip_serializing_if = "super::is_default")]
    pub store: StoreSpec,
    /// The part of a session that is kept when the machine, the program or nothing crashes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durability: Option<Durability>,
    /// The session of a prompt that names none: `main` without it.
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
    /// The path of the store, for `sqlite` and `jsonl`: relative to the workspace's `state`; `agent.db` or `sessions`
    /// without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The variable of the operator's environment that holds the address, for `postgres`. The address is never kept.
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
    /// Nothing lasts beyond the process.
    Memory,
}

/// The handling of a run that was active when its program crashed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnRestart {
    /// It is resumed: calls with an unknown end are repeated only if permitted.
    #[default]
    Resume,
    /// It is cancelled.
    Cancel,
    /// It waits for an approval or a denial to continue.
    Ask,
}

/// The events that the records of a session survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// A crash of the machine.
    Sync,
    /// A crash of the program.
    Async,
    /// An orderly end.
    OnExit,
}

/// The facts that are remembered beyond a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MemorySpec {
    /// For whom: facts of one owner are never seen by another.
    pub owner: Arc<str>,
    /// True if the model of the agent that is spoken to draws facts from each run.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub extract: bool,
    /// The number of facts that are recalled for a prompt: 5 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

impl MemorySpec {
    /// Returns a memory of this owner that learns from its runs.
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
    /// The board of this name.
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

//! The directory of one agent: its layout, and its creation.

mod changes;
mod copying;
mod lock;
mod prepare;
mod update;
mod verify;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    error::{Error, ErrorKind},
    files::{self, Sync},
    manifest::Resolved,
    provenance::Provenance,
    status::Status,
};

pub use changes::Changes;
pub use lock::Lock;
pub(crate) use prepare::{TOOLS, clear, is_carried, is_same, prepare};
pub use update::{MadeUpdate, UpdateFile};

/// The directory of one agent.
///
/// | path | what it is |
/// |---|---|
/// | `agent.json` | id, and what was resolved at its creation |
/// | `prepared.json` | the same with paths of the copies below, and the provenance; there once the workspace is made |
/// | `status.json`, `desired.json` | where it stands, and where it should |
/// | `start.json`, `ended.json` | which start was the last one; how it ended, as its host told |
/// | `host.json` | pid, address and token of the process that runs it; only its owner can read it |
/// | `host.lock` | locked by the process that runs it, for as long as it lives |
/// | `life.lock` | locked by whoever prepares, starts or removes it, meanwhile |
/// | `.update/`, `.former/`, `updated.json` | an update that the next start puts in its place; what it took the place of, until a start has succeeded; how the last one ended |
/// | `context/`, `skills/` | copies of the files that the agents are told |
/// | `tools/` | programs of an agent that was carried here in a file |
/// | `work/` | the working folder, with the files of `data` |
/// | `state/` | sessions, memories, boards, notes; `open.json`: which runs have not ended, those at work and those that wait for an answer |
/// | `tmp/`, `logs/` | temporary files; logs, rotated |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    root: PathBuf,
}

/// The content of `prepared.json`: the running configuration of a workspace, and the digests of its files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Prepared {
    /// The resolved manifest that runs. Its paths refer to the copies; in the file, they are relative to the
    /// workspace, so that it can be moved.
    pub resolved: Resolved,
    /// The recorded digests of its files.
    pub provenance: Provenance,
    /// The time of its creation, in milliseconds since 1970-01-01 UTC.
    pub prepared_ms: u64,
}

/// The record that is written when the agent is created: `agent.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AgentFile {
    /// Its id, which is also the name of its directory.
    pub id: Uuid,
    /// The time of its creation, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// The resolved manifest.
    pub resolved: Arc<Resolved>,
}

/// The status of an agent, as last written by its operator: `status.json`.
///
/// Format: `{"status":"ready","at_ms":1767225600000,"address":"127.0.0.1:40123"}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StatusFile {
    /// Its status.
    #[serde(flatten)]
    pub status: Status,
    /// The time of the last change, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Its current or last address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
    /// Its previous address, if another process uses that now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former_address: Option<SocketAddr>,
}

/// The last start: `start.json`. It is written before the process starts, and again with its pid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StartFile {
    /// The value of `ADJUTANT_AGENT_START` in the process and all its descendants.
    pub start: Uuid,
    /// The process, which leads its process group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

/// The end of a start, as recorded by the process of the agent: `ended.json`.
///
/// If it is missing for the last start, the process was killed or crashed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EndFile {
    /// The start that ended.
    pub start: Uuid,
    /// `stopped`, or `failed` with its reason.
    #[serde(flatten)]
    pub status: Status,
}

impl Workspace {
    /// Uses the workspace in this directory.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Returns the directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the working directory.
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// Returns the directory of the stores.
    pub fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    /// Returns the directory of the logs.
    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// Returns the directory of temporary files.
    pub fn tmp(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// Returns the directory with copies of the files in the agents' context.
    pub fn context(&self) -> PathBuf {
        self.root.join("context")
    }

    /// Returns the directory with copies of skills.
    pub fn skills(&self) -> PathBuf {
        self.root.join("skills")
    }

    /// Returns a file directly in the directory, such as `agent.json`.
    pub fn file(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Reads the record that was written when the agent was created.
    ///
    /// # Errors
    /// `Missing` if it does not exist, `Storage` if it cannot be read, `Config` if its manifest has another version.
    pub fn agent(&self) -> Result<AgentFile, Error> {
        let agent: AgentFile = files::read_json(&self.file("agent.json"))?;
        agent.resolved.manifest.check_version()?;
        Ok(agent)
    }

    /// True if the workspace is prepared.
    pub fn is_prepared(&self) -> bool {
        self.file("prepared.json").is_file()
    }

    /// Reads the running configuration, with absolute paths.
    ///
    /// # Errors
    /// `Missing` if the workspace is not prepared, `Storage` if it cannot be read, `Config` if its manifest has another
    /// version.
    pub fn prepared(&self) -> Result<Prepared, Error> {
        let mut prepared: Prepared = files::read_json(&self.file("prepared.json"))?;
        prepared.resolved.manifest.check_version()?;
        prepare::for_each_copy(&mut prepared.resolved.manifest, |path| {
            *path = self.root.join(&*path)
        });
        Ok(prepared)
    }

    /// Replaces the provenance of the running configuration.
    pub(crate) fn write_provenance(&self, provenance: &Provenance) -> Result<(), Error> {
        let path = self.file("prepared.json");
        let mut prepared: Prepared = files::read_json(&path)?;
        prepared.provenance = provenance.clone();
        files::write_json(&path, &prepared, Sync::Disk)
    }

    /// Reads the status of the agent, as last written by its operator.
    ///
    /// # Errors
    /// `Missing` if it does not exist, `Storage` if it cannot be read or is invalid.
    pub fn status(&self) -> Result<StatusFile, Error> {
        files::read_json(&self.file("status.json"))
    }

    /// Locks the workspace for the process that runs its agent.
    ///
    /// # Errors
    /// `Busy` if another process runs it.
    pub fn lock_host(&self) -> Result<Lock, Error> {
        Lock::take(&self.file("host.lock"))
    }

    /// True if a process is running its agent.
    ///
    /// # Errors
    /// `Storage` if that cannot be determined.
    pub fn is_hosted(&self) -> Result<bool, Error> {
        Lock::is_held(&self.file("host.lock"))
    }

    /// Reads the last start, if there was any.
    ///
    /// # Errors
    /// `Storage` if it cannot be read.
    pub fn last_start(&self) -> Result<Option<StartFile>, Error> {
        files::read_json_if_any(&self.file("start.json"))
    }

    /// Records the end of a start. The process of the agent calls it just before it exits, after a request or a failed
    /// start.
    ///
    /// # Errors
    /// `Invalid` if the status is neither `stopped` nor `failed`, `Storage` if it cannot be written.
    pub fn tell_end(&self, start: Uuid, status: Status) -> Result<(), Error> {
        if !matches!(status, Status::Stopped | Status::Failed { .. }) {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!("{} is no end", status.word()),
            ));
        }
        files::write_json(
            &self.file("ended.json"),
            &EndFile { start, status },
            Sync::Program,
        )
    }

    /// Returns how the last start ended, if its process recorded it; a killed process did not.
    pub fn last_end(&self) -> Option<Status> {
        self.end_of(self.last_start().ok().flatten()?.start)
    }

    /// Returns how a start ended, if its process recorded it.
    pub(crate) fn end_of(&self, start: Uuid) -> Option<Status> {
        let told: EndFile = files::read_json(&self.file("ended.json")).ok()?;
        (told.start == start).then_some(told.status)
    }
}

//! Provenance: the digests of the files of an agent, by which its workspace detects changes.

mod digest;

use std::{
    fmt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

pub(crate) use digest::{digest_of, hex, pin_program};

/// The file of a workspace with the running configuration.
pub(crate) const PREPARED: &str = "prepared.json";

/// The recorded digests of an agent's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Provenance {
    /// All files: of the manifest, the agents' context, data, skills, programs.
    pub files: Vec<PinnedFile>,
}

/// A file and its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PinnedFile {
    /// The role of the file for the agent.
    pub kind: FileKind,
    /// The path of the file: relative to the workspace for copies, else absolute.
    pub path: PathBuf,
    /// The SHA-256 of its content, in 64 hexadecimal digits.
    pub sha256: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// The role of a file for an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FileKind {
    /// A file that the manifest was read from. The agent runs from the resolved copy, so a change is only reported.
    Manifest,
    /// A file in the context of an agent.
    Context,
    /// The instructions of an agent.
    Instructions,
    /// A file of the working directory, which the agent may change.
    Data,
    /// A file of a skill.
    Skill,
    /// The program of a tool or of a server.
    Tool,
    /// The program that the agent runs in.
    Host,
}

/// A difference between a file and its record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finding {
    /// The role of the file for the agent.
    pub kind: FileKind,
    /// The path of the file, as in its `PinnedFile`.
    pub path: PathBuf,
    /// The difference.
    pub what: Difference,
}

/// The kind of a difference from the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Difference {
    /// The content differs.
    Changed,
    /// It does not exist, or is no longer a regular file.
    Missing,
    /// It exists but was not recorded.
    Extra,
    /// It is no longer executable.
    NotExecutable,
}

impl Provenance {
    pub(crate) fn new(files: Vec<PinnedFile>) -> Self {
        Self { files }
    }

    /// Replaces the program that the agent runs in.
    pub(crate) fn replace_host(&mut self, host: PinnedFile) {
        self.files.retain(|file| file.kind != FileKind::Host);
        self.files.push(host);
    }
}

impl PinnedFile {
    pub(crate) fn copied(kind: FileKind, path: PathBuf, sha256: String, bytes: u64) -> Self {
        Self {
            kind,
            path,
            sha256,
            bytes,
        }
    }
}

impl Finding {
    /// True if it prevents the agent from starting: the files to run differ from the record.
    ///
    /// Files of the manifest were read already, and the agent may change data files.
    pub fn forbids_start(&self) -> bool {
        !matches!(self.kind, FileKind::Manifest | FileKind::Data)
            || self.path == Path::new(PREPARED)
    }
}

impl FileKind {
    /// Returns it as one word, for files and tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Manifest => "manifest",
            Self::Context => "context",
            Self::Instructions => "instructions",
            Self::Data => "data",
            Self::Skill => "skill",
            Self::Tool => "tool",
            Self::Host => "host",
        }
    }
}

impl fmt::Display for Finding {
    /// `the tool /usr/bin/jq was changed`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            Difference::Changed => "was changed",
            Difference::Missing => "is missing",
            Difference::Extra => "was added",
            Difference::NotExecutable => "cannot be executed",
        };
        write!(
            f,
            "the {} file {} {what}",
            self.kind.word(),
            self.path.display()
        )
    }
}

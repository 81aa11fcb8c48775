//! The permissions that a manifest requests, as lines for the user, and the digest of its content. `trust` determines
//! them.

use std::{collections::BTreeMap, fmt, sync::Arc};

use adjutant_llm::hidden;
use serde::Serialize;

/// All requested permissions of a manifest, sorted; and the digest of its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wants {
    pub(crate) name: Arc<str>,
    pub(crate) all: Vec<Want>,
    pub(crate) digest: String,
}

/// A requested permission.
///
/// Its text is one line: control and invisible characters are written as `\u{…}`, and nothing is truncated.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct Want {
    /// The kind of the permission.
    pub kind: WantKind,
    /// The permission and its purpose.
    pub what: String,
}

/// The kind of a requested permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WantKind {
    /// To run a program.
    Program,
    /// To read a directory other than its own.
    Folder,
    /// To read a file outside its own directory.
    File,
    /// To send prompts, and keys if it names their variables, to an address.
    Address,
    /// To use a database.
    Database,
    /// To instruct the model.
    Skill,
}

impl Wants {
    /// True if nothing is requested.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns each permission, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &Want> {
        self.all.iter()
    }

    /// Returns the name of the manifest.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the digest of the manifest and its files, in 64 hexadecimal digits: it differs after any change.
    ///
    /// It covers the effective manifest without its name, the agents' context, its skills, programs and data; for a
    /// created agent, the original data, which the agent may change.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the number of permissions of each kind, as a short text.
    pub fn summary(&self) -> String {
        let mut counts: BTreeMap<WantKind, usize> = BTreeMap::new();
        self.all
            .iter()
            .for_each(|it| *counts.entry(it.kind).or_default() += 1);
        let words: Vec<String> = counts
            .iter()
            .map(|(kind, count)| format!("{kind} ({count})"))
            .collect();
        words.join(", ")
    }
}

impl Want {
    pub(crate) fn new(kind: WantKind, what: impl AsRef<str>) -> Self {
        Self {
            kind,
            what: hidden::whole(what.as_ref()),
        }
    }
}

impl fmt::Display for WantKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Program => "program",
            Self::Folder => "folder",
            Self::File => "file",
            Self::Address => "address",
            Self::Database => "database",
            Self::Skill => "skill",
        })
    }
}

impl fmt::Display for Want {
    /// `program: "/bin/sh" "-c" "…", as the tool sh`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.what)
    }
}

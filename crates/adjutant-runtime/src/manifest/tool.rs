//! The tools of a manifest.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Bytes, Span};

/// The names that a toolbox may have.
pub(crate) const TOOLBOXES: [&str; 13] = [
    "files",
    "edits",
    "shell",
    "git",
    "fetch",
    "plan",
    "ask_user",
    "board",
    "notes",
    "memory",
    "reflections",
    "background",
    "peers",
];

/// A toolbox of an agent: its name, or its name with changes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ToolboxChoice {
    /// Its name.
    Name(Arc<str>),
    /// Its name, with changes.
    Spec(ToolboxSpec),
}

impl ToolboxChoice {
    /// The toolbox that is meant.
    pub(crate) fn name(&self) -> &Arc<str> {
        match self {
            Self::Name(name) => name,
            Self::Spec(spec) => &spec.name,
        }
    }
}

/// A toolbox of an agent, changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolboxSpec {
    /// Its name.
    pub name: Arc<str>,
    /// The only tools of it for the agent; a `*` stands for any characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<Vec<Arc<str>>>,
    /// The tools of it that are hidden from the agent; a `*` stands for any characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<Arc<str>>,
    /// The prefix of the names of its tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Arc<str>>,
    /// The longest time that one call may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// The maximum number of bytes of one result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<Bytes>,
    /// The directory that it works in, for `files`: relative to the manifest, without it the agent's working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<PathBuf>,
}

/// A tool that is a program.
///
/// It is started without a shell, in the working directory and in a sandbox, with only `environment`, `PATH`, `HOME`,
/// `TMPDIR` and `LANG`. Its standard input contains the call's arguments as one line of JSON; `args` can insert single
/// arguments into its command line. Its standard output is the result; another exit code than 0 is an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ProcessTool {
    /// Its name: letters, digits, `_` and `-`, 64 at most.
    pub name: Arc<str>,
    /// A description of its purpose, for the model.
    pub description: Arc<str>,
    /// The program: a path relative to the manifest, or a name that is looked for in `PATH`.
    pub binary: PathBuf,
    /// Its arguments. `{name}` is the argument `name` of the call, omitted with its whole word if the call has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<Arc<str>>,
    /// The schema of the call's arguments: JSON Schema of an object. By default, it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// The longest time that a call may take: `60s` without it. Then everything that it started is killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// The maximum number of bytes of its output that are kept: `64KiB` by default. The rest is read and dropped, with
    /// a note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<Bytes>,
    /// True if each call waits for approval.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub approval: bool,
    /// True if a call may be made again when it is not known whether it happened.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub repeatable: bool,
    /// Additional variables of its environment, which override the manifest's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// The sha256 that its binary must have, in 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Arc<str>>,
    /// Additional permissions of its sandbox.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub sandbox: SandboxSpec,
}

/// Additional permissions of a program's sandbox.
///
/// There it reads the programs and libraries of the machine, itself and files that its `args` name by an absolute path,
/// changes the working directory, its `HOME` and its `TMPDIR`, and has no network.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct SandboxSpec {
    /// Files and directories that it may read, and execute: absolute, or relative to the manifest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<PathBuf>,
    /// Files and directories that it may change: absolute, or relative to the manifest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<PathBuf>,
    /// True if it can use the network: it can send everything that it can read to any host.
    #[serde(skip_serializing_if = "super::is_default")]
    pub network: bool,
    /// True if it has no sandbox, and all rights of the user who runs the agent.
    #[serde(skip_serializing_if = "super::is_default")]
    pub danger_without_any: bool,
}

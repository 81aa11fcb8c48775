//! The tools of a manifest.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Bytes, Span};

/// The names of the built-in toolboxes.
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
    /// The name.
    Name(Arc<str>),
    /// The name, with changes.
    Spec(ToolboxSpec),
}

impl ToolboxChoice {
    /// Returns the name of the toolbox.
    pub(crate) fn name(&self) -> &Arc<str> {
        match self {
            Self::Name(name) => name,
            Self::Spec(spec) => &spec.name,
        }
    }
}

/// A toolbox of an agent, with changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolboxSpec {
    /// Its name.
    pub name: Arc<str>,
    /// The only tools that the agent gets; a `*` matches any characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<Vec<Arc<str>>>,
    /// The tools that the agent does not get; a `*` matches any characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<Arc<str>>,
    /// A prefix for the names of its tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Arc<str>>,
    /// The maximum time of one call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// The maximum size of one result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<Bytes>,
    /// The directory of `files`, relative to the manifest; by default the agent's working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<PathBuf>,
}

/// A tool that is a program.
///
/// It is started without a shell, in the working directory and in a sandbox, with only `environment`, `PATH`, `HOME`,
/// `TMPDIR` and `LANG`. Its standard input is the call's arguments as one line of JSON; `args` can contain single
/// arguments. Its standard output is the result; a non-zero exit code is an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ProcessTool {
    /// Its name: letters, digits, `_` and `-`, at most 64.
    pub name: Arc<str>,
    /// A description of its purpose, for the model.
    pub description: Arc<str>,
    /// The program: a path relative to the manifest, or a name that is looked up in `PATH`.
    pub binary: PathBuf,
    /// Its arguments. `{name}` is replaced by the argument `name` of the call; without it, the whole element is
    /// omitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<Arc<str>>,
    /// The JSON Schema of the call's arguments, an object; by default no arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// The maximum time of a call, `60s` by default; then all its processes are killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// The maximum size of the output, `64KiB` by default; the rest is discarded, with a note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<Bytes>,
    /// True if each call waits for approval.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub approval: bool,
    /// True if a call may be repeated if its outcome is unknown.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub repeatable: bool,
    /// Additional variables of its environment, which override the manifest's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// The required SHA-256 of its program, in 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Arc<str>>,
    /// Additional permissions of its sandbox.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub sandbox: SandboxSpec,
}

/// Additional permissions of a program's sandbox.
///
/// Without them, a program reads the programs and libraries of the machine, itself and files that its `args` name by an
/// absolute path, changes the working directory, its `HOME` and its `TMPDIR`, and has no network.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct SandboxSpec {
    /// Additional files and directories that it may read and execute: absolute, or relative to the manifest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<PathBuf>,
    /// Additional files and directories that it may change: absolute, or relative to the manifest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<PathBuf>,
    /// True if it has network access: it can send everything that it can read to any host.
    #[serde(skip_serializing_if = "super::is_default")]
    pub network: bool,
    /// True if it has no sandbox, and all permissions of the user who runs the agent.
    #[serde(skip_serializing_if = "super::is_default")]
    pub danger_without_any: bool,
}

//! The manifest: the description of an agent and its subagents.

mod access;
mod agent;
mod amount;
mod check;
mod either;
mod file;
mod include;
mod load;
mod merge;
mod model;
mod near;
mod needs;
mod node;
mod parts;
mod path;
mod place;
mod problem;
mod program;
mod read;
mod resolved;
mod resource;
mod schema;
mod server;
mod set;
mod shape;
mod tool;
pub(crate) mod vars;
mod write;
mod yaml;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use access::{Access, Approval, ApprovalRule, RulesSpec};
pub(crate) use agent::PREFIXED;
pub use agent::{
    AgentSpec, Compaction, ContextSpec, DelegationPlace, DelegationSpec, EffectParams,
    Instructions, LimitEnd, LimitsSpec, NamedContext, ReflectionSpec, TeamSpec,
};
pub use amount::{Bytes, Span};
pub use load::Loaded;
pub(crate) use load::with_fields;
pub use model::{BudgetSpec, ModelChoice, ModelSpec, OptionsSpec, TimeoutsSpec};
pub use parts::PartNames;
pub use place::{
    BoardSpec, Durability, MemorySpec, NotesSpec, OnRestart, SessionSpec, StoreKind, StoreSpec,
};
pub use problem::{Problem, Problems};
pub use resolved::{Overrides, Resolved};
pub use resource::{DataSpec, PeerSpec};
pub use schema::schema;
pub use server::{AuthSpec, McpSpec, ProtocolRevision, ServerSpec};
pub(crate) use tool::TOOLBOXES;
pub use tool::{ProcessTool, SandboxSpec, ToolboxChoice, ToolboxSpec};

/// The version of the format.
const VERSION: u32 = 1;
/// The name of a manifest's file, unless another one is given.
pub const FILE_NAME: &str = "adjutant.yaml";
/// A manifest with comments that runs at once, without a key.
pub const EXAMPLE: &str = include_str!("manifest/example.yaml");

/// One manifest, as it is meant: after `extends`, includes and variables.
///
/// In a file with a single agent, its fields can be next to the manifest's fields; here it is the only one of `agents`. With several agents, `entry_agent` names the receiver of prompts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Manifest {
    /// The version of this format: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adjutant: Option<u32>,
    /// The name of the whole: letters, digits, `_` and `-`, 64 at most; with one agent, the name of that agent too.
    pub name: Arc<str>,
    /// The purpose of the whole.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub description: Arc<str>,
    /// Words that an operator finds it by.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The agent that prompts go to; the only one if there is one.
    pub entry_agent: Arc<str>,
    /// The agents, each with a unique name.
    pub agents: Vec<AgentSpec>,
    /// Additional providers of models, in the format of `docs/providers.md`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<Value>,
    /// Additional models for the catalogue, in the format of `docs/models.md`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<Value>,
    /// Tools that are programs. An agent has the ones in its `tools`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub process_tools: Vec<ProcessTool>,
    /// Servers of the Model Context Protocol: agents have them by their names, as toolboxes.
    #[serde(skip_serializing_if = "is_default")]
    pub mcp: McpSpec,
    /// Agents of other processes, for the toolbox `peers`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<PeerSpec>,
    /// Directories of skills, each with a `SKILL.md`, or directories of such directories. An agent has the ones in its
    /// `skills`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skill_folders: Vec<PathBuf>,
    /// Updates of tasks are pushed where callers that speak A2A want them: to public hosts, and to these. Without it, nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a2a_push: Option<Vec<String>>,
    /// Files that are laid into the working directory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<DataSpec>,
    /// The place where sessions are kept.
    #[serde(skip_serializing_if = "is_default")]
    pub sessions: SessionSpec,
    /// The handling of runs that were active when their program crashed: by default they are resumed.
    #[serde(skip_serializing_if = "is_default")]
    pub on_restart: OnRestart,
    /// The facts that are remembered beyond a session, and their owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemorySpec>,
    /// A board of tasks that the agents share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub board: Option<BoardSpec>,
    /// Notes that the agents share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<NotesSpec>,
    /// Variables of the environment of process tools. Never credentials: those are never part of a manifest.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// The amounts that a run and everything under it may use.
    #[serde(skip_serializing_if = "is_default")]
    pub budget: BudgetSpec,
}

pub(crate) use needs::of as needs;
pub(crate) use write::yaml;
#[cfg(feature = "mcp")]
pub(crate) use {check::is_line, near::nearest};

/// Reads a value from a text of YAML.
pub(crate) fn of_yaml<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Problem> {
    let source = node::Source {
        shown: "resolved".into(),
        folder: PathBuf::new(),
    };
    read::one(&yaml::read(text, &Arc::new(source), yaml::MANIFEST)?)
}

/// True if a field has its default, and is not written.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

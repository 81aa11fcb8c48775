//! The manifest: describes an agent and its sub-agents.

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
/// The default name of a manifest file.
pub const FILE_NAME: &str = "adjutant.yaml";
/// A manifest with comments that runs immediately, without a key.
pub const EXAMPLE: &str = include_str!("manifest/example.yaml");

/// A manifest after `extends`, includes and variables.
///
/// If a file has a single agent, its fields can be next to the manifest's fields; here it is the only element of
/// `agents`. With several agents, `entry_agent` names the agent that receives prompts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Manifest {
    /// The version of this format: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adjutant: Option<u32>,
    /// The name of the manifest: letters, digits, `_` and `-`, at most 64; with one agent, also its name.
    pub name: Arc<str>,
    /// The purpose of the manifest.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub description: Arc<str>,
    /// Labels for the operator.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The agent that receives prompts; by default the only one.
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
    /// Servers of the Model Context Protocol. Agents use them as toolboxes, by name.
    #[serde(skip_serializing_if = "is_default")]
    pub mcp: McpSpec,
    /// Agents of other processes, for the toolbox `peers`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<PeerSpec>,
    /// Directories of skills, each with a `SKILL.md`, or directories of such directories. An agent has the ones in its
    /// `skills`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skill_folders: Vec<PathBuf>,
    /// Enables A2A push notifications: to public hosts, and to these hosts. By default, nothing is pushed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a2a_push: Option<Vec<String>>,
    /// Files that are copied into the working directory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<DataSpec>,
    /// The store of sessions.
    #[serde(skip_serializing_if = "is_default")]
    pub sessions: SessionSpec,
    /// The handling of runs that were active when their program crashed: by default they are resumed.
    #[serde(skip_serializing_if = "is_default")]
    pub on_restart: OnRestart,
    /// The memory of facts across sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemorySpec>,
    /// A board of tasks that the agents share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub board: Option<BoardSpec>,
    /// Notes that the agents share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<NotesSpec>,
    /// Environment variables of process tools. Not for credentials, which are never part of a manifest.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// The maximum usage of a run and all its sub-agents.
    #[serde(skip_serializing_if = "is_default")]
    pub budget: BudgetSpec,
}

pub(crate) use needs::find_variables as needs;
pub(crate) use write::yaml;
#[cfg(feature = "mcp")]
pub(crate) use {check::is_line, near::nearest};

/// Deserializes a value from YAML.
pub(crate) fn parse_yaml<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Problem> {
    let source = node::Source {
        shown: "resolved".into(),
        folder: PathBuf::new(),
    };
    read::one(&yaml::read(text, &Arc::new(source), yaml::MANIFEST)?)
}

/// True if a field has its default and is not written.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

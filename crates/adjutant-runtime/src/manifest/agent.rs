//! One agent of a manifest.

use std::{path::PathBuf, sync::Arc};

use adjutant_orchestration::Definition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Access, BudgetSpec, ModelChoice, OptionsSpec, RulesSpec, Span, ToolboxChoice};

/// An agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct AgentSpec {
    /// The name of the agent: letters, digits, `_` and `-`, at most 64.
    pub name: Arc<str>,
    /// The purpose of the agent; other agents choose it by this text.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub description: Arc<str>,
    /// Its model. By default: the delegating agent's, or the default of the environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelChoice>,
    /// The options of its model requests.
    #[serde(skip_serializing_if = "super::is_default")]
    pub options: OptionsSpec,
    /// The system prompt of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Instructions>,
    /// Files that are always in its context, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<ContextSpec>,
    /// Its toolboxes: `files`, `edits`, `shell`, `git`, `fetch`, `plan`, `ask_user`, `board`, `notes`, `memory`,
    /// `reflections`, `background`, `peers`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub toolboxes: Vec<ToolboxChoice>,
    /// The names of its process tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Arc<str>>,
    /// The names of its skills; `*` for all skills of the skill directories.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Arc<str>>,
    /// The effects that transform each request, in this order: kinds and parameters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<EffectParams>,
    /// True if its prompt includes guidelines for careful work, as `behavioral_constraints`.
    #[serde(skip_serializing_if = "super::is_default")]
    pub behavior: bool,
    /// The names of its middleware, outermost first: `logger`, `recovery`, or one of the application's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub middleware: Vec<Arc<str>>,
    /// The summarization of old turns; by default when the window is full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction: Option<Compaction>,
    /// False if requests are sent unchanged, even if they exceed the model's window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor: Option<bool>,
    /// The calls that run without approval, need an approval, or are denied, by tool.
    #[serde(skip_serializing_if = "super::is_default")]
    pub access: Access,
    /// The calls that run, need an approval, or are denied, by tool and arguments. Without it, only `access` applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<RulesSpec>,
    /// The limits of one run.
    #[serde(skip_serializing_if = "super::is_default")]
    pub limits: LimitsSpec,
    /// The maximum number of model requests of a run: short for `limits.max_turns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// The maximum usage of a run of this agent and all its sub-agents.
    #[serde(skip_serializing_if = "super::is_default")]
    pub budget: BudgetSpec,
    /// The agents that it may delegate tasks to.
    #[serde(skip_serializing_if = "super::is_default")]
    pub delegation: DelegationSpec,
    /// The agents of this manifest that it may hand the conversation to permanently.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<Arc<str>>,
    /// The agents of this manifest that it may form a team of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<TeamSpec>,
    /// The lessons from failed tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reflections: Option<ReflectionSpec>,
    /// Keywords that other agents choose it by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expertise: Vec<Arc<str>>,
    /// The cost of a task, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_cost: Option<Arc<str>>,
    /// The maximum number of its instances that run at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    /// A short prefix of its output lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Arc<str>>,
}

/// The reason why `rules` and a `prefix` cannot be combined.
pub(crate) const PREFIXED: &str = "`rules` know the tools that change files and run commands by their names: a toolbox with a `prefix` would escape them";

impl AgentSpec {
    /// True if its rules about arguments would not recognize some of its tools.
    pub(crate) fn hides_from_rules(&self) -> bool {
        // Rules know the tools of these toolboxes only by name.
        let plain = ["board", "notes", "memory", "reflections", "background"];
        let has_prefix = |it: &ToolboxChoice| match it {
            ToolboxChoice::Spec(spec) => spec.prefix.is_some() && !plain.contains(&&*spec.name),
            ToolboxChoice::Name(_) => false,
        };
        self.rules.as_ref().is_some_and(RulesSpec::looks_inside)
            && self.toolboxes.iter().any(has_prefix)
    }
}

impl From<Definition> for AgentSpec {
    /// Converts an agent from a Markdown file.
    fn from(file: Definition) -> Self {
        let delegation = DelegationSpec {
            depth: file.depth,
            handoffs: u32::try_from(file.handoffs).unwrap_or(u32::MAX),
            ..DelegationSpec::default()
        };
        Self {
            name: file.name,
            description: file.description,
            model: file.model.map(ModelChoice::Name),
            instructions: Some(Instructions::Text(file.instructions)),
            toolboxes: file
                .toolboxes
                .into_iter()
                .map(ToolboxChoice::Name)
                .collect(),
            skills: file.skills,
            behavior: file.behavior,
            middleware: file.middleware,
            compaction: file.compaction.map(Compaction::On),
            max_turns: file.max_turns,
            delegation,
            expertise: file.expertise,
            estimated_cost: file.estimated_cost,
            max_concurrency: file
                .max_concurrency
                .map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
            prefix: file.prefix,
            ..Self::default()
        }
    }
}

/// The summarization of old turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "it is true, false, or a mapping of parameters of `compact`"
)]
pub enum Compaction {
    /// True to summarize before the window is full; false to omit old turns without a summary.
    On(bool),
    /// The parameters of the effect `compact`, which summarizes before the window is full.
    With(Map<String, Value>),
}

/// The instructions of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Instructions {
    /// The text itself.
    Text(Arc<str>),
    /// A file with the text, relative to the manifest.
    File {
        /// The file.
        file: PathBuf,
    },
}

/// A file in the context of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ContextSpec {
    /// The file, relative to the manifest.
    File(PathBuf),
    /// The file, with a name.
    Named(NamedContext),
}

/// A file in the context of an agent, with a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct NamedContext {
    /// The file, relative to the manifest.
    pub file: PathBuf,
    /// The heading above its text; by default the file's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// True if the agent runs without the file if it does not exist.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub optional: bool,
}

/// An effect, by its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct EffectParams {
    /// Its kind, such as `compact`.
    pub kind: Arc<str>,
    /// Its parameters; omitted ones have the kind's defaults.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub params: Value,
}

/// The limits of one run of an agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct LimitsSpec {
    /// The maximum number of model requests; 50 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// The maximum number of calls that run at the same time; 8 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_parallel_tools: Option<u32>,
    /// True if calls run one after the other.
    #[serde(skip_serializing_if = "super::is_default")]
    pub sequential: bool,
    /// The maximum running time of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// The maximum time of a call, if its tool sets none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_timeout: Option<Span>,
    /// The time that a cancelled call has to end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace: Option<Span>,
    /// The maximum size of a tool result for the model, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_result: Option<super::Bytes>,
    /// The behavior when a limit is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_limit: Option<LimitEnd>,
    /// True if no user can answer: calls that would wait for an answer are refused.
    #[serde(skip_serializing_if = "super::is_default")]
    pub unattended: bool,
}

/// The behavior when a limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitEnd {
    /// The run ends.
    End,
    /// The run has one more turn without tools.
    LastTurn,
    /// The run waits for approval to continue.
    Ask,
}

/// The agents that an agent may delegate tasks to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct DelegationSpec {
    /// The agents of this manifest; by default all others if `depth` is over 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<Arc<str>>>,
    /// The maximum number of levels of agents below it; 0 disables delegation.
    #[serde(skip_serializing_if = "super::is_default")]
    pub depth: u16,
    /// The maximum number of handoffs of one of its tasks.
    #[serde(skip_serializing_if = "super::is_default")]
    pub handoffs: u32,
    /// The place of these agents: `here`, in the run of the delegating agent, or `fleet`, in separate sessions on any
    /// worker.
    #[serde(skip_serializing_if = "super::is_default")]
    pub on: DelegationPlace,
}

/// The place where delegated tasks run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DelegationPlace {
    /// In the run of the delegating agent.
    #[default]
    Here,
    /// In separate sessions, on any worker of a fleet.
    Fleet,
}

/// A team that an agent may lead.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct TeamSpec {
    /// The agents of this manifest that members are created from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Arc<str>>,
    /// The maximum number of members at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    /// The maximum time of a member for a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member_timeout: Option<Span>,
    /// True if the lead only coordinates: it has the tools of the team, and no others.
    #[serde(skip_serializing_if = "super::is_default")]
    pub coordinator: bool,
    /// The maximum usage of one member.
    #[serde(skip_serializing_if = "super::is_default")]
    pub member_budget: BudgetSpec,
}

/// The lessons of an agent from failed tasks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ReflectionSpec {
    /// The directory of the notes, relative to the workspace; by default they are stored in the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
}

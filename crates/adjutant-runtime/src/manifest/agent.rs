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
    /// The name of the agent: letters, digits, `_` and `-`, 64 at most.
    pub name: Arc<str>,
    /// The purpose of the agent: others choose it by this.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub description: Arc<str>,
    /// Its model. By default: the delegating agent's, or the default of the environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelChoice>,
    /// The options of its requests.
    #[serde(skip_serializing_if = "super::is_default")]
    pub options: OptionsSpec,
    /// The instructions of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Instructions>,
    /// Files in its context, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<ContextSpec>,
    /// Its toolboxes: `files`, `edits`, `shell`, `git`, `fetch`, `plan`, `ask_user`, `board`, `notes`, `memory`, `reflections`, `background`,
    /// `peers`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub toolboxes: Vec<ToolboxChoice>,
    /// The names of its process tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Arc<str>>,
    /// The names of its skills; `*` for all that the skill directories hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Arc<str>>,
    /// The effects that act before each request: kinds and parameters, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<EffectParams>,
    /// True if its prompt includes the habits of careful work, as `behavioral_constraints`.
    #[serde(skip_serializing_if = "super::is_default")]
    pub behavior: bool,
    /// The names of what surrounds its runs, outermost first: `logger`, `recovery`, or one of the application's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub middleware: Vec<Arc<str>>,
    /// The way in which old turns are summarised. Without it, that is done once the window is full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction: Option<Compaction>,
    /// False if requests are sent unchanged, even if they exceed the model's window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor: Option<bool>,
    /// The calls that it may make without an approval, calls that need one, and denied calls.
    #[serde(skip_serializing_if = "super::is_default")]
    pub access: Access,
    /// The calls that run, need an approval, or are denied, by tool and arguments. Without it, only `access` applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<RulesSpec>,
    /// Bounds of one run.
    #[serde(skip_serializing_if = "super::is_default")]
    pub limits: LimitsSpec,
    /// The maximum number of requests that it may make for a task: `limits.max_turns` in short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// The amounts that a run of it and everything under it may use.
    #[serde(skip_serializing_if = "super::is_default")]
    pub budget: BudgetSpec,
    /// To whom it may give tasks.
    #[serde(skip_serializing_if = "super::is_default")]
    pub delegation: DelegationSpec,
    /// The agents of this manifest that it may hand the conversation to, for good.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<Arc<str>>,
    /// The agents of this manifest that it may make a team of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<TeamSpec>,
    /// The lessons that it learns from tasks that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reflections: Option<ReflectionSpec>,
    /// The knowledge of the agent, in words that others choose it by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expertise: Vec<Arc<str>>,
    /// The cost of a task, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_cost: Option<Arc<str>>,
    /// The maximum number of its instances that may work at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    /// A short mark before its lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Arc<str>>,
}

/// Why `rules` and a `prefix` do not go together.
pub(crate) const PREFIXED: &str = "`rules` know the tools that change files and run commands by their names: a toolbox with a `prefix` would escape them";

impl AgentSpec {
    /// True if rules that are about what tools do would not know some of them.
    pub(crate) fn hides_from_rules(&self) -> bool {
        // Rules know the tools of these by nothing but their names.
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
    /// The agent that a file of Markdown describes.
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

/// The way in which old turns are summarised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "it is true, false, or a mapping of parameters of `compact`"
)]
pub enum Compaction {
    /// True if it is done before the window is full; false if never: old turns are omitted then.
    On(bool),
    /// The parameters of the effect `compact`, which does it before the window is full.
    With(Map<String, Value>),
}

/// The instructions of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Instructions {
    /// The text itself.
    Text(Arc<str>),
    /// A file that holds it, relative to the manifest.
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
    /// The heading over its text; without one, the file's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// True if the agent runs without it when there is no such file.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub optional: bool,
}

/// An effect, by its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct EffectParams {
    /// Its kind, as `compact`.
    pub kind: Arc<str>,
    /// Its parameters; omitted ones have the defaults of the kind.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub params: Value,
}

/// Bounds of one run of an agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct LimitsSpec {
    /// The maximum number of requests that it may make: 50 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// The maximum number of calls that may run at a time: 8 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_parallel_tools: Option<u32>,
    /// True if calls run one after the other.
    #[serde(skip_serializing_if = "super::is_default")]
    pub sequential: bool,
    /// The time that a run may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// The time that a call of a tool may take, if its tool sets none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_timeout: Option<Span>,
    /// The time that a cancelled call may take to end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace: Option<Span>,
    /// The maximum number of bytes of a tool's result that a model sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_result: Option<super::Bytes>,
    /// The consequence of reaching a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_limit: Option<LimitEnd>,
    /// True if there is no user to answer: everything that would wait is refused.
    #[serde(skip_serializing_if = "super::is_default")]
    pub unattended: bool,
}

/// The consequence of reaching a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitEnd {
    /// The run ends.
    End,
    /// It has one more turn without tools.
    LastTurn,
    /// It asks for permission to continue.
    Ask,
}

/// To whom an agent may give tasks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct DelegationSpec {
    /// The agents of this manifest that it may give tasks to; without it, all others when `depth` is over 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<Arc<str>>>,
    /// The number of levels of agents that may stand below it; 0 for none.
    #[serde(skip_serializing_if = "super::is_default")]
    pub depth: u16,
    /// The number of times that one of its tasks may be handed from agent to agent.
    #[serde(skip_serializing_if = "super::is_default")]
    pub handoffs: u32,
    /// The place of these agents: `here`, with the delegating agent, or `fleet`, in their own sessions on any worker.
    #[serde(skip_serializing_if = "super::is_default")]
    pub on: DelegationPlace,
}

/// The place of delegated tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DelegationPlace {
    /// In the run of the agent that gives the task.
    #[default]
    Here,
    /// In sessions of their own, on any worker of a fleet.
    Fleet,
}

/// A team that an agent may lead.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct TeamSpec {
    /// The agents of this manifest that members are made of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Arc<str>>,
    /// The maximum number of members at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    /// The time that a member may work on a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member_timeout: Option<Span>,
    /// True if the lead only coordinates: it keeps the tools of the team and loses its others.
    #[serde(skip_serializing_if = "super::is_default")]
    pub coordinator: bool,
    /// The amounts that one member may use.
    #[serde(skip_serializing_if = "super::is_default")]
    pub member_budget: BudgetSpec,
}

/// The lessons that an agent learns from tasks that failed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ReflectionSpec {
    /// The directory of the notes, relative to the workspace; without one, they are kept in the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
}
